// SPDX-License-Identifier: Apache-2.0
#include "app/api/me_api.hpp"

#include <boost/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/api/json_values.hpp"

namespace postrider::api {
namespace {

struct Change {
  std::string method;
  std::string path;
  Role role;
};

}  // namespace

ApiRoute me_route(std::span<const ApiRoute> routes) {
  std::vector<Change> changes;
  for (const ApiRoute& route : routes) {
    if (route.role == Role::viewer) continue;
    changes.push_back({std::string(to_string(route.method)), route.pattern, route.role});
  }
  return {
      .pattern = "/api/me",
      .without_database = [changes = std::move(changes)](const http::Request& request, const Caller& caller) {
        only_parameters(request, {});
        boost::json::array list;
        for (const Change& one : changes) {
          list.push_back({{"method", one.method},
                          {"path", one.path},
                          {"role", to_string(one.role)},
                          {"allowed", caller.role >= one.role}});
        }
        return json_response({{"name", caller.name},
                              {"role", to_string(caller.role)},
                              {"token", !caller.sha256.empty()},
                              {"changes", std::move(list)}});
      }};
}

}  // namespace postrider::api
