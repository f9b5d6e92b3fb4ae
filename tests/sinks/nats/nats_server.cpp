// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/nats_server.hpp"

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "support/free_port.hpp"

namespace postrider::test {
namespace {

void must(natsStatus status, const std::string& what) {
  if (status == NATS_OK) return;
  const char* more = nats_GetLastError(nullptr);
  throw std::runtime_error(what + ": " + natsStatus_GetText(status) + " " + (more != nullptr ? more : ""));
}

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

Received read_message(natsMsg& message) {
  Received one;
  one.body.assign(natsMsg_GetData(&message), static_cast<std::size_t>(natsMsg_GetDataLength(&message)));
  const char** names = nullptr;
  int count = 0;
  if (natsMsgHeader_Keys(&message, &names, &count) != NATS_OK) return one;  // it has none
  for (int i = 0; i < count; ++i) {
    const std::string name = names[i];
    const char* value = nullptr;
    must(natsMsgHeader_Get(&message, names[i], &value), name);
    if (name == "content-type") {
      one.content_type = value;
    } else if (name.starts_with("ce-")) {
      one.attributes[name.substr(3)] = decoded(value);
    } else {
      one.headers[name] = value;
    }
  }
  std::free(static_cast<void*>(names));
  if (const auto key = one.attributes.find("partitionkey"); key != one.attributes.end())
    one.key = key->second;
  return one;
}

}  // namespace

NatsServer::NatsServer(Settings settings) : port_(free_port()), settings_(std::move(settings)) {
  std::ofstream file(folder_.file("nats.conf"));
  file << "listen: \"127.0.0.1:" << port_ << "\"\n" << settings_.config << "\n";
  if (settings_.jetstream) file << "jetstream { store_dir: \"" << folder_.file("data") << "\" }\n";
  file.close();
  start();
}

void NatsServer::start() {
  process_.emplace(std::vector<std::string>{"/usr/sbin/nats-server", "-c", folder_.file("nats.conf"), "-l",
                                            "/dev/stdout"});
  std::string said;
  while (const auto line = process_->read_line(std::chrono::seconds{30})) {
    said += *line + "\n";
    if (line->find("Server is ready") != std::string::npos) return;
  }
  throw std::runtime_error("nats-server does not start:\n" + said);
}

struct NatsServer::Access {
  struct Free {
    void operator()(natsOptions* one) const noexcept { natsOptions_Destroy(one); }
    void operator()(natsConnection* one) const noexcept { natsConnection_Destroy(one); }
    void operator()(jsCtx* one) const noexcept { jsCtx_Destroy(one); }
    void operator()(natsSubscription* one) const noexcept { natsSubscription_Destroy(one); }
  };
  std::unique_ptr<natsConnection, Free> connection{};
  std::unique_ptr<jsCtx, Free> context{};
};

NatsServer::Access NatsServer::open() const {
  natsOptions* options = nullptr;
  must(natsOptions_Create(&options), "options");
  const std::unique_ptr<natsOptions, Access::Free> owned(options);
  natsOptions_SetAllowReconnect(options, false);
  natsOptions_SetURL(options, ("nats://" + settings_.admin + "127.0.0.1:" + std::to_string(port_)).c_str());
  if (settings_.admin_tls) {
    natsOptions_SetSecure(options, true);
    natsOptions_SkipServerVerification(options, true);
  }
  Access access;
  natsConnection* connection = nullptr;
  must(natsConnection_Connect(&connection, options), "connect");
  access.connection.reset(connection);
  jsCtx* context = nullptr;
  must(natsConnection_JetStream(&context, connection, nullptr), "JetStream");
  access.context.reset(context);
  return access;
}

void NatsServer::add_stream(const std::function<void(jsStreamConfig&)>& change) {
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  const char* subject = "postrider.>";
  config.Name = "postrider";
  config.Subjects = &subject;
  config.SubjectsLen = 1;
  config.Storage = js_FileStorage;
  change(config);
  must(js_AddStream(nullptr, open().context.get(), &config, nullptr, nullptr), "add stream");
}

void NatsServer::update_stream(const std::function<void(jsStreamConfig&)>& change) {
  const Access access = open();
  jsStreamInfo* info = nullptr;
  must(js_GetStreamInfo(&info, access.context.get(), "postrider", nullptr, nullptr), "stream info");
  change(*info->Config);
  const natsStatus status = js_UpdateStream(nullptr, access.context.get(), info->Config, nullptr, nullptr);
  jsStreamInfo_Destroy(info);
  must(status, "update stream");
}

void NatsServer::publish(const std::string& subject, const std::string& body) {
  must(js_Publish(nullptr, open().context.get(), subject.c_str(), body.data(), static_cast<int>(body.size()),
                  nullptr, nullptr),
       "publish");
}

void NatsServer::each(const std::string& stream, const Visit& visit) const {
  const Access access = open();
  jsStreamInfo* info = nullptr;
  const natsStatus status = js_GetStreamInfo(&info, access.context.get(), stream.c_str(), nullptr, nullptr);
  if (status == NATS_NOT_FOUND) return;
  must(status, "stream info");
  const std::uint64_t count = info->State.Msgs;
  jsStreamInfo_Destroy(info);
  if (count == 0) return;
  jsSubOptions options;
  jsSubOptions_Init(&options);
  options.Ordered = true;
  options.Stream = stream.c_str();
  natsSubscription* subscription = nullptr;
  must(js_SubscribeSync(&subscription, access.context.get(), ">", nullptr, &options, nullptr), "subscribe");
  const std::unique_ptr<natsSubscription, Access::Free> owned(subscription);
  for (std::uint64_t i = 0; i < count; ++i) {
    natsMsg* message = nullptr;
    must(natsSubscription_NextMsg(&message, subscription, 10'000), "next message");
    const std::unique_ptr<natsMsg, decltype(&natsMsg_Destroy)> kept(message, &natsMsg_Destroy);
    visit(*message);
  }
  // Messages may still come: libnats 3.4 must not be taking one when the subscription goes.
  natsConnection_Close(access.connection.get());
}

std::vector<Received> NatsServer::messages_of(const std::string& stream) {
  std::vector<Received> all;
  each(stream, [&](natsMsg& message) { all.push_back(read_message(message)); });
  return all;
}

std::vector<std::string> NatsServer::subjects_of(const std::string& stream) {
  std::vector<std::string> all;
  each(stream, [&](natsMsg& message) { all.emplace_back(natsMsg_GetSubject(&message)); });
  return all;
}

}  // namespace postrider::test
