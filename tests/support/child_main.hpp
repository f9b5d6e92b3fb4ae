// SPDX-License-Identifier: Apache-2.0
// What programs that crash tests start have in common.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

namespace postrider::test {

/// What main() of a child program does: runs it, and says why when that fails.
template <class Run>
int child_main(int argc, char** argv, Run run) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << std::endl;
    return 1;
  }
}

using ChildNumbers = std::map<std::string, long>;

/// Arguments "name=number" from `first` on, over the defaults. A name that has none is refused.
inline ChildNumbers child_numbers(int argc, char** argv, int first, ChildNumbers numbers) {
  for (int i = first; i < argc; ++i) {
    const std::string option = argv[i];
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos) throw std::invalid_argument(option);
    numbers.at(option.substr(0, equals)) = std::stol(option.substr(equals + 1));
  }
  return numbers;
}

/// A line to whoever started this program, written whole. Thread-safe.
inline void say(std::string line) {
  line += '\n';
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) ::_exit(3);  // whom for?
}

/// Lines that outlive the program, whenever it is killed; each is written whole, whoever else writes.
/// Thread-safe.
class LineFile {
 public:
  explicit LineFile(const std::string& path)
      : fd_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {}
  ~LineFile() { ::close(fd_); }
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// False when the file takes no more.
  bool write(std::string line) const {
    line += '\n';
    return ::write(fd_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  }

 private:
  const int fd_;
};

}  // namespace postrider::test
