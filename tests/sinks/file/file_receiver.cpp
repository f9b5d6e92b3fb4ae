// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include "postrider/file_sink.hpp"
#include "sinks/receiver.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {
namespace {

class FileReceiver final : public Receiver {
 public:
  std::shared_ptr<Sink> sink(const SinkSettings& settings) override {
    return file_sink({.path = path(), .max_bytes = 100'000, .limits = settings.limits});
  }
  std::vector<Received> received() override {
    std::vector<Received> all;
    for (int number = 1; std::filesystem::exists(path() + "." + std::to_string(number)); ++number) {
      read(path() + "." + std::to_string(number), all);
    }
    read(path(), all);
    return all;
  }
  bool is_server() const override { return false; }
  bool speaks(CloudEventsMode mode) const override { return mode == CloudEventsMode::structured; }

 private:
  std::string path() const { return folder_.file("events.jsonl"); }
  static void read(const std::string& path, std::vector<Received>& all) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) all.push_back({.body = line});
  }

  TempDir folder_;
};

}  // namespace

std::unique_ptr<Receiver> make_receiver() {
  return std::make_unique<FileReceiver>();
}

}  // namespace postrider::test
