// SPDX-License-Identifier: Apache-2.0
#include "sinks/rabbitmq/rabbitmq_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stdexcept>

#include "support/tls_identity.hpp"

namespace postrider::test {
namespace {

// Not the ones in the path, which change the user.
constexpr const char* server_program = "/usr/lib/rabbitmq/bin/rabbitmq-server";
constexpr const char* control_program = "/usr/lib/rabbitmq/bin/rabbitmqctl";

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket, generic, size) != 0 || ::getsockname(socket, generic, &size) != 0) {
    throw std::runtime_error("no free port");
  }
  ::close(socket);
  return ntohs(address.sin_port);
}

}  // namespace

RabbitmqServer& RabbitmqServer::shared() {
  static RabbitmqServer server;
  if (server.frozen_) server.thaw();
  if (!server.process_) server.start();
  return server;
}

RabbitmqServer::RabbitmqServer()
    : port_(free_port()), tls_port_(free_port()), dist_port_(free_port()), epmd_port_(free_port()) {
  write_files();
  epmd_.emplace(std::vector<std::string>{"/usr/bin/env", "epmd", "-port", std::to_string(epmd_port_),
                                         "-address", "127.0.0.1"});
  start();
}

void RabbitmqServer::write_files() const {
  const TlsIdentity authority = TlsIdentity::authority("authority");
  const TlsIdentity identity = TlsIdentity::server(authority, "DNS:localhost");
  authority.save_certificate(ca_file());
  identity.save_certificate(folder_.file("cert.pem"));
  identity.save_key(folder_.file("key.pem"));
  std::ofstream(folder_.file("rabbitmq.conf"))
      << "listeners.tcp.1 = 127.0.0.1:" << port_ << "\nlisteners.ssl.1 = 127.0.0.1:" << tls_port_
      << "\nssl_options.certfile = " << folder_.file("cert.pem")
      << "\nssl_options.keyfile = " << folder_.file("key.pem") << "\nssl_options.cacertfile = " << ca_file()
      << "\nlog.console = false\nlog.file.level = warning\ndisk_free_limit.absolute = 1MB\n";
  std::ofstream(folder_.file("plugins")) << "[].\n";
  std::ofstream(folder_.file("env.conf")) << "";
}

ChildProcess::Environment RabbitmqServer::environment() const {
  return {{"HOME", folder_.path().string()},  // where the nodes' common secret lies
          {"RABBITMQ_NODENAME", "postrider_" + std::to_string(port_) + "@localhost"},
          {"RABBITMQ_MNESIA_BASE", folder_.file("data")},
          {"RABBITMQ_LOG_BASE", folder_.file("log")},
          {"RABBITMQ_ENABLED_PLUGINS_FILE", folder_.file("plugins")},
          {"RABBITMQ_CONFIG_FILE", folder_.file("rabbitmq.conf")},
          {"RABBITMQ_CONF_ENV_FILE", folder_.file("env.conf")},
          {"RABBITMQ_DIST_PORT", std::to_string(dist_port_)},
          {"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-start_epmd false"},
          {"ERL_EPMD_ADDRESS", "127.0.0.1"},
          {"ERL_EPMD_PORT", std::to_string(epmd_port_)},
          {"RUNNING_UNDER_SYSTEMD", "1"}};  // the script becomes the server, instead of starting it
}

void RabbitmqServer::start() {
  process_.emplace(std::vector<std::string>{server_program}, environment());
  // The line ends when it has.
  if (!process_->read_until("  Starting broker...", std::chrono::minutes{3})) {
    throw std::runtime_error("rabbitmq-server does not start");
  }
}

void RabbitmqServer::freeze() {
  process_->freeze();
  frozen_ = true;
}

void RabbitmqServer::thaw() {
  process_->signal(SIGCONT);
  frozen_ = false;
}

void RabbitmqServer::control(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{control_program, "--quiet"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  ChildProcess program(all, environment());
  const auto end = program.wait(std::chrono::minutes{2});
  if (!end || !end->ok()) throw std::runtime_error("rabbitmqctl " + arguments.front() + " fails");
}

}  // namespace postrider::test
