// SPDX-License-Identifier: Apache-2.0
// postrider explain
#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/cli/command.hpp"
#include "app/cli/explanations.hpp"
#include "app/cli/output.hpp"
#include "core/nearest.hpp"
#include "postrider/error.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

struct ExplainOptions {
  std::string code{};
  Format format = Format::table;
};

json::object json_of(const Explanation& one) {
  return {{"code", one.code}, {"kind", one.kind}, {"meaning", one.meaning}, {"advice", one.advice}};
}

int list_all(Format format) {
  Table table({{"code", "CODE"}, {"kind", "WHAT"}, {.name = "meaning", .title = "MEANING", .cut = true}});
  for (const Explanation& one : explanations()) table.add(json_of(one));
  table.print(std::cout, format, "", colour_wanted());
  return 0;
}

std::vector<std::string> all_codes() {
  std::set<std::string> codes;  // a code may stand there more than once
  for (const Explanation& one : explanations()) codes.emplace(one.code);
  return {codes.begin(), codes.end()};
}

/// The library writes storage_full, the API storage-full: both are understood.
std::string with(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

int run_explain(const ExplainOptions& options) {
  if (options.code.empty()) return list_all(options.format);
  const std::string wanted = with(options.code, '-', '_');
  json::array found;
  std::vector<std::string_view> codes;
  for (const Explanation& one : explanations()) {
    codes.push_back(one.code);
    if (with(std::string(one.code), '-', '_') != wanted) continue;
    if (options.format == Format::table) {
      std::cout << (found.empty() ? "" : "\n") << one.code << " (" << one.kind << ")\n  " << one.meaning
                << "\n  → " << one.advice << '\n';
    }
    found.push_back(json_of(one));
  }
  if (found.empty()) {
    // Of one letter or two anything is near.
    constexpr std::size_t shortest = 3;
    const std::string_view nearest =
        options.code.size() < shortest ? std::string_view() : nearest_of(options.code, codes);
    throw Error(
        ErrorCode::invalid_argument, "cannot explain '" + options.code + "'", "there is no such code",
        nearest.empty() ? "postrider explain lists them all" : "did you mean " + std::string(nearest) + "?");
  }
  if (options.format == Format::json) std::cout << json::serialize(found) << '\n';
  return 0;
}

}  // namespace

void add_explain_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App& command = *app.add_subcommand("explain", "What a code means, and what to do about it");
  command
      .add_option("code", options->code,
                  "Of an error, an answer or a finding of the API, a loss, or an exit; without it, all")
      ->type_name("CODE")
      ->check(offers(all_codes()));
  command.add_option("-o,--output", options->format, "table or json")
      ->type_name("FORMAT")
      ->transform(one_of<Format>({{"table", Format::table}, {"json", Format::json}}));
  when_chosen(command, chosen, options, run_explain);
}

}  // namespace postrider::cli
