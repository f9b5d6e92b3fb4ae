// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/detail/sync.hpp"
#include "postrider/kafka_sink.hpp"

namespace postrider::kafka {

struct ConfDeleter {
  void operator()(rd_kafka_conf_t* conf) const noexcept { rd_kafka_conf_destroy(conf); }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, ConfDeleter>;

/// What librdkafka's threads say, without the user's secrets. The last complaint is the reason that a send
/// which came to nothing gives. Thread-safe.
class Complaints {
 public:
  Complaints(LogCallback log, std::vector<std::string> secrets);

  void hear(int level, std::string_view text) POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] std::string last() const POSTRIDER_EXCLUDES(mutex_);
  void forget() POSTRIDER_EXCLUDES(mutex_);
  /// `text` with every secret in it made unreadable.
  [[nodiscard]] std::string without_secrets(std::string text) const;

 private:
  const LogCallback log_;
  const std::vector<std::string> secrets_;
  mutable Mutex mutex_;
  std::string last_ POSTRIDER_GUARDED_BY(mutex_);
};

/// The values of properties that nobody may read, the longest first.
[[nodiscard]] std::vector<std::string> secrets_of(const KafkaSinkOptions& options);

/// The sink's properties and the user's. Throws Error(invalid_argument) for one that librdkafka does not
/// take.
[[nodiscard]] Conf make_conf(const KafkaSinkOptions& options, const Complaints& complaints);

}  // namespace postrider::kafka
