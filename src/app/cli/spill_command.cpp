// SPDX-License-Identifier: Apache-2.0
// postrider spill show: what the logger has put aside. Reads only, and takes no lock: the logger may be
// running.
#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <iostream>
#include <map>

#include "app/api/json_values.hpp"
#include "app/cli/admin_options.hpp"
#include "app/daemon/spill_report.hpp"
#include "logger/spill_names.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

struct SpillOptions {
  std::string folder{};
  Format format = Format::table;
};

/// Nothing there is also what a misspelt name shows.
void warn_of_wrong_folder(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator files(folder, error);
  const bool used = error || std::any_of(begin(files), end(files), [](const auto& file) {
                      return logger::is_logger_file(file.path().filename().string());
                    });
  if (!used) {
    std::cerr << "postrider: no logger has used " << folder
              << ": none of its files is there. Hint: name the logger's spillover_path\n";
  }
}

int run_show(const SpillOptions& options) {
  const json::object report = daemon::spill_report(options.folder, Clock::system().now());
  warn_of_wrong_folder(options.folder);
  if (options.format == Format::json) {
    std::cout << api::serialized(report) << '\n';
    return 0;
  }
  json::object head = report;
  head.erase("files");
  head.erase("rings");
  head.erase("gaps");
  head.erase("missing");
  print_object(std::cout, options.format, head, colour_wanted());
  const auto print = [&](const char* member, std::vector<Table::Column> columns) {
    const json::array& rows = report.at(member).as_array();
    if (rows.empty()) return;
    Table table(std::move(columns));
    for (const json::value& row : rows) table.add(row.as_object());
    std::cout << '\n';
    table.print(std::cout, options.format, "", colour_wanted());
  };
  print("files", {{"name", "FILE"},
                  {"kind", "KIND"},
                  {"bytes", "BYTES", true},
                  {"events", "EVENTS", true},
                  {"waiting", "WAITING", true},
                  {"foreign", "FOREIGN", true},
                  {"damaged", "DAMAGED", true},
                  {"firstSeq", "FIRST", true},
                  {"lastSeq", "LAST", true}});
  print("rings",
        {{"name", "RING"}, {"bytes", "BYTES", true}, {"events", "EVENTS", true}, {"oldest", "OLDEST"}});
  print("gaps", {{"first", "GIVEN UP FROM", true}, {"end", "TO BEFORE", true}});
  print("missing", {{"first", "MISSING FROM", true}, {"end", "TO BEFORE", true}});
  return 0;
}

}  // namespace

void add_spill_command(CLI::App& app, Chosen& chosen) {
  CLI::App& spill = add_group(app, "spill", "What a logger has put aside on disk");
  auto options = std::make_shared<SpillOptions>();
  CLI::App& show = *spill.add_subcommand("show", "Files, events, gaps and rings; also while the logger runs");
  show.add_option("folder", options->folder, "The logger's spillover_path")->type_name("FOLDER")->required();
  show.add_option("-o,--output", options->format, "table or json")
      ->type_name("FORMAT")
      ->transform(one_of<Format>({{"table", Format::table}, {"json", Format::json}}));
  when_chosen(show, chosen, options, run_show);
}

}  // namespace postrider::cli
