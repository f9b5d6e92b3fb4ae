// SPDX-License-Identifier: Apache-2.0
#include "app/http/server.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>
#include <unordered_map>
#include <utility>

#include "app/http/session.hpp"
#include "app/http/tls_context.hpp"
#include "core/option_check.hpp"
#include "postrider/error.hpp"

namespace postrider::http {
namespace {

using net::ip::tcp;

constexpr std::chrono::milliseconds pause_without_files{100};
/// For sockets that were cut to say so.
constexpr Duration cut_time = std::chrono::seconds{1};

ServerOptions checked(ServerOptions options) {
  const OptionCheck check("ServerOptions");
  check.count("io_threads", options.io_threads, 1, 64);
  check.count("write_workers", options.write_workers, 1, 256);
  check.count("read_workers", options.read_workers, 1, 256);
  check.count("queue_capacity", options.queue_capacity, 1, 100'000);
  check.count("max_connections", options.max_connections, 1, 100'000);
  check.count("body_memory", options.body_memory, 1U << 20U, std::size_t{1} << 40U);
  check.count("header_bytes", options.header_bytes, 1024, 1U << 20U);
  for (const auto& [name, value] :
       {std::pair{"header_timeout", options.header_timeout}, std::pair{"body_timeout", options.body_timeout},
        std::pair{"request_timeout", options.request_timeout},
        std::pair{"write_timeout", options.write_timeout}, std::pair{"idle_timeout", options.idle_timeout}}) {
    check.time(name, value, std::chrono::milliseconds{1}, std::chrono::hours{24});
  }
  options.log = guarded(std::move(options.log));
  return options;
}

bool out_of_files(beast::error_code error) {
  using namespace boost::system::errc;  // NOLINT(google-build-using-namespace)
  return error == too_many_files_open || error == too_many_files_open_in_system || error == no_buffer_space ||
         error == not_enough_memory;
}

}  // namespace

class Server::Impl {
 public:
  Impl(Router router, ServerOptions options)
      : shared_(std::move(router), checked(std::move(options))),
        io_(static_cast<int>(shared_.options.io_threads)),
        acceptor_(net::make_strand(io_)),
        pause_(acceptor_.get_executor()) {
    reload_tls();
  }
  ~Impl() { stop(Duration::zero()); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start() {
    listen();
    work_.emplace(io_.get_executor());
    for (std::size_t i = 0; i < shared_.options.io_threads; ++i) threads_.emplace_back([this] { io_.run(); });
    net::post(acceptor_.get_executor(), [this] { accept(); });
  }

  void reload_tls() POSTRIDER_EXCLUDES(mutex_) {
    if (shared_.options.tls_certificate.empty()) return;
    std::shared_ptr<Transport::TlsContext> made =
        make_tls_context(shared_.options.tls_certificate, shared_.options.tls_key);
    const MutexLock lock(mutex_);
    tls_ = std::move(made);
  }

  bool stop(Duration drain) POSTRIDER_EXCLUDES(mutex_) {
    if (threads_.empty()) return true;
    shared_.draining = true;
    net::post(acceptor_.get_executor(), [this] {
      beast::error_code ignored;
      acceptor_.close(ignored);
      pause_.cancel();
    });
    for (const auto& session : sessions()) session->drain();
    const bool drained = await_no_sessions(drain);
    if (!drained) {
      for (const auto& session : sessions()) session->cut();
      shared_.write.drop();
      shared_.read.drop();
    }
    // Handlers that are at work are waited for; what they need has timeouts of its own.
    shared_.write.stop();
    shared_.read.stop();
    (void)await_no_sessions(cut_time);
    work_.reset();
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return drained;
  }

  void post(std::function<void()> task) { net::post(io_, std::move(task)); }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] bool stopping() const noexcept { return shared_.draining; }
  [[nodiscard]] ServerStats stats() const POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return {.connections = sessions_.size(),
            .body_bytes = shared_.budget.used(),
            .requests = shared_.requests,
            .late = shared_.late};
  }

 private:
  [[nodiscard]] std::shared_ptr<Transport::TlsContext> tls() const POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return tls_;
  }

