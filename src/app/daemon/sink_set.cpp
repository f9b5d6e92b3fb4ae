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

/// The same as it stands in the table: "kafka.acks" is told of as 'acks', "timeout-ms" as timeout.
bool names_as(std::string_view message, std::string_view option) {
  const std::size_t dot = option.find('.');
  for (const std::string_view unit : {"-ms", "-seconds"}) {
    if (option.ends_with(unit) && names(message, option.substr(0, option.size() - unit.size()))) return true;
  }
  return names(message, option) ||
         (dot != std::string_view::npos && names(message, "'" + std::string(option.substr(dot + 1)) + "'"));
}

/// The line of the option that the message names, or that of the sink's table.
std::string place_of(const config::SinkConfig& config, std::string_view message) {
  std::string_view option;
  std::string place = config.where;
  for (const auto& [name, where] : config.places) {
    if (name == "type" || name.size() <= option.size() || !names_as(message, name)) continue;
    option = name;
    place = where;
  }
  return place;
}

/// What sinks say to those who set their options in C++, for those who set them in a file:
/// "NatsSinkOptions::tls_cert" is tls-cert. Where the file's name stands before it, that is enough.
std::string in_words_of_a_file(std::string_view message) {
  std::string said(message);
  for (const std::string_view owner : {"SinkOptions::", "SinkLimits::"}) {
    for (std::size_t at = said.find(owner); at != std::string::npos; at = said.find(owner, at)) {
      std::size_t begin = at;
      while (begin > 0 && is_word(said[begin - 1])) --begin;
      std::size_t end = at + owner.size();
      while (end < said.size() && is_word(said[end])) ++end;
      const std::string_view before = std::string_view(said).substr(0, begin);
      if (before.ends_with(" (") && said.compare(end, 1, ")") == 0) {
        said.erase(begin - 2, end + 1 - (begin - 2));
      } else if (before.ends_with(", ")) {
        said.erase(begin - 2, end - (begin - 2));
      } else {
        std::replace(said.begin() + static_cast<std::ptrdiff_t>(begin),
                     said.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
        said.erase(begin, at + owner.size() - begin);
      }
      at = 0;
    }
  }
  return said;
}

/// What a sink refuses is told with its name, and where that stands.
Error refusal_of(const config::SinkConfig& config, const Error& error) {
  const std::string message = in_words_of_a_file(without_prefix(error.what()));
  const std::string place = place_of(config, message);
  return {error.code(), (place.empty() ? "" : place + ": ") + "sinks." + config.name + " is refused",
          message};
}

}  // namespace

std::vector<Error> refused_sinks(const std::vector<config::SinkConfig>& configs) {
  std::vector<Error> refused;
  for (const config::SinkConfig& config : configs) {
    try {
      (void)config.make([](LogLevel, std::string_view) {});
    } catch (const Error& error) {
      refused.push_back(refusal_of(config, error));
    }
  }
  return refused;
}

SinkSet::SinkSet(const std::vector<config::SinkConfig>& configs, const LogCallback& log) : log_(log) {
  std::vector<Error> refused;
  for (const config::SinkConfig& config : configs) {
    try {
      sinks_.emplace(config.name, Entry{config.make(log), config.type, config.key_tag});
    } catch (const Error& error) {
      refused.push_back(refusal_of(config, error));
    }
  }
  config::refuse_all(refused);
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
