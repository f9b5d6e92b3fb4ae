// SPDX-License-Identifier: Apache-2.0
#include "app/http/router.hpp"

#include <algorithm>
#include <atomic>
#include <boost/url.hpp>
#include <utility>

#include "postrider/error.hpp"

namespace postrider::http {
namespace {

std::vector<std::string> split(std::string_view pattern) {
  std::vector<std::string> segments;
  while (pattern.starts_with('/')) {
    pattern.remove_prefix(1);
    const std::size_t end = std::min(pattern.find('/'), pattern.size());
    segments.emplace_back(pattern.substr(0, end));
    pattern.remove_prefix(end);
  }
  return segments;
}

bool is_name(std::string_view segment) {
  return segment.starts_with('{');
}

/// How well a pattern fits: nothing, or the number of fixed segments.
std::optional<std::size_t> fit(const std::vector<std::string>& pattern,
                               const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return std::nullopt;
  std::size_t fixed = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (is_name(pattern[i])) {
      if (path[i].empty()) return std::nullopt;
      continue;
    }
    if (pattern[i] != path[i]) return std::nullopt;
    ++fixed;
  }
  return fixed;
}

}  // namespace

struct Reply::State {
  State(Send how, Wanted asked) : send(std::move(how)), wanted(std::move(asked)) {}
  ~State() {
    if (answered) return;
    send(to_response(
        {.status = 500, .code = "no-answer", .detail = "the request was given up", .hint = "send it again"}));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Send send;
  Wanted wanted;
  std::atomic<bool> answered{false};
};

Reply::Reply(Send send, Wanted wanted)
    : state_(std::make_shared<State>(std::move(send), std::move(wanted))) {}

bool Reply::wanted() const {
  return !state_->answered && (!state_->wanted || state_->wanted());
}

void Reply::operator()(Response response) const {
  if (!state_->answered.exchange(true)) state_->send(std::move(response));
}

void Router::add(Route route) {
  auto entry = std::make_unique<Entry>();
  entry->segments = split(route.pattern);
  for (const auto& other : entries_) {
    if (other->route.method == route.method && other->route.pattern == route.pattern) {
      throw Error(ErrorCode::invalid_argument, "cannot add a route",
                  std::string(to_string(route.method)) + " " + route.pattern + " is there already");
    }
  }
  entry->route = std::move(route);
  entries_.push_back(std::move(entry));
}

Router::Match Router::find(Method method, const std::vector<std::string>& path) const {
  std::vector<const Entry*> fitting;  // all as well as the best
  std::size_t best_fit = 0;
  for (const auto& entry : entries_) {
    const std::optional<std::size_t> how_well = fit(entry->segments, path);
    if (!how_well.has_value() || (!fitting.empty() && *how_well < best_fit)) continue;
    if (*how_well > best_fit) fitting.clear();
    best_fit = *how_well;
    fitting.push_back(entry.get());
  }
  if (fitting.empty()) return NotFound{};
  const auto chosen = std::find_if(fitting.begin(), fitting.end(),
                                   [&](const Entry* entry) { return entry->route.method == method; });
  if (chosen == fitting.end()) {
    std::string allowed;
    for (const Entry* const entry : fitting) {
      const std::string_view name = to_string(entry->route.method);
      if (allowed.find(name) != std::string::npos) continue;
      if (!allowed.empty()) allowed += ", ";
      allowed += name;
      if (entry->route.method == Method::get) allowed += ", HEAD";
    }
    return WrongMethod{std::move(allowed)};
  }
  const Entry* const best = *chosen;
  Found found{&best->route, {}};
  for (std::size_t i = 0; i < path.size(); ++i) {
    const std::string& segment = best->segments[i];
    if (is_name(segment)) found.parameters.emplace_back(segment.substr(1, segment.size() - 2), path[i]);
  }
  return found;
}

std::optional<Target> parse_target(std::string_view target) {
  const boost::urls::string_view text(target.data(), target.size());
  const bool origin_form = target.starts_with('/');
  const auto url = origin_form ? boost::urls::parse_origin_form(text) : boost::urls::parse_absolute_uri(text);
  if (!url.has_value()) return std::nullopt;
  Target parsed;
  if (!origin_form) {
    // By RFC 9112 a server takes this form, too. Nobody can ask in plain text for what is behind TLS.
    const bool http = url->scheme_id() == boost::urls::scheme::http;
    if (!http || !url->has_authority() || url->has_userinfo() || url->encoded_host().empty())
      return std::nullopt;
    parsed.authority = std::string(url->encoded_host_and_port());
  }
  for (const auto& segment : url->segments()) parsed.path.emplace_back(segment);
  if (parsed.path.empty()) parsed.path.emplace_back();  // "/" has one segment, as "/a/" has two
  for (const auto& parameter : url->params()) {
    parsed.query.emplace_back(std::string(parameter.key), std::string(parameter.value));
  }
  return parsed;
}

namespace {

/// Host and port as a URL has them; nothing when it is none, or somebody's.
struct Place {
  std::string host;  ///< without brackets
  std::string port;  ///< empty: its scheme's
};

std::optional<Place> parse_place(std::string_view text) {
  const auto authority = boost::urls::parse_authority(boost::urls::string_view(text.data(), text.size()));
  if (!authority.has_value() || authority->has_userinfo()) return std::nullopt;
  Place place{std::string(authority->host()), std::string(authority->port())};
  if (place.host.starts_with('[') && place.host.ends_with(']')) {
    place.host = place.host.substr(1, place.host.size() - 2);
  }
  return place;
}

bool names_one_of(const std::vector<std::string>& hosts, const std::string& host) {
  return std::any_of(hosts.begin(), hosts.end(),
                     [&](const std::string& allowed) { return equal_ignoring_case(allowed, host); });
}

}  // namespace

bool host_is_allowed(std::string_view host, const std::vector<std::string>& hosts) {
  const std::optional<Place> place = parse_place(host);
  return place.has_value() && names_one_of(hosts, place->host);
}

bool origin_is_allowed(std::string_view origin, std::string_view host,
                       const std::vector<std::string>& public_hosts) {
  const auto url = boost::urls::parse_uri(boost::urls::string_view(origin.data(), origin.size()));
  if (!url.has_value() || !url->has_authority()) return false;
  std::optional<Place> page = parse_place(std::string(url->encoded_host_and_port()));
  std::optional<Place> asked = parse_place(host);
  if (!page.has_value()) return false;
  // Neither names the port that its scheme has anyway.
  const std::string_view usual = url->scheme_id() == boost::urls::scheme::https ? "443" : "80";
  if (page->port == usual) page->port.clear();
  if (asked.has_value() && asked->port == usual) asked->port.clear();
  if (asked.has_value() && equal_ignoring_case(page->host, asked->host) && page->port == asked->port) {
    return true;
  }
  return page->port.empty() && names_one_of(public_hosts, page->host);
}

}  // namespace postrider::http
