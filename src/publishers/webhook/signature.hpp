// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace postrider {

/// Signatures as Standard Webhooks has them: HMAC-SHA256 of "id.timestamp.body", one for each secret.
class WebhookSigner {
 public:
  /// The bytes of "whsec_…"; nothing when it is not one, or not 24 to 64 bytes long.
  [[nodiscard]] static std::optional<std::string> key_of(std::string_view secret);

  explicit WebhookSigner(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  [[nodiscard]] bool signs() const noexcept { return !keys_.empty(); }
  /// "v1,… v1,…", in the order of the keys.
  [[nodiscard]] std::string sign(std::string_view id, std::string_view timestamp,
                                 std::string_view body) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace postrider
