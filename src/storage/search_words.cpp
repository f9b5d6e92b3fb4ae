// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "storage/entry_store.hpp"

namespace postrider {
namespace {

bool parts_words(char c) {
  const auto byte = static_cast<unsigned char>(c);
  const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
  return byte < 0x80 && !letter && (byte < '0' || byte > '9');
}

}  // namespace

std::vector<std::string> search_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty() && std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    word.clear();
  };
  for (const char c : text) {
    if (parts_words(c)) {
      finish();
    } else {
      word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  finish();
  return words;
}

}  // namespace postrider