  void listen() {
    const ServerOptions& options = shared_.options;
    const std::string where = options.address + ":" + std::to_string(options.port);
    beast::error_code error;
    const auto fail = [&](std::string_view hint) {
      throw Error(ErrorCode::unavailable, "cannot listen on " + where, error.message(), hint);
    };
    const net::ip::address address = net::ip::make_address(options.address, error);
    if (error) fail("give an IP address, as in 127.0.0.1 or ::1");
    const tcp::endpoint endpoint(address, options.port);
    acceptor_.open(endpoint.protocol(), error);
    if (error) fail({});
    acceptor_.set_option(net::socket_base::reuse_address(true), error);
    acceptor_.bind(endpoint, error);
    if (error)
      fail(
          "another program may have the port; choose another one, with server.listen in the configuration or "
          "--listen");
    acceptor_.listen(net::socket_base::max_listen_connections, error);
    if (error) fail({});
    port_ = acceptor_.local_endpoint().port();
  }

  void accept() {
    acceptor_.async_accept(net::make_strand(io_), [this](beast::error_code error, tcp::socket socket) {
      on_accept(error, std::move(socket));
    });
  }

  void on_accept(beast::error_code error, tcp::socket socket) POSTRIDER_EXCLUDES(mutex_) {
    if (!acceptor_.is_open()) return;
    if (out_of_files(error)) {
      shared_.options.log(LogLevel::warning, "postrider: cannot accept connections: " + error.message());
      pause_.expires_after(pause_without_files);
      pause_.async_wait([this](beast::error_code cancelled) {
        if (!cancelled) accept();
      });
      return;
    }
    if (!error && !add(std::move(socket))) return;
    accept();
  }

  /// False when there is no room for another one: then whoever goes calls `accept`.
  bool add(tcp::socket socket) POSTRIDER_EXCLUDES(mutex_) {
    beast::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    const auto session = std::make_shared<Session>(std::move(socket), tls(), shared_,
                                                   [this](const Session* gone) { on_gone(gone); });
    {
      const MutexLock lock(mutex_);
      sessions_.emplace(session.get(), session);
      full_ = sessions_.size() >= shared_.options.max_connections;
    }
    session->start();
    const MutexLock lock(mutex_);
    return !full_;
  }

  void on_gone(const Session* session) POSTRIDER_EXCLUDES(mutex_) {
    bool was_full = false;
    bool none = false;
    {
      const MutexLock lock(mutex_);
      sessions_.erase(session);
      was_full = std::exchange(full_, false);
      none = sessions_.empty();
    }
    if (was_full && !shared_.draining) {
      net::post(acceptor_.get_executor(), [this] {
        if (acceptor_.is_open()) accept();
      });
    }
    if (none) no_sessions_.notify_all();
  }

  [[nodiscard]] std::vector<std::shared_ptr<Session>> sessions() const POSTRIDER_EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<Session>> living;
    const MutexLock lock(mutex_);
    living.reserve(sessions_.size());
    for (const auto& [address, session] : sessions_) {
      if (auto alive = session.lock()) living.push_back(std::move(alive));
    }
    return living;
  }

  [[nodiscard]] bool await_no_sessions(Duration timeout) POSTRIDER_EXCLUDES(mutex_) {
    Clock& clock = Clock::system();
    const SteadyPoint deadline = clock.steady_now() + timeout;
    const MutexLock lock(mutex_);
    while (!sessions_.empty() && clock.steady_now() < deadline) {
      clock.wait_until(no_sessions_, mutex_, deadline);
    }
    return sessions_.empty();
  }

  Shared shared_;
  mutable Mutex mutex_;
  CondVar no_sessions_;
  std::unordered_map<const Session*, std::weak_ptr<Session>> sessions_ POSTRIDER_GUARDED_BY(mutex_);
  bool full_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Transport::TlsContext> tls_ POSTRIDER_GUARDED_BY(mutex_);  // null: none
  net::io_context io_;  // after what its last sessions still ask for
  tcp::acceptor acceptor_;
  net::steady_timer pause_;
  std::optional<net::executor_work_guard<net::io_context::executor_type>> work_;
  std::uint16_t port_ = 0;
  std::vector<std::thread> threads_;
};

Server::Server(Router router, ServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(router), std::move(options))) {}
Server::~Server() = default;

void Server::start() {
  impl_->start();
}
std::uint16_t Server::port() const noexcept {
  return impl_->port();
}
ServerStats Server::stats() const {
  return impl_->stats();
}
void Server::post(std::function<void()> task) {
  impl_->post(std::move(task));
}
void Server::reload_tls() {
  impl_->reload_tls();
}

bool Server::stopping() const noexcept {
  return impl_->stopping();
}
bool Server::stop(Duration drain) {
  return impl_->stop(drain);
}

}  // namespace postrider::http
