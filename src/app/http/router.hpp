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

namespace postrider::http {

/// The one answer to a request. Copies answer the same request: the first answer counts, from whichever
/// thread, at any time. When the last copy dies without one, the client is told of an error, so that no
/// request hangs.
class Reply {
 public:
  using Send = std::function<void(Response)>;
  /// `send` is called once.
  explicit Reply(Send send);

  void operator()(Response response) const;

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
  std::size_t body_limit = 0;  ///< bytes, unpacked; 0: the request has no body
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
  /// Fixed segments go before {names}.
  [[nodiscard]] Match find(Method method, const std::vector<std::string>& path) const;

 private:
  struct Entry {
    Route route;
    std::vector<std::string> segments;
  };
  std::vector<std::unique_ptr<Entry>> entries_;
};

/// The path and the parameters of a request's target; nothing when it is not a URL's path and query.
struct Target {
  std::vector<std::string> path;
  Fields query;
};
[[nodiscard]] std::optional<Target> parse_target(std::string_view target);

/// Whether a Host or an Origin names one of `hosts` (without ports). Browsers can be made to send requests
/// of a foreign page to a server on loopback, but they tell by whose name.
[[nodiscard]] bool host_is_allowed(std::string_view host, const std::vector<std::string>& hosts);
[[nodiscard]] bool origin_is_allowed(std::string_view origin, const std::vector<std::string>& hosts);

}  // namespace postrider::http
