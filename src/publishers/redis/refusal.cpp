// SPDX-License-Identifier: Apache-2.0
#include "publishers/redis/refusal.hpp"

#include <algorithm>
#include <array>

#include "core/utf8.hpp"

namespace postrider::redis {
namespace {

struct Known {
  std::string_view code;
  bool reconnect;
  std::string_view meaning;
  std::string_view hint;
};

constexpr std::array<Known, 17> known{{
    {"OOM", false, "the server is full", "raise its maxmemory, or set max_len"},
    {"MISCONF", false, "the server cannot write to its disk", "look at its log and at its disk"},
    {"LOADING", true, "the server is reading its data", ""},
    {"BUSY", true, "the server is busy with a script", ""},
    {"READONLY", true, "the server is a replica", "name the master in the URL"},
    {"MASTERDOWN", true, "the server is a replica without its master", "name the master in the URL"},
    {"NOREPLICAS", true, "the server has too few replicas", "see its min-replicas-to-write"},
    {"CLUSTERDOWN", true, "the cluster is down", ""},
    {"TRYAGAIN", true, "the cluster is moving keys", ""},
    {"MOVED", true, "the stream is on another node of a cluster", "name that node in the URL"},
    {"ASK", true, "the stream is moving to another node of a cluster", "name that node in the URL"},
    {"CROSSSLOT", false, "a batch has streams of several nodes", "in a cluster use one stream per sink"},
    {"NOAUTH", true, "the server wants a login", "set username and password"},
    {"WRONGPASS", true, "the server does not know this user or password", "check username and password"},
    {"NOPERM", true, "the user is not allowed to do that",
     "allow MULTI, EXEC, XADD, and WAIT for wait_replicas, on the stream's keys"},
    {"WRONGTYPE", false, "the stream's key holds something that is no stream", "choose another stream"},
    {"EXECABORT", true, "the transaction was discarded", ""},
}};

std::string_view code_of(std::string_view error) {
  return error.substr(0, error.find(' '));
}

std::string written(const Known& one) {
  std::string text(one.meaning);
  text += " (";
  text += one.code;
  text += ')';
  if (!one.hint.empty()) text += ". Hint: " + std::string(one.hint);
  return text;
}

const Known* find(std::string_view error) {
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const Known& one) { return one.code == code_of(error); });
  return found == known.end() ? nullptr : &*found;
}

}  // namespace

Refusal refusal_of(std::string_view error) {
  constexpr std::size_t longest = 200;
  if (error.starts_with("ERR Protocol error: invalid bulk length")) {
    return {.of_the_event = true,
            .reconnect = true,
            .reason = "the event is larger than the server takes (proto-max-bulk-len)"};
  }
  if (const Known* one = find(error); one != nullptr)
    return {.reconnect = one->reconnect, .reason = written(*one)};
  return {.reconnect = true,
          .reason = "the server answers '" + utf8_repaired(utf8_prefix(error, longest)) + "'"};
}

Refusal login_refusal_of(std::string_view error) {
  if (const Known* one = find(error); one != nullptr) return {.reconnect = true, .reason = written(*one)};
  const std::string_view code = code_of(error);
  const bool plain = !code.empty() && code.size() <= 16 &&
                     std::all_of(code.begin(), code.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return {.reconnect = true,
          .reason = "the server refuses the login (" + std::string(plain ? code : "ERR") +
                    "). Hint: check username and password, and whether the server has any"};
}

}  // namespace postrider::redis
