// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/sink_set.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/without_prefix.hpp"
#include "postrider/error.hpp"
#include "postrider/publishers.hpp"

namespace postrider::daemon {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

/// Whether the message names the option: "url" in "cannot read the NATS URL: …".
bool names(std::string_view message, std::string_view option) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  for (auto from = message.begin();;) {
    const auto at = std::search(from, message.end(), option.begin(), option.end(), same);
    if (at == message.end()) return false;
    const auto end = at + static_cast<std::ptrdiff_t>(option.size());
    if ((at == message.begin() || !is_word(at[-1])) && (end == message.end() || !is_word(*end))) return true;
    from = at + 1;
  }
}

/// The line of the option that the message names, or that of the sink's table.
std::string place_of(const config::SinkConfig& config, std::string_view message) {
  std::string_view option;
  std::string place = config.where;
  for (const auto& [name, where] : config.places) {
    if (name == "type" || name.size() <= option.size() || !names(message, name)) continue;
    option = name;
    place = where;
  }
  return place;
}

/// What a sink refuses is told with its name, and where that stands.
Error refusal_of(const config::SinkConfig& config, const Error& error) {
  const std::string_view message = without_prefix(error.what());
  const std::string place = place_of(config, message);
  return {error.code(), (place.empty() ? "" : place + ": ") + "sinks." + config.name + " is refused",
          message};
}

}  // namespace

SinkSet::SinkSet(const std::vector<config::SinkConfig>& configs, const LogCallback& log) : log_(log) {
  std::vector<Error> refused;
  for (const config::SinkConfig& config : configs) {
    try {
      sinks_.emplace(config.name, Entry{config.make(log), config.type, config.key_tag});
    } catch (const Error& error) {
      refused.push_back(refusal_of(config, error));
    }
  }
  config::refuse_sinks(refused);
}

SinkSet::~SinkSet() {
  close();
}

std::shared_ptr<Publisher> SinkSet::publisher(const std::string& name) {
  std::shared_ptr<Publisher>& publisher = publishers_[name];
  if (publisher != nullptr) return publisher;
  if (const auto found = sinks_.find(name); found != sinks_.end()) {
    publisher = sink_publisher(found->second.sink, {.name = name, .key_tag = found->second.key_tag});
  } else if (name == "LogPublisher") {
    publisher = std::make_shared<LogPublisher>(log_);
  } else {
    publisher = std::make_shared<StatisticsPublisher>(name);
  }
  return publisher;
}

std::vector<SinkHealth> SinkSet::health() const {
  std::vector<SinkHealth> all;
  for (const auto& [name, entry] : sinks_) {
    all.push_back({name, entry.sink->healthy(), entry.type, entry.sink->trouble(), entry.sink->counts()});
  }
  return all;
}

void SinkSet::revive() {
  for (const auto& [name, entry] : sinks_) entry.sink->revive();
}

void SinkSet::close() noexcept {
  for (const auto& [name, entry] : sinks_) entry.sink->close();
}

}  // namespace postrider::daemon
