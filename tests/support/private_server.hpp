// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "postrider/storage.hpp"

namespace postrider::test {

/// A database server of our own, for tests that kill it. Removed with its data at the end; see
/// scripts/test-server.
class PrivateServer {
 public:
  /// Starts it. Throws std::runtime_error when that fails.
  explicit PrivateServer(BackendKind kind);
  ~PrivateServer();
  PrivateServer(const PrivateServer&) = delete;
  PrivateServer& operator=(const PrivateServer&) = delete;

  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  /// SIGKILL to the server and all its children.
  void kill();
  /// On the same data and port; returns when it answers.
  void start();

 private:
  std::string run(const std::string& verb) const;

  std::string kind_;
  std::string folder_;
  std::string url_;
};

}  // namespace postrider::test
