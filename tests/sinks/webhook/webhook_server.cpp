// SPDX-License-Identifier: Apache-2.0
#include "sinks/webhook/webhook_server.hpp"

#include <openssl/evp.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include "support/places.hpp"

namespace postrider::test {
namespace bj = boost::json;
namespace {

std::string unpacked(const std::string& base64) {
  std::string bytes(base64.size() / 4 * 3 + 1, '\0');
  const int size = ::EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                     reinterpret_cast<const unsigned char*>(base64.data()),
                                     static_cast<int>(base64.size()));
  const std::size_t padding = base64.ends_with("==") ? 2 : base64.ends_with("=") ? 1 : 0;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

Posted posted_of(const std::string& line) {
  const bj::value json = bj::parse(line);
  Posted one{.path = bj::value_to<std::string>(json.at("path")),
             .status = bj::value_to<int>(json.at("status")),
             .beside = bj::value_to<std::vector<std::string>>(json.at("beside")),
             .connection = bj::value_to<int>(json.at("connection")),
             .headers = {},
             .body = unpacked(bj::value_to<std::string>(json.at("body")))};
  for (const bj::value& header : json.at("headers").as_array()) {
    one.headers[bj::value_to<std::string>(header.at(0))] = bj::value_to<std::string>(header.at(1));
  }
  return one;
}

}  // namespace

std::string WebhookServer::url(const std::string& path) const {
  return (certificate_.empty() ? "http://127.0.0.1:" : "https://127.0.0.1:") + port_ + path;
}

const std::vector<Posted>& WebhookServer::posted() {
  std::ifstream in(file(), std::ios::binary);
  in.seekg(static_cast<std::streamoff>(read_));
  std::ostringstream more;
  more << in.rdbuf();
  const std::string text = more.str();
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    posted_.push_back(posted_of(text.substr(begin, end - begin)));
  }
  read_ += begin;
  return posted_;
}

void WebhookServer::start() {
  std::vector<std::string> arguments{"/usr/bin/env", "python3",
                                     test::source_file("tests/sinks/webhook/receiver.py"), port_, file()};
  if (!certificate_.empty()) arguments.insert(arguments.end(), {certificate_, key_});
  process_.emplace(arguments);
  const auto line = process_->read_until("ready ");
  if (!line) throw std::runtime_error("receiver.py does not start");
  port_ = line->substr(6);
}

void WebhookServer::thaw() {
  process_->signal(SIGCONT);
}

}  // namespace postrider::test
