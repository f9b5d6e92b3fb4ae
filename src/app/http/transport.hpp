// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <memory>
#include <utility>

namespace postrider::http {

/// A connection, with TLS or without: so much of Beast's stream as a session needs. An AsyncStream as Asio
/// has it.
class Transport {
 public:
  using TlsContext = boost::asio::ssl::context;
  using executor_type = boost::beast::tcp_stream::executor_type;

  /// Without a context there is no TLS.
  Transport(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsContext> context)
      : context_(std::move(context)), tcp_(std::move(socket)) {
    if (context_ != nullptr) tls_ = std::make_unique<Tls>(tcp_, *context_);
  }

  [[nodiscard]] executor_type get_executor() { return tcp_.get_executor(); }
  [[nodiscard]] boost::asio::ip::tcp::socket& socket() { return tcp_.socket(); }
  template <class Time>
  void expires_after(Time time) {
    tcp_.expires_after(time);
  }
  void expires_never() { tcp_.expires_never(); }
  void cancel() { tcp_.cancel(); }
  void close() { tcp_.close(); }
  [[nodiscard]] bool has_tls() const noexcept { return tls_ != nullptr; }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_ != nullptr) {
      tls_->async_read_some(buffers, std::forward<Handler>(handler));
    } else {
      tcp_.async_read_some(buffers, std::forward<Handler>(handler));
    }
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_ != nullptr) {
      tls_->async_write_some(buffers, std::forward<Handler>(handler));
    } else {
      tcp_.async_write_some(buffers, std::forward<Handler>(handler));
    }
  }
  /// What a client with TLS sends before its handshake, as it comes.
  template <class Buffers, class Handler>
  void async_read_undeciphered(const Buffers& buffers, Handler&& handler) {
    tcp_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  /// With what has been read of it already. `handler(error, used)`; with TLS only.
  template <class Buffers, class Handler>
  void async_handshake(const Buffers& begun, Handler&& handler) {
    tls_->async_handshake(Tls::server, begun, std::forward<Handler>(handler));
  }
  /// For a client that does not speak it; before the handshake only.
  void do_without_tls() { tls_.reset(); }
  /// Says goodbye; with TLS only.
  template <class Handler>
  void async_shutdown(Handler&& handler) {
    tls_->async_shutdown(std::forward<Handler>(handler));
  }

 private:
  using Tls = boost::asio::ssl::stream<boost::beast::tcp_stream&>;

  std::shared_ptr<TlsContext> context_;  // outlives the stream that uses it
  boost::beast::tcp_stream tcp_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace postrider::http
