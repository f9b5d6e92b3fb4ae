// SPDX-License-Identifier: Apache-2.0
// Certificates that are made while a test runs: none lies in the repository, none can expire.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace postrider::test {

/// A certificate with its key.
class TlsIdentity {
 public:
  struct Deleter {
    void operator()(EVP_PKEY* key) const noexcept { ::EVP_PKEY_free(key); }
    void operator()(X509* certificate) const noexcept { ::X509_free(certificate); }
    void operator()(SSL_CTX* context) const noexcept { ::SSL_CTX_free(context); }
    void operator()(X509_EXTENSION* extension) const noexcept { ::X509_EXTENSION_free(extension); }
  };
  using Context = std::unique_ptr<SSL_CTX, Deleter>;

  /// One that signs others.
  [[nodiscard]] static TlsIdentity authority(const char* name) {
    return {name, nullptr, {NID_basic_constraints, "critical,CA:TRUE"}, 10};
  }
  /// Signed by `authority`, for `host`: "IP:127.0.0.1" or "DNS:eventlog.example.com". Valid for `days` from
  /// yesterday on.
  [[nodiscard]] static TlsIdentity server(const TlsIdentity& authority, const char* host, int days = 10) {
    return {"server", &authority, {NID_subject_alt_name, host}, days};
  }

  void save_certificate(const std::string& path) const {
    std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
    if (!file || ::PEM_write_X509(file.get(), certificate_.get()) != 1) throw std::runtime_error(path);
  }
  void save_key(const std::string& path) const {
    std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
    if (!file || ::PEM_write_PrivateKey(file.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
      throw std::runtime_error(path);
    }
  }
  [[nodiscard]] Context server_context() const {
    // OpenSSL writes without MSG_NOSIGNAL to clients that have hung up.
    std::signal(SIGPIPE, SIG_IGN);
    Context context(::SSL_CTX_new(::TLS_server_method()));
    if (!context || ::SSL_CTX_use_certificate(context.get(), certificate_.get()) != 1 ||
        ::SSL_CTX_use_PrivateKey(context.get(), key_.get()) != 1) {
      throw std::runtime_error("no TLS");
    }
    return context;
  }

 private:
  struct Extension {
    int id;
    const char* value;
  };
  TlsIdentity(const char* name, const TlsIdentity* issuer, Extension extension, int days)
      : key_(::EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256")), certificate_(::X509_new()) {
    constexpr long day = 24 * 60 * 60;
    static long serial = 0;
    X509* const made = certificate_.get();
    ::X509_set_version(made, 2);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(made), ++serial);
    ::X509_gmtime_adj(::X509_getm_notBefore(made), -day);
    ::X509_gmtime_adj(::X509_getm_notAfter(made), (days - 1) * day);
    ::X509_set_pubkey(made, key_.get());
    ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(made), "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    X509* const signer = issuer == nullptr ? made : issuer->certificate_.get();
    ::X509_set_issuer_name(made, ::X509_get_subject_name(signer));
    const std::unique_ptr<X509_EXTENSION, Deleter> more(
        ::X509V3_EXT_conf_nid(nullptr, nullptr, extension.id, extension.value));
    if (!more || ::X509_add_ext(made, more.get(), -1) != 1 ||
        ::X509_sign(made, issuer == nullptr ? key_.get() : issuer->key_.get(), ::EVP_sha256()) == 0) {
      throw std::runtime_error("cannot make a certificate");
    }
  }

  std::unique_ptr<EVP_PKEY, Deleter> key_;
  std::unique_ptr<X509, Deleter> certificate_;
};

}  // namespace postrider::test
