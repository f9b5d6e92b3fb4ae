// SPDX-License-Identifier: Apache-2.0
#include "postrider/logger_file.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "config/config_file.hpp"
#include "core/without_prefix.hpp"
#include "logger/settings.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

using config::ConfigFile;
using config::ConfigValue;
using logger::Setting;

constexpr std::array<std::string_view, 2> tables{"eventlog", "eventlog.async"};

template <class Options>
void apply(const ConfigFile& file, const ConfigValue& value, std::span<const Setting<Options>> settings,
           Options& options) {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const auto& setting) { return setting.name == value.name; });
  if (found == settings.end()) {
    std::vector<std::string_view> known;
    for (const auto& setting : settings) known.push_back(setting.name);
    file.refuse_unknown(value, known);
  }
  const std::string name = value.table + "." + value.name;
  if (found->is_text && value.kind != ConfigValue::Kind::text) {
    file.refuse(value.line, name + " cannot be " + value.text, "it must be a text, in quotes");
  }
  try {
    found->set(options, value.text);
  } catch (const Error& error) {
    file.refuse(value.line, without_prefix(error.what()));
  }
}

bool is_ours(std::string_view table) {
  return table == "eventlog" || table.starts_with("eventlog.") || table.starts_with("eventlog[");
}

}  // namespace

EventLogConfig read_event_log_config(const std::string& path, const char* const* environment) {
  const ConfigFile file = ConfigFile::read(path);
  for (const config::ConfigTable& table : file.tables()) {
    const bool known = std::find(tables.begin(), tables.end(), table.name) != tables.end();
    if (is_ours(table.name) && !known) file.refuse_unknown(table, tables);
  }
  EventLogConfig config;
  for (const ConfigValue& value : file.values()) {
    if (value.table.empty() && is_ours(value.name)) {
      file.refuse(value.line, value.name + " cannot be " + value.text, "it must be a table",
                  "write [eventlog] and its options below");
    }
    if (value.table == "eventlog") apply(file, value, logger::event_log_settings(), config);
    if (value.table == "eventlog.async") apply(file, value, logger::async_settings(), config.logger);
  }
  apply_environment(config, environment);
  config.logger.enabled = config.logger.enabled && config.enabled;
  // Who is switched off needs no address.
  config.client.enabled = config.logger.enabled || !config.client.base_url.empty();
  return config;
}

}  // namespace postrider
