// SPDX-License-Identifier: Apache-2.0
// postrider publish
#include <boost/json.hpp>
#include <iostream>

#include "app/cli/admin_options.hpp"
#include "app/cli/event_input.hpp"
#include "core/age.hpp"
#include "postrider/error.hpp"
#include "postrider/event.hpp"
#include "storage/outbox_store.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

struct PublishCommandOptions : AdminOptions {
  std::string type{};
  std::string data = "{}";
  std::string id{};
  std::string aggregate{};
  std::string tenant{};
  std::string key{};
  std::vector<std::string> headers{};
  std::string deliver_at{};
  std::string delay{};
};

Event event_of(const PublishCommandOptions& options) {
  EventBuilder builder = Event::builder(options.type);
  builder.json(read_json("--data", options.data));
  if (!options.id.empty()) builder.id(EventId(options.id));
  if (!options.aggregate.empty()) {
    const std::size_t slash = options.aggregate.find('/');
    if (slash == std::string::npos) {
      throw Error(ErrorCode::invalid_argument, "--aggregate '" + options.aggregate + "' is refused",
                  "it has no /", "write its type and its id: Order/42");
    }
    builder.aggregate(options.aggregate.substr(0, slash), options.aggregate.substr(slash + 1));
  }
  if (!options.tenant.empty()) builder.tenant(options.tenant);
  if (!options.key.empty()) builder.ordering_key(options.key);
  for (const std::string& header : options.headers) {
    auto [name, value] = name_and_value("--header", header);
    builder.header(std::move(name), std::move(value));
  }
  if (!options.deliver_at.empty()) builder.deliver_at(time_of_option("--deliver-at", options.deliver_at));
  if (!options.delay.empty()) builder.deliver_at(Clock::system().now() + parse_age("--delay", options.delay));
  return builder.build();
}

/// False when an event with this id is there already.
bool insert(Storage& storage, const Event& event) {
  const NewOutboxRow row{.event = &event, .ordering_key = event.ordering_key()};
  try {
    Transaction tx = storage.begin();
    storage.outbox_store().insert(tx, {}, {&row, 1});
    tx.commit();
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::conflict && OutboxAdmin(storage).find(event.id())) {
      return false;
    }
    throw;
  }
}

int run_publish(const PublishCommandOptions& options) {
  const Event event = event_of(options);  // before a database is asked for anything
  const std::unique_ptr<Storage> storage = open_for(options);
  storage->outbox_store().check_schema();
  const bool created = insert(*storage, event);
  if (options.format == Format::json) {
    std::cout << json::serialize(
                     json::object{{"id", event.id().view()}, {"status", created ? "created" : "duplicate"}})
              << '\n';
    return 0;
  }
  std::cout << event.id().view() << '\n';
  if (!created) std::cerr << "postrider: it was there already, and stays as it is\n";
  return 0;
}

}  // namespace

void add_publish_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<PublishCommandOptions>();
  CLI::App& command = *app.add_subcommand("publish", "Put an event into the outbox, and say its id");
  command.add_option("type", options->type, "What has happened: OrderPlaced")->type_name("TYPE")->required();
  command.add_option("--data", options->data, "The payload: JSON, @file, or - for standard input")
      ->type_name("JSON")
      ->capture_default_str();
  command.add_option("--aggregate", options->aggregate, "What it is about: Order/42")->type_name("TYPE/ID");
  command.add_option("--tenant", options->tenant, "Whose it is")->type_name("ID");
  command.add_option("--key", options->key, "Events of the same key are delivered in order")
      ->type_name("KEY");
  command.add_option("--header", options->headers, "May be given several times")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  CLI::Option* const at =
      command.add_option("--deliver-at", options->deliver_at, "Not before this time")->type_name("TIME");
  command.add_option("--delay", options->delay, "Not before so long from now: 30s, 10m")
      ->type_name("AGE")
      ->excludes(at);
  command.add_option("--id", options->id, "Its id; one that is there already is not published again")
      ->type_name("ID");
  add_admin_options(command, *options);
  when_chosen(command, chosen, options, run_publish);
}

}  // namespace postrider::cli
