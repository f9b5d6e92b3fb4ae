// SPDX-License-Identifier: Apache-2.0
#include "app/sinks/sink_kinds.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/sinks/kind.hpp"
#include "core/nearest.hpp"
#include "postrider/file_sink.hpp"

namespace postrider::sinks {
namespace {

using config::Section;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// It may come, as one that is mounted; but mostly the path is misspelt, and the first event would tell.
void warn_of_missing_folder(const FileSinkOptions& options, const LogCallback& log) {
  std::error_code error;
  const fs::path folder = fs::absolute(options.path, error).parent_path();
  if (error || fs::is_directory(folder, error)) return;
  log(LogLevel::warning, "postrider: sink '" + options.name + "' cannot write to " + options.path +
                             ": there is no folder " + folder.string() +
                             "; its events wait until there is. Hint: mkdir -p " + folder.string() +
                             ", or is the path right?");
}

Make read_file(Section& section, const Common& common) {
  FileSinkOptions options;
  options.name = common.name;
  options.source = common.cloud_events.source;
  options.limits = common.limits;
  section.text("path", options.path)
      .count("max-bytes", options.max_bytes, 1024, std::size_t{1} << 40U)
      .count("keep", options.keep, 0, 1'000'000)
      .flag("sync", options.sync)
      .finish();
  if (options.path.empty()) section.refuse("path", "it is missing", "write path = \"events.jsonl\"");
  return [make = make_by(file_sink, options), options](const LogCallback& log) {
    warn_of_missing_folder(options, log);
    return make(log);
  };
}

struct Kind {
  std::string_view name;
  Make (*read)(Section& section, const Common& common);  ///< null: not in this build
};

constexpr std::array all_kinds {
  Kind{"file", read_file},
#if defined(POSTRIDER_WITH_KAFKA)
      Kind{"kafka", read_kafka},
#else
      Kind{"kafka", nullptr},
#endif
#if defined(POSTRIDER_WITH_NATS)
      Kind{"nats", read_nats},
#else
      Kind{"nats", nullptr},
#endif
#if defined(POSTRIDER_WITH_RABBITMQ)
      Kind{"rabbitmq", read_rabbitmq},
#else
      Kind{"rabbitmq", nullptr},
#endif
#if defined(POSTRIDER_WITH_REDIS)
      Kind{"redis", read_redis},
#else
      Kind{"redis", nullptr},
#endif
#if defined(POSTRIDER_WITH_WEBHOOK)
      Kind{"webhook", read_webhook},
#else
      Kind{"webhook", nullptr},
#endif
};

constexpr std::array<std::string_view, 2> built_in{"LogPublisher", "StatisticsPublisher"};

}  // namespace

config::SinkConfig read_sink(config::Source& source, const std::string& name) {
  constexpr std::array<std::pair<std::string_view, CloudEventsMode>, 2> modes{
      {{"binary", CloudEventsMode::binary}, {"structured", CloudEventsMode::structured}}};
  Common common{.name = name};
  config::SinkConfig sink{.name = name};
  Section section(source, "sinks." + name);
  section.text("type", sink.type)
      .text("key-tag", sink.key_tag)
      .text("source", common.cloud_events.source)
      .word<CloudEventsMode>("cloudevents", common.cloud_events.mode, modes)
      .time("timeout-ms", common.timeout, 1ms, 10ms, 10min)
      .count("rate", common.limits.rate, 0, 10'000'000)
      .number("breaker-threshold", common.limits.breaker_threshold, 0, 1000)
      .time("breaker-window-ms", common.limits.breaker_window, 1ms, 1ms, 24h)
      .time("breaker-reset-ms", common.limits.breaker_reset, 1ms, 1ms, 24h);
  const auto kind = std::find_if(all_kinds.begin(), all_kinds.end(),
                                 [&](const Kind& one) { return one.name == sink.type; });
  const std::vector<std::string_view> names = kinds();
  if (kind == all_kinds.end() || kind->read == nullptr) {
    std::string all;
    for (const std::string_view one : names) all += (all.empty() ? "" : ", ") + std::string(one);
    section.refuse("type",
                   kind != all_kinds.end() ? "this build has no sink of the type '" + sink.type + "'"
                   : sink.type.empty()     ? std::string("it is missing")
                                           : "there is no sink of the type '" + sink.type + "'",
                   "there are: " + all);
    return sink;
  }
  sink.make = kind->read(section, common);
  return sink;
}

std::vector<std::string_view> kinds() {
  std::vector<std::string_view> names;
  for (const Kind& kind : all_kinds) {
    if (kind.read != nullptr) names.push_back(kind.name);
  }
  return names;
}

bool is_built_in_publisher(std::string_view name) noexcept {
  return std::find(built_in.begin(), built_in.end(), name) != built_in.end();
}

std::string nearest_name(std::string_view name, std::span<const std::string_view> names) {
  return std::string(nearest_of(name, names));
}

}  // namespace postrider::sinks
