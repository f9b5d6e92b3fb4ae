// SPDX-License-Identifier: Apache-2.0
#include "publishers/nats/connection.hpp"

#include <algorithm>
#include <new>
#include <vector>

#include "publishers/nats/ack.hpp"
#include "publishers/nats/subject.hpp"

namespace postrider::nats {
namespace {

/// How long one write may wait for a server that does not read. It bounds how long `close` waits for it.
constexpr std::int64_t write_milliseconds = 2'000;

void must(natsStatus status, const char* what) {
  if (status == NATS_NO_MEMORY) throw std::bad_alloc();
  if (status != NATS_OK) throw Lost{std::string(what) + ": " + text_of(status)};
}

const char* or_null(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

std::unique_ptr<natsOptions, Free> library_options(const NatsSinkOptions& options, const Settings& settings,
                                                   Duration timeout) {
  natsOptions* made = nullptr;
  must(natsOptions_Create(&made), "cannot begin");
  std::unique_ptr<natsOptions, Free> all(made);
  std::vector<const char*> servers;
  for (const std::string& server : settings.servers) servers.push_back(server.c_str());
  must(natsOptions_SetServers(made, servers.data(), static_cast<int>(servers.size())), "cannot use the URL");
  must(natsOptions_SetName(made, "postrider"), "cannot begin");
  must(natsOptions_SetTimeout(made, milliseconds(timeout)), "cannot begin");
  must(natsOptions_SetAllowReconnect(made, false), "cannot begin");
  must(natsOptions_SetSendAsap(made, true), "cannot begin");
  must(natsOptions_SetWriteDeadline(made, std::min(milliseconds(options.timeout), write_milliseconds)),
       "cannot begin");
  must(natsOptions_SetNoEcho(made, false), "cannot begin");
  if (!settings.username.empty()) {
    must(natsOptions_SetUserInfo(made, settings.username.c_str(), settings.password.c_str()),
         "cannot log in");
  }
  if (!settings.token.empty()) must(natsOptions_SetToken(made, settings.token.c_str()), "cannot log in");
  if (!options.credentials_file.empty()) {
    must(natsOptions_SetUserCredentialsFromFiles(made, options.credentials_file.c_str(), nullptr),
         "cannot use credentials_file");
  }
  if (settings.tls) {
    must(natsOptions_SetSecure(made, true), "cannot use TLS");
    if (!options.tls_ca.empty()) {
      must(natsOptions_LoadCATrustedCertificates(made, options.tls_ca.c_str()), "cannot read tls_ca");
    }
    if (!options.tls_cert.empty()) {
      must(natsOptions_LoadCertificatesChain(made, options.tls_cert.c_str(), or_null(options.tls_key)),
           "cannot read tls_cert and tls_key");
    }
  }
  return all;
}

}  // namespace

std::int64_t milliseconds(Duration time) {
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(time).count());
}

std::string text_of(natsStatus status) {
  switch (status) {
    case NATS_CONNECTION_AUTH_FAILED:
      return "the server refuses the login. Hint: check user, password, token or credentials";
    case NATS_NO_SERVER:
      return "no server is there";
    case NATS_CONNECTION_CLOSED:
      return "the connection was closed";
    case NATS_TIMEOUT:
      return "no answer in time";
    case NATS_NO_SERVER_SUPPORT:
      return "the server is too old to know headers. Hint: use NATS 2.2 or newer with JetStream";
    case NATS_SSL_ERROR:
      return "TLS fails: the server's certificate is not trusted or not for this host, or the server wants "
             "one of "
             "ours. Hint: check tls_ca, tls_cert and the host's name";
    case NATS_SECURE_CONNECTION_REQUIRED:
      return "the server wants TLS. Hint: set tls, or write tls:// in the URL";
    case NATS_SECURE_CONNECTION_WANTED:
      return "the server has no TLS";
    default:
      // The library's own words for a status, which repeat nothing of ours.
      return natsStatus_GetText(status);
  }
}

Connection::Connection(const NatsSinkOptions& options, const Settings& settings, Duration timeout) {
  const std::unique_ptr<natsOptions, Free> all = library_options(options, settings, timeout);
  natsConnection* connected = nullptr;
  must(natsConnection_Connect(&connected, all.get()), "cannot connect");
  connection_.reset(connected);
  natsInbox* inbox = nullptr;
  must(natsInbox_Create(&inbox), "cannot make an inbox");
  const std::unique_ptr<char, Free> owned(inbox);
  inbox_ = std::string(inbox) + ".";
  natsSubscription* answers = nullptr;
  must(natsConnection_SubscribeSync(&answers, connected, (inbox_ + "*").c_str()),
       "cannot subscribe to an inbox");
  answers_.reset(answers);
}

Connection::~Connection() {
  // Before the subscription goes: libnats 3.4 does not hold on to one for which it is just taking a message.
  if (connection_ != nullptr) close();
}

void Connection::ensure_stream(const NatsSinkOptions& options, Duration timeout) {
  jsOptions js_options;
  must(jsOptions_Init(&js_options), "cannot begin");
  js_options.Wait = milliseconds(timeout);
  jsCtx* made = nullptr;
  must(natsConnection_JetStream(&made, connection_.get(), &js_options), "cannot begin");
  const std::unique_ptr<jsCtx, Free> context(made);
  jsStreamInfo* info = nullptr;
  jsErrCode code{};
  natsStatus status = js_GetStreamInfo(&info, made, options.stream.c_str(), nullptr, &code);
  std::unique_ptr<jsStreamInfo, Free> found(info);
  if (status == NATS_NOT_FOUND) {
    jsStreamConfig config;
    must(jsStreamConfig_Init(&config), "cannot begin");
    const std::string subjects = subjects_of(options.subject);
    const char* subject = subjects.c_str();
    config.Name = options.stream.c_str();
    config.Subjects = &subject;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    config.Replicas = options.replicas;
    config.Duplicates = std::chrono::duration_cast<std::chrono::nanoseconds>(options.duplicates).count();
    status = js_AddStream(&info, made, &config, nullptr, &code);
    found.reset(info);
  }
  if (status == NATS_OK) return;
  const std::string what = "cannot make the stream '" + options.stream + "': ";
  if (code != 0) {
    const char* said = nats_GetLastError(nullptr);  // null when there was nothing to say
    throw Lost{what + refusal_of(code, said != nullptr ? said : "no more").reason};
  }
  if (status == NATS_NO_RESPONDERS) throw Lost{what + "the server has no JetStream. Hint: start it with -js"};
  throw Lost{what + text_of(status)};
}

Message Connection::make(const std::string& subject, std::string_view reply_name,
                         std::string_view body) const {
  natsMsg* made = nullptr;
  const std::string reply = inbox_ + std::string(reply_name);
  must(natsMsg_Create(&made, subject.c_str(), reply.c_str(), body.data(), static_cast<int>(body.size())),
       "cannot make a message");
  return Message(made);
}

natsStatus Connection::next(Message& answer, Duration timeout) {
  natsMsg* got = nullptr;
  const natsStatus status = natsSubscription_NextMsg(&got, answers_.get(), milliseconds(timeout));
  answer.reset(got);
  return status;
}

std::string_view Connection::reply_name(const natsMsg& answer) const {
  std::string_view subject = natsMsg_GetSubject(&answer);
  if (!subject.starts_with(inbox_)) return {};
  return subject.substr(inbox_.size());
}

bool Connection::forbidden() const {
  const char* text = nullptr;
  return natsConnection_GetLastError(connection_.get(), &text) == NATS_NOT_PERMITTED;
}

}  // namespace postrider::nats
