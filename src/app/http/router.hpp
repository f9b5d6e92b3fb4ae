// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/http/message.hpp"
#include "postrider/clock.hpp"

namespace postrider::http {

/// The one answer to a request. Copies answer the same request: the first answer counts, from whichever
/// thread, at any time. When the last copy dies without one, the client is told of an error, so that no
/// request hangs.
class Reply {
 public:
  using Send = std::function<void(Response)>;
  using Wanted = std::function<bool()>;
  /// `send` is called once.
  explicit Reply(Send send, Wanted wanted = {});

  void operator()(Response response) const;
  /// False when nobody waits for the answer any more: the request's time is over, or its connection was cut.
  [[nodiscard]] bool wanted() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Where a handler runs.
enum class Lane {
  direct,  ///< on the thread that reads sockets: for those that neither wait nor compute
  write,   ///< on a worker
  read,    ///< on a worker of another pool, so that slow searches do not hold up what comes in
};

using Handler = std::function<void(Request request, Reply reply)>;

struct Route {
  Method method = Method::get;  ///< `get` answers HEAD, too
  std::string pattern;          ///< "/v1/events/{id}"
  Lane lane = Lane::read;
  /// Bytes, unpacked. 0: the request has no body; but whoever sends {} with other methods than GET, as some
  /// clients always do, means none.
  std::size_t body_limit = 0;
  /// Asked when the header is there and before the body is read, on the thread that reads sockets: why the
  /// request is refused, if it is. Not for requests without a body, which their handler refuses as well.
  std::function<std::optional<Problem>(const Request& request)> admit{};
  /// From a request's last byte to its answer. Not given: ServerOptions::request_timeout.
  std::optional<Duration> timeout{};
  /// What is answered when that is over. Not given: 503, `timeout`.
  std::optional<Problem> late{};
  Handler handler;
};

/// Finds the route for a path. Immutable while it is in use.
class Router {
 public:
  /// Throws Error(invalid_argument) when the same method and pattern are there already.
  void add(Route route);

  struct NotFound {};
  struct WrongMethod {
    std::string allowed;  ///< "GET, HEAD, POST"
  };
  struct Found {
    const Route* route;
    Fields parameters;
  };
  using Match = std::variant<NotFound, WrongMethod, Found>;
  /// Fixed segments go before {names}, whatever the method: what is under /v1/events/batch is no event.
  [[nodiscard]] Match find(Method method, const std::vector<std::string>& path) const;

 private:
  struct Entry {
    Route route;
    std::vector<std::string> segments;
  };
  std::vector<std::unique_ptr<Entry>> entries_;
};

/// The path and the parameters of a request's target, which is a path and a query, or (in absolute form, as
/// to a proxy) a whole http: URL; nothing when it is neither.
struct Target {
  std::vector<std::string> path;
  Fields query;
  std::optional<std::string> authority{};  ///< of a URL: host and port, instead of what Host says
};
[[nodiscard]] std::optional<Target> parse_target(std::string_view target);

/// Whether a Host names one of `hosts` (without ports). Browsers can be made to send requests of a foreign
/// page to a server on loopback, but they tell by whose name.
[[nodiscard]] bool host_is_allowed(std::string_view host, const std::vector<std::string>& hosts);
/// Whether a page of this Origin was served by whom the request is for (`host`, as Host says it): another
/// port is another server. Or under one of `public_hosts`, at its scheme's own port, by a proxy before us.
[[nodiscard]] bool origin_is_allowed(std::string_view origin, std::string_view host,
                                     const std::vector<std::string>& public_hosts);

}  // namespace postrider::http
