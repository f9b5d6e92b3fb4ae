// SPDX-License-Identifier: Apache-2.0
// One connection. Beast and Asio are included here and nowhere else but in the files that include this.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/http/body_stream.hpp"
#include "app/http/budget.hpp"
#include "app/http/exchange.hpp"
#include "app/http/server.hpp"
#include "app/http/transport.hpp"
#include "app/http/worker_pool.hpp"

namespace postrider::http {

namespace beast = boost::beast;
namespace net = boost::asio;

/// Beast has a string_view of its own.
[[nodiscard]] inline std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

/// Now, as the header Date has it.
[[nodiscard]] std::string http_date();

/// What all sessions of a server share. Outlives them.
struct Shared {
  Shared(Router routes, ServerOptions given)
      : router(std::move(routes)),
        options(std::move(given)),
        budget(options.body_memory),
        write(options.write_workers, options.queue_capacity),
        read(options.read_workers, options.queue_capacity) {}

  const Router router;
  const ServerOptions options;
  Budget budget;
  WorkerPool write;
  WorkerPool read;
  std::atomic<bool> draining{false};
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> late{0};
};

/// A body that grows with what arrives, as far as the budget goes.
struct BudgetBody {
  struct value_type {
    std::string text;
    Budget::Hold hold;
  };
  class reader {
   public:
    template <bool is_request, class AnyFields>
    reader(beast::http::header<is_request, AnyFields>& /*header*/, value_type& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>& /*announced*/, beast::error_code& error) { error = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, beast::error_code& error) {
      const std::size_t size = net::buffer_size(buffers);
      if (!body_.hold.grow(size)) {
        error = make_error_code(boost::system::errc::not_enough_memory);
        return 0;
      }
      error = {};
      for (const auto buffer : beast::buffers_range_ref(buffers)) {
        body_.text.append(static_cast<const char*>(buffer.data()), buffer.size());
      }
      return size;
    }
    void finish(beast::error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

/// Reads a request, has it handled, writes the answer, and so on. Everything but `Reply` runs on its strand.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Gone = std::function<void(const Session*)>;

  /// `gone` is called by the destructor, on any thread.
  Session(net::ip::tcp::socket socket, std::shared_ptr<Transport::TlsContext> tls, Shared& shared, Gone gone);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start();
  /// The server stops: closes when it rests; otherwise the next answer is the last. From any thread.
  void drain();
  /// Closes, whatever it is doing. From any thread.
  void cut();

 private:
  using Parser = beast::http::request_parser<BudgetBody>;
  using Outgoing = beast::http::response<beast::http::string_body>;

  /// Tells clients that do not speak TLS that they should, and the others welcome.
  void listen_for_tls();
  void shake_hands();
  void refuse_plain_text();
  void wait_for_request();
  void read_header();
  /// Takes apart what has arrived, and reads on until the header, or the body after it, is whole.
  void parse();
  void on_header(beast::error_code error);
  /// What is wrong with a request of which only the header is known.
  [[nodiscard]] std::optional<Problem> check_header();
  [[nodiscard]] std::optional<Problem> check_framing() const;
  [[nodiscard]] std::optional<Problem> check_source(const std::optional<std::string>& authority) const;
  [[nodiscard]] std::optional<Problem> find_route();
  [[nodiscard]] std::optional<Problem> check_content();
  /// Bytes that are read, of whatever the client says is the body.
  [[nodiscard]] std::size_t readable_bytes() const;
  /// Of a request that is there whole: a body that stands where none belongs must mean nothing, and is gone.
  [[nodiscard]] std::optional<Problem> check_no_body();
  void send_continue();
  void on_body(beast::error_code error);
  void dispatch();
  /// The handler's time is over.
  void answer_late(const Route& route);
  void refuse(const Problem& problem);
  void refuse(beast::error_code error);
  void write(Response response);
  /// Everything but what says where the body ends.
  template <class Head>
  void set_head(Head& head, const Response& response) const;
  void on_written(beast::error_code error);
  void start_stream(const Response& response);
  /// Reads, to see when the client goes.
  void watch();
  /// Sends what was written to the stream meanwhile.
  void send_part();
  /// `whole`: all that was written has been sent.
  void end_stream(bool whole);
  /// Tells the client that nothing more comes, and reads what it may still be sending: a socket that is
  /// closed with unread data resets the connection, and the client might never see our answer.
  void close_gently();
  void discard();
  void close();

  Transport stream_;
  net::steady_timer timer_;  // while a handler has the request
  Shared& shared_;
  Gone gone_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<Outgoing> response_;
  Budget::Hold response_hold_;
  Exchange::Holds holds_;                    // of a request that was answered
  std::weak_ptr<Exchange> exchange_;         // which has this session as long as it may answer
  std::shared_ptr<BodyStream> stream_body_;  // while one is being sent
  std::optional<beast::http::response<beast::http::empty_body>> stream_head_;
  std::optional<beast::http::response_serializer<beast::http::empty_body>> stream_serializer_;
  std::string part_;
  bool sending_ = false;
  bool watching_ = false;
  Request request_;
  const Route* route_ = nullptr;
  bool resting_ = false;     // waits for the first byte of a request
  bool keep_alive_ = false;  // after the answer
  bool head_only_ = false;   // HEAD: the answer has no body
  bool packed_ = false;      // the body comes as gzip
  bool http10_ = false;
  std::size_t parsed_ = 0;  // bytes of this request
  std::size_t discarded_ = 0;
};

template <class Head>
void Session::set_head(Head& head, const Response& response) const {
  const std::string_view name = reason(response.status);
  head.reason(beast::string_view(name.data(), name.size()));
  head.set(beast::http::field::server, "postrider");
  head.set(beast::http::field::date, http_date());
  head.set(beast::http::field::content_type, response.content_type);
  head.set("X-Content-Type-Options", "nosniff");
  for (const auto& [field, value] : response.headers) head.set(field, value);
}

}  // namespace postrider::http
