// SPDX-License-Identifier: Apache-2.0
// postrider dev: everything on one SQLite file, to try it out.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/cli/command.hpp"
#include "app/cli/run_daemon.hpp"
#include "app/config/daemon_config.hpp"
#include "app/http/listen_address.hpp"
#include "config/section.hpp"
#include "postrider/error.hpp"

namespace postrider::cli {
namespace {

namespace fs = std::filesystem;

struct DevOptions {
  std::string folder = "postrider-dev";
  std::string listen = "127.0.0.1:8080";
  bool listen_given = false;
};

std::string default_config(const fs::path& folder, const std::string& listen) {
  const std::string database = config::toml_text("sqlite:" + (folder / "events.db").string());
  const std::string file = config::toml_text((folder / "events.jsonl").string());
  return "# Made by `postrider dev`. Change what you like: it is not written again.\n"
         "[storage]\nurl = " +
         database + "\n\n[server]\nlisten = " + config::toml_text(listen) +
         "\n\n# Where events go: one line of JSON each.\n[sinks.file]\ntype = \"file\"\npath = " + file +
         "\n\n# Everything that is published into the outbox.\n[[outbox.routes]]\nsink = \"file\"\n"
         "\n# Everything that is appended to the event store.\n[relay.topics.all]\npublishers = [\"file\"]\n"
         "\n[eventlog]\nenabled = true\n";
}

/// The configuration's path; made when it is not there.
fs::path prepare(const DevOptions& options) {
  std::error_code error;
  const fs::path folder = fs::absolute(options.folder, error);
  if (!error) fs::create_directories(folder, error);
  fs::path path = folder / "postrider.toml";
  if (!error && fs::exists(path)) return path;
  if (!error) {
    std::ofstream file(path);
    file << default_config(folder, options.listen);
    file.close();
    if (file) return path;
  }
  throw Error(ErrorCode::unavailable, "cannot make " + path.string(),
              error ? error.message() : "it was refused", "choose another folder with --folder");
}

int run_dev(const DevOptions& options) {
  if (options.listen_given) (void)http::parse_listen(options.listen);  // before it stands in the file
  const fs::path path = prepare(options);
  // A port that is taken by somebody else now may be free at the next run: the file stays as it is.
  const auto read = [path, listen = options.listen_given ? options.listen : std::string()] {
    config::ReadConfig result = config::read_daemon_config(path.string());
    if (!listen.empty()) result.config.server.listen = listen;
    return result;
  };
  config::ReadConfig first = read();
  const std::string folder = path.parent_path().string();
  std::ostringstream greeting;
  greeting << "postrider: the configuration is " << path.string() << "\n\nTry in another terminal:\n\n"
           << "  export POSTRIDER_CONFIG=" << path.string() << '\n'
           << "  postrider publish OrderPlaced --data '{\"id\": 1}'\n"
           << "  postrider store append OrderPlaced --tag order=1 --data '{\"id\": 1}'\n"
           << "  tail -f " << folder << "/events.jsonl\n"
           << "  postrider status --watch\n"
           << "  postrider tail -f                    # the event store; --from outbox what was published\n"
           << "  curl http://" << first.config.server.listen << "/api/topics\n\n";
  return run_daemon(
      first.config,
      {.greeting = greeting.str(), .read_again = read, .effective = std::move(first.effective)});
}

}  // namespace

void add_dev_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<DevOptions>();
  CLI::App& command = *app.add_subcommand("dev", "Run everything on one SQLite file, to try it out");
  command.add_option("--folder", options->folder, "Where its files are; made when it is not there")
      ->type_name("FOLDER")
      ->capture_default_str();
  command.add_option("--listen", options->listen, "Where it listens; else as the configuration says")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str()
      ->each([given = &options->listen_given](const std::string&) { *given = true; });
  when_chosen(command, chosen, options, run_dev);
}

}  // namespace postrider::cli
