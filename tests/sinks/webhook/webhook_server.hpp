// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {

/// A request that has come.
struct Posted {
  std::string path;
  int status = 0;                   ///< that it was answered with
  std::vector<std::string> beside;  ///< keys of those that were being answered at that moment
  int connection = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

/// receiver.py as a process of our own, on a free port.
class WebhookServer {
 public:
  WebhookServer() { start(); }
  /// With TLS.
  WebhookServer(std::string certificate, std::string key)
      : certificate_(std::move(certificate)), key_(std::move(key)) {
    start();
  }

  /// "/path?status=429": see receiver.py.
  [[nodiscard]] std::string url(const std::string& path = "/") const;
  [[nodiscard]] std::string port() const { return port_; }
  [[nodiscard]] const std::vector<Posted>& posted();
  /// One line of JSON per request.
  [[nodiscard]] std::string file() const { return folder_.file("posted.jsonl"); }

  void start();
  void kill() { process_.reset(); }
  void freeze() { process_->freeze(); }
  void thaw();

 private:
  TempDir folder_;
  std::string certificate_{};
  std::string key_{};
  std::string port_ = "0";
  std::optional<ChildProcess> process_;
  std::vector<Posted> posted_;
  std::size_t read_ = 0;  // bytes of the file
};

}  // namespace postrider::test
