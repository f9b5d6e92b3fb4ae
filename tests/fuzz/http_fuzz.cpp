// SPDX-License-Identifier: Apache-2.0
// What a client may send: bytes into a Session, through one end of a pair of sockets, and its answers out of
// it. The server's own code from the first byte to the last; only the listening, the worker threads and TLS
// are left out, so that one input takes one way.
//
// The first byte of an input says in how many pieces the rest arrives.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "app/http/session.hpp"
#include "fuzz/require.hpp"

namespace postrider::http {
namespace {

using test::require;

constexpr std::size_t body_limit = 512;
constexpr std::size_t header_bytes = 1024;
constexpr std::size_t most_pieces = 32;
constexpr std::size_t stream_bytes = 1024;

/// How many answers handlers have given in one input, but for streams.
std::size_t handled = 0;

/// Tells back what it was asked, as JSON.
void echo(const Request& request, const Reply& reply) {
  ++handled;
  require(request.body.size() <= body_limit, "a handler gets no larger body than its route takes");
  require(!request.path.empty(), "a request that has a route has a path");
  boost::json::object answer;
  answer["segments"] = request.path.size();
  answer["query"] = request.query.size();
  answer["bytes"] = request.body.size();
  require(request.header("Host").empty() || !request.headers.empty(), "a header that is found is there");
  reply({.body = boost::json::serialize(answer)});
}

Router routes() {
  Router router;
  const auto add = [&](Method method, const char* pattern, std::size_t limit) {
    router.add(
        {.method = method, .pattern = pattern, .lane = Lane::direct, .body_limit = limit, .handler = echo});
  };
  add(Method::get, "/", 0);
  add(Method::get, "/v1/events", 0);
  add(Method::get, "/v1/events/{id}", 0);
  add(Method::get, "/v1/events/latest", 0);
  add(Method::post, "/v1/events", body_limit);
  add(Method::put, "/v1/{kind}/{id}", body_limit);
  add(Method::remove, "/v1/{kind}/{id}", 0);
  router.add({.method = Method::get,
              .pattern = "/stream",
              .lane = Lane::direct,
              .handler = [](const Request&, const Reply& reply) {
                auto stream = std::make_shared<BodyStream>(stream_bytes);
                reply({.content_type = "text/plain", .stream = stream});
                (void)stream->write("{\"part\":1}\n");
                stream->close();
              }});
  return router;
}

Shared& server() {
  static Shared shared(routes(), ServerOptions{.write_workers = 1,
                                               .read_workers = 1,
                                               .body_memory = 4096,
                                               .header_bytes = header_bytes,
                                               .allowed_hosts = {"localhost", "127.0.0.1"},
                                               .log = [](LogLevel, std::string_view) {}});
  return shared;
}

/// One session, and the client's end of its connection.
class Connection {
 public:
  Connection() {
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_) == 0,
            "sockets can be had");
    net::ip::tcp::socket socket(net::make_strand(io_));
    socket.assign(net::ip::tcp::v4(), ends_[0]);  // a stream of bytes like any other
    session_ = std::make_shared<Session>(std::move(socket), nullptr, server(),
                                         [this](const Session*) { gone_ = true; });
    session_->start();
    session_.reset();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(ends_[1]); }

  void send(std::string_view bytes) {
    while (!bytes.empty() && !gone_) {
      const ssize_t sent = ::send(ends_[1], bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
      serve();
      if (sent < 0 && errno != EAGAIN) return;  // closed for us
    }
  }
  /// No more is sent: from here on the session must come to its end by itself.
  void finish() {
    ::shutdown(ends_[1], SHUT_WR);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point until = Clock::now() + std::chrono::seconds{10};
    while (!gone_) {
      serve();
      if (gone_) break;
      require(Clock::now() < until, "a session ends when its client has said all");
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds{1});
    }
    take();
  }
  [[nodiscard]] const std::string& answers() const { return answers_; }

 private:
  void serve() {
    io_.restart();
    io_.poll();
    take();
  }
  void take() {
    char bytes[4096];
    for (;;) {
      const ssize_t got = ::recv(ends_[1], bytes, sizeof bytes, 0);
      if (got <= 0) return;
      answers_.append(bytes, static_cast<std::size_t>(got));
    }
  }

  bool gone_ = false;
  int ends_[2]{};
  std::string answers_;
  net::io_context io_;
  std::shared_ptr<Session> session_;
};

std::string_view header_of(std::string_view head, std::string_view name) {
  const std::size_t at = head.find("\r\n" + std::string(name) + ": ");
  if (at == std::string_view::npos) return {};
  const std::size_t from = at + name.size() + 4;
  return head.substr(from, std::min(head.find("\r\n", from), head.size()) - from);
}

void check_problem(std::string_view body) {
  boost::json::error_code error;
  const boost::json::value value =
      boost::json::parse(boost::json::string_view(body.data(), body.size()), error);
  require(!error && value.is_object(), "a refusal is JSON");
  require(value.get_object().contains("code"), "a refusal has a code");
  require(value.get_object().contains("hint"), "a refusal has a hint");
}

/// Whole answers, one after the other, and nothing besides. Returns how many came from handlers.
std::size_t check_answers(std::string_view rest) {
  std::size_t good = 0;
  while (!rest.empty()) {
    require(rest.starts_with("HTTP/1.") && rest.size() > 12, "what is answered is HTTP");  // 1.0: streams
    const std::size_t end = rest.find("\r\n\r\n");
    require(end != std::string_view::npos, "the head of an answer is whole");
    const std::string_view head = rest.substr(0, end);
    rest.remove_prefix(end + 4);
    int status = 0;
    std::from_chars(head.data() + 9, head.data() + 12, status);
    if (status == 100) continue;
    require(status == 200 || (status >= 400 && status < 500) || status == 503 || status == 505,
            "it is the client's fault, or the server is busy");
    require(!header_of(head, "Date").empty() && !header_of(head, "Content-Type").empty(),
            "an answer has its headers");
    if (header_of(head, "Content-Length").empty()) {
      // A stream: the last on its connection, and cut off when the client has gone.
      require(status == 200, "a refusal says how long it is");
      return good;
    }
    good += status == 200 ? 1 : 0;
    const std::string_view length = header_of(head, "Content-Length");
    std::size_t bytes = 0;
    std::from_chars(length.data(), length.data() + length.size(), bytes);
    if (!rest.starts_with('{')) continue;  // to HEAD
    require(rest.size() >= bytes, "the body of an answer is whole");
    if (status != 200) check_problem(rest.substr(0, bytes));
    rest.remove_prefix(bytes);
  }
  return good;
}

void run(std::string_view input) {
  if (input.empty()) return;
  const std::size_t pieces = 1 + static_cast<unsigned char>(input.front()) % most_pieces;
  input.remove_prefix(1);
  const std::size_t piece = std::max<std::size_t>(1, input.size() / pieces);
  handled = 0;
  std::size_t good = 0;
  {
    Connection connection;
    while (!input.empty()) {
      connection.send(input.substr(0, piece));
      input.remove_prefix(std::min(piece, input.size()));
    }
    connection.finish();
    good = check_answers(connection.answers());
  }
  require(good == handled, "what a handler has answered arrives");
  require(server().budget.used() == 0, "a session that is gone holds no memory");
}

}  // namespace
}  // namespace postrider::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  postrider::http::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
