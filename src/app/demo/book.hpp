// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>

namespace postrider::demo {

/// A book that survives the process: every line is one write(2) to a file opened for appending. Thread-safe.
class Book {
 public:
  explicit Book(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), path.string());
  }
  ~Book() { ::close(file_); }
  Book(const Book&) = delete;
  Book& operator=(const Book&) = delete;

  void note(std::string_view what) const {
    const std::string line = std::string(what) + "\n";
    if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      throw std::system_error(errno, std::generic_category(), "cannot write to the book");
    }
  }

  /// How often each line is there.
  [[nodiscard]] static std::unordered_map<std::string, std::uint64_t> read(
      const std::filesystem::path& path) {
    std::unordered_map<std::string, std::uint64_t> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) ++lines[line];
    return lines;
  }

 private:
  int file_;
};

}  // namespace postrider::demo
