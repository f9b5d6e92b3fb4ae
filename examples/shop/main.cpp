// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include "shop.hpp"

namespace {

int usage(int code) {
  std::fprintf(code == 0 ? stdout : stderr,
               "postrider-shop: a small shop that loses no order, on embedded SQLite\n\n"
               "usage: postrider-shop [--seconds N]   run the show: 5 to 600 seconds (default 20),\n"
               "                                      and a few more for the other chapters\n"
               "       postrider-shop --help\n");
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string_view first = argc > 1 ? argv[1] : "";
    if (first == "--help" || first == "-h") return usage(0);
    if (argc == 3 && first == "--node") return shop::run_node({argv[2]}, false);
    if (argc == 3 && first == "--deliver") return shop::run_node({argv[2]}, true);
    if (argc == 3 && first == "--relay") return shop::run_relay_node({argv[2]});
    if (argc == 3 && first == "--resort") return shop::run_resort({argv[2]});
    if (argc == 3 && first == "--worker") return shop::run_queue_worker({argv[2]});

    int seconds = 20;
    if (argc == 3 && first == "--seconds") {
      const char* end = argv[2] + std::strlen(argv[2]);
      const auto parsed = std::from_chars(argv[2], end, seconds);
      if (parsed.ec != std::errc{} || parsed.ptr != end || seconds < 5 || seconds > 600) return usage(2);
    } else if (argc != 1) {
      return usage(2);
    }

    std::string pattern = (std::filesystem::temp_directory_path() / "postrider-shop-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      std::perror("postrider-shop: cannot make a folder for the demo");
      return 1;
    }
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    int code = shop::run_manager({pattern}, std::chrono::seconds{seconds}, self);
    if (code == 0) code = shop::run_queue_chapter({pattern}, self);
    if (code == 0) code = shop::run_wallet_chapter({pattern}, self);
    if (code == 0) code = shop::run_resort_chapter({pattern}, self);
    if (code == 0 || code == shop::interrupted_code) {
      std::filesystem::remove_all(pattern);
    } else {
      std::fprintf(stderr, "postrider-shop: everything is kept in %s\n", pattern.c_str());
    }
    return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "postrider-shop: %s\n", error.what());
    return 1;
  }
}
