// SPDX-License-Identifier: Apache-2.0
#include "publishers/webhook/signature.hpp"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "postrider/error.hpp"

namespace postrider {
namespace {

struct MacDeleter {
  void operator()(EVP_MAC* mac) const noexcept { ::EVP_MAC_free(mac); }
  void operator()(EVP_MAC_CTX* context) const noexcept { ::EVP_MAC_CTX_free(context); }
};

constexpr std::size_t digest_size = 32;
using Digest = std::array<unsigned char, digest_size>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Digest hmac(std::string_view key, std::string_view id, std::string_view timestamp, std::string_view body) {
  static const std::unique_ptr<EVP_MAC, MacDeleter> mac(::EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  const std::unique_ptr<EVP_MAC_CTX, MacDeleter> context(::EVP_MAC_CTX_new(mac.get()));
  std::array<char, 7> name{"SHA256"};
  const std::array<OSSL_PARAM, 2> parameters{
      ::OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name.data(), 0),
      ::OSSL_PARAM_construct_end()};
  Digest digest{};
  std::size_t size = 0;
  const auto update = [&](std::string_view text) {
    return ::EVP_MAC_update(context.get(), bytes_of(text), text.size()) == 1;
  };
  const bool done = context &&
                    ::EVP_MAC_init(context.get(), bytes_of(key), key.size(), parameters.data()) == 1 &&
                    update(id) && update(".") && update(timestamp) && update(".") && update(body) &&
                    ::EVP_MAC_final(context.get(), digest.data(), &size, digest.size()) == 1;
  if (!done || size != digest.size()) {
    throw Error(ErrorCode::unsupported, "cannot sign a webhook",
                "the cryptographic library has no HMAC-SHA256");
  }
  return digest;
}

}  // namespace

std::optional<std::string> WebhookSigner::key_of(std::string_view secret) {
  constexpr std::string_view prefix = "whsec_";
  constexpr std::size_t least = 24;
  constexpr std::size_t most = 64;
  if (!secret.starts_with(prefix)) return std::nullopt;
  secret.remove_prefix(prefix.size());
  // EVP_DecodeBlock takes spaces and padding anywhere, and does not say how many bytes were padding.
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t padding = secret.size() - std::min(secret.find_first_not_of(letters), secret.size());
  if (secret.size() % 4 != 0 || secret.size() > most * 2 || padding > 2 ||
      secret.find_first_not_of('=', secret.size() - padding) != std::string_view::npos) {
    return std::nullopt;
  }
  std::array<unsigned char, most * 2 / 4 * 3> key{};
  const int decoded = ::EVP_DecodeBlock(key.data(), bytes_of(secret), static_cast<int>(secret.size()));
  if (decoded < 0) return std::nullopt;
  const std::size_t size = static_cast<std::size_t>(decoded) - padding;
  if (size < least || size > most) return std::nullopt;
  return std::string(key.begin(), key.begin() + size);
}

std::string WebhookSigner::sign(std::string_view id, std::string_view timestamp,
                                std::string_view body) const {
  std::string all;
  for (const std::string& key : keys_) {
    const Digest digest = hmac(key, id, timestamp, body);
    std::array<unsigned char, digest_size * 2> text{};
    const int size = ::EVP_EncodeBlock(text.data(), digest.data(), static_cast<int>(digest.size()));
    if (!all.empty()) all += ' ';
    all += "v1,";
    all.append(reinterpret_cast<const char*>(text.data()), static_cast<std::size_t>(size));
  }
  return all;
}

}  // namespace postrider
