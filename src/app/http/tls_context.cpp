// SPDX-License-Identifier: Apache-2.0
#include "app/http/tls_context.hpp"

#include <openssl/ssl.h>

#include "postrider/error.hpp"

namespace postrider::http {

std::shared_ptr<Transport::TlsContext> make_tls_context(const std::string& certificate,
                                                        const std::string& key) {
  namespace ssl = boost::asio::ssl;
  const auto fail = [](const std::string& file, const boost::system::error_code& error,
                       std::string_view hint) {
    throw Error(ErrorCode::invalid_argument, "cannot use " + file + " for TLS", error.message(), hint);
  };
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_compression |
                       ssl::context::single_dh_use);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  boost::system::error_code error;
  context->use_certificate_chain_file(certificate, error);
  if (error) fail(certificate, error, "it must be a PEM file with the certificate and its chain");
  context->use_private_key_file(key, ssl::context::pem, error);
  if (error) fail(key, error, "it must be a PEM file with the key of the certificate, without a password");
  if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
    throw Error(ErrorCode::invalid_argument, "cannot use " + key + " for TLS",
                "it is not the key of the certificate in " + certificate);
  }
  return context;
}

}  // namespace postrider::http
