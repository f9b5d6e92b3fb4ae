// SPDX-License-Identifier: Apache-2.0
#include "sinks/redis/redis_server.hpp"

#include <stdexcept>

#include "support/free_port.hpp"

namespace postrider::test {

RedisServer::RedisServer(std::vector<std::string> extra) : port_(free_port()), extra_(std::move(extra)) {
  start();
}

void RedisServer::start() {
  context_.reset();
  std::vector<std::string> argv{"/usr/bin/redis-server",
                                "--bind",
                                "127.0.0.1",
                                "--port",
                                std::to_string(port_),
                                "--dir",
                                folder_.path(),
                                "--unixsocket",
                                socket(),
                                "--appendonly",
                                "yes",
                                "--appendfsync",
                                "always",
                                "--save",
                                "",
                                "--daemonize",
                                "no",
                                "--databases",
                                "16"};
  argv.insert(argv.end(), extra_.begin(), extra_.end());
  process_.emplace(argv);
  std::string said;
  while (const auto line = process_->read_line(std::chrono::seconds{30})) {
    said += *line + "\n";
    if (line->find("Ready to accept connections") != std::string::npos) return;
  }
  throw std::runtime_error("redis-server does not start:\n" + said);
}

redisContext& RedisServer::connected() {
  if (context_ == nullptr || context_->err != 0) {
    context_.reset(redisConnectWithTimeout("127.0.0.1", port_, {5, 0}));
    if (context_ == nullptr || context_->err != 0) throw std::runtime_error("cannot connect to redis-server");
    redisSetTimeout(context_.get(), {20, 0});
    if (!login_.empty()) ask(login_);
  }
  return *context_;
}

void RedisServer::log_in(std::string user, std::string password) {
  login_ = {"AUTH", std::move(user), std::move(password)};
  context_.reset();
}

RedisServer::Reply RedisServer::ask(const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  redisContext& context = connected();
  const auto reply = static_cast<redisReply*>(
      redisCommandArgv(&context, static_cast<int>(words.size()), texts.data(), sizes.data()));
  Reply owned(reply, [](redisReply* one) { freeReplyObject(one); });
  if (owned == nullptr) throw std::runtime_error("no answer to " + words.front() + ": " + context.errstr);
  if (owned->type == REDIS_REPLY_ERROR) throw std::runtime_error(words.front() + ": " + owned->str);
  return owned;
}

}  // namespace postrider::test
