// SPDX-License-Identifier: Apache-2.0
#include "support/private_server.hpp"
#include "support/places.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "support/child_process.hpp"

namespace postrider::test {

PrivateServer::PrivateServer(BackendKind kind) : kind_(to_string(kind)) {
  std::string folder = (std::filesystem::temp_directory_path() / ("postrider_" + kind_ + "_XXXXXX")).string();
  if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make " + folder);
  ::chmod(folder.c_str(), 0755);  // the server may run as another user
  folder_ = folder;
  start();
}

PrivateServer::~PrivateServer() {
  try {
    run("remove");
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void PrivateServer::kill() {
  run("kill");
}

void PrivateServer::start() {
  url_ = run("start");
}

std::string PrivateServer::run(const std::string& verb) const {
  ChildProcess script({test::source_file("scripts/test-server"), kind_, verb, folder_});
  const auto end = script.wait(std::chrono::seconds{120});
  if (!end || !end->ok()) {
    throw std::runtime_error("test-server " + kind_ + " " + verb + ": " +
                             (end ? end->text() : "takes too long"));
  }
  return script.read_line(std::chrono::milliseconds{0}).value_or("");
}

}  // namespace postrider::test
