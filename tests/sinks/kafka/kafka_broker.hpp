// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sinks/receiver.hpp"
#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

struct rd_kafka_s;

namespace postrider::test {

struct KafkaHandleDeleter {
  void operator()(rd_kafka_s* handle) const noexcept;
};
using KafkaHandle = std::unique_ptr<rd_kafka_s, KafkaHandleDeleter>;

/// A real broker of our own, see scripts/kafka. Starting one takes seconds, so the tests of a program share
/// it; each has its own topic.
class KafkaBroker {
 public:
  [[nodiscard]] static KafkaBroker& shared();

  KafkaBroker() : KafkaBroker(std::string()) {}
  /// With everything of it in this folder; empty: one of its own.
  explicit KafkaBroker(std::string folder);
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// Where clients must say who they are.
  [[nodiscard]] std::string login_address() const;
  /// Returns its name, which nobody has used before.
  std::string create_topic(int partitions, const std::map<std::string, std::string>& config = {});
  void create_topic(const std::string& name, int partitions,
                    const std::map<std::string, std::string>& config = {});
  void delete_topic(const std::string& name);

  void kill();
  void start();  ///< nothing to do when it runs
  void freeze();
  void thaw();

 private:
  void await_answer();

  TempDir own_folder_;
  const std::string folder_;
  std::unique_ptr<ChildProcess> process_;
  std::string address_;
  int topics_ = 0;
};

/// What is in a topic, read by a consumer of the library alone.
class KafkaReader {
 public:
  KafkaReader(const std::string& brokers, std::string topic);
  /// Everything up to now. In the order of each partition.
  [[nodiscard]] const std::vector<Received>& read();
  /// Of each message of `read`.
  [[nodiscard]] const std::vector<std::int32_t>& partitions() const noexcept { return partitions_; }

 private:
  void assign();

  std::string topic_;
  KafkaHandle handle_;
  std::map<std::int32_t, std::int64_t> next_;
  std::vector<Received> all_;
  std::vector<std::int32_t> partitions_;
};

}  // namespace postrider::test
