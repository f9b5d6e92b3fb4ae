// SPDX-License-Identifier: Apache-2.0
#include "logger/json_writer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>

#include "core/utf8.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace postrider::logger {
namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);
constexpr std::uint64_t ones = 0x0101010101010101ULL;
constexpr std::uint64_t tops = 0x8080808080808080ULL;
constexpr std::uint64_t spaces = ones * ' ';

static_assert(std::endian::native == std::endian::little, "the first byte of a text is a word's lowest");

template <class T>
T load(const char* from) noexcept {
  T value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// The top bit of each byte that cannot be copied as it is: control characters, quotes, backslashes, and all
/// beyond ASCII. Borrows may flag a harmless byte above an offending one; the lowest flag is always right.
std::uint64_t special_bytes(std::uint64_t word) noexcept {
  const auto zero_bytes = [](std::uint64_t x) { return (x - ones) & ~x; };
  return ((word - ones * 0x20) | word | zero_bytes(word ^ (ones * '"')) | zero_bytes(word ^ (ones * '\\')) |
          zero_bytes(word ^ (ones * 0x7f))) &
         tops;
}

/// Up to eight bytes, with spaces behind them. Reads nothing outside of the text.
std::uint64_t last_word(const char* begin, std::size_t size) noexcept {
  std::uint64_t word = 0;
  if (size >= 4) {
    word = load<std::uint32_t>(begin) |
           (std::uint64_t{load<std::uint32_t>(begin + size - 4)} << ((size - 4) * 8));
  } else if (size >= 2) {
    word = load<std::uint16_t>(begin) |
           (std::uint64_t{load<std::uint16_t>(begin + size - 2)} << ((size - 2) * 8));
  } else {
    word = static_cast<unsigned char>(*begin);
  }
  return size == word_bytes ? word : word | (spaces << (size * 8));
}

constexpr auto hex_pairs = [] {
  constexpr std::string_view digits = "0123456789abcdef";
  std::array<char, 512> pairs{};
  for (std::size_t i = 0; i < 256; ++i) {
    pairs.at(2 * i) = digits[i >> 4U];
    pairs.at(2 * i + 1) = digits[i & 15U];
  }
  return pairs;
}();

char* put_hex_byte(char* out, unsigned char byte) noexcept {
  std::memcpy(out, &hex_pairs[std::size_t{byte} * 2], 2);
  return out + 2;
}

char* put_escape(char* out, char c) noexcept {
  switch (c) {
    case '"':
      return put(out, "\\\"");
    case '\\':
      return put(out, "\\\\");
    case '\n':
      return put(out, "\\n");
    case '\r':
      return put(out, "\\r");
    case '\t':
      return put(out, "\\t");
    default:
      return put_hex_byte(put(out, "\\u00"), static_cast<unsigned char>(c));
  }
}

/// The special character at the front, or all that follow each other beyond ASCII: these are repaired
/// together.
char* put_special(char* out, std::string_view& text) {
  if (static_cast<unsigned char>(text.front()) < 0x80) {
    out = put_escape(out, text.front());
    text.remove_prefix(1);
    return out;
  }
  std::size_t run = 1;
  while (run < text.size() && static_cast<unsigned char>(text[run]) >= 0x80) ++run;
  const std::string_view foreign = text.substr(0, run);
  text.remove_prefix(run);
  return utf8_length(foreign) ? put(out, foreign) : put(out, utf8_repaired(foreign));
}

constexpr auto digit_pairs = [] {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs.at(2 * i) = static_cast<char>('0' + i / 10);
    pairs.at(2 * i + 1) = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

/// Two digits of a number below 100.
char* put_pair(char* out, unsigned value) noexcept {
  std::memcpy(out, &digit_pairs[std::size_t{value} * 2], 2);
  return out + 2;
}

/// Nearly all texts have nothing to escape: copied a word at a time, with one question at the end. False when
/// it has; what was written is worth nothing then.
bool copy_plain(char* out, std::string_view text) noexcept {
  const char* const in = text.data();
  const std::size_t size = text.size();
  std::uint64_t special = 0;
  const auto copy_word = [&](std::size_t at) {
    const auto word = load<std::uint64_t>(in + at);
    std::memcpy(out + at, &word, sizeof word);
    special |= special_bytes(word);
  };
  if (size < word_bytes) {
    const std::uint64_t word = last_word(in, size);
    std::memcpy(out, &word, sizeof word);
    return special_bytes(word) == 0;
  }
  for (std::size_t at = 0; at + word_bytes < size; at += word_bytes) copy_word(at);
  copy_word(size - word_bytes);  // some of it a second time
  return special == 0;
}

/// For the others. Apart, so that those that need nothing of it do not save its registers.
[[gnu::noinline]] char* put_with_escapes(char* out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = std::min(text.size(), word_bytes);
    const std::uint64_t word =
        size == word_bytes ? load<std::uint64_t>(text.data()) : last_word(text.data(), size);
    std::memcpy(out, &word, sizeof word);
    const std::uint64_t special = special_bytes(word);
    const std::size_t plain = special == 0 ? size : static_cast<std::size_t>(std::countr_zero(special)) / 8;
    out += plain;
    text.remove_prefix(plain);
    if (special != 0) out = put_special(out, text);
  }
  return out;
}

}  // namespace

char* put_escaped(char* out, std::string_view text) {
  if (text.empty()) return out;
  return copy_plain(out, text) ? out + text.size() : put_with_escapes(out, text);
}

#if defined(__SSE2__)
char* put_escaped_part(char* out, std::string_view text, const char* end) {
  constexpr std::size_t block = sizeof(__m128i);
  const std::size_t size = text.size();
  const char* const in = text.data();
  if (size + block > static_cast<std::size_t>(end - in)) return put_escaped(out, text);
  // One bit for each of sixteen bytes; as signed numbers those beyond ASCII are below the space as well.
  const auto copy_block = [&](std::size_t at) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + at));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + at), bytes);
    const auto is = [&](char c) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)); };
    const __m128i control = _mm_or_si128(_mm_cmplt_epi8(bytes, _mm_set1_epi8(' ')), is('\x7f'));
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(is('"'), is('\\')))));
  };
  unsigned special = 0;
  std::size_t at = 0;
  for (; at + block <= size; at += block) special |= copy_block(at);
  special |= copy_block(at) & ((1U << (size - at)) - 1);
  return special == 0 ? out + size : put_with_escapes(out, text);
}
#else
char* put_escaped_part(char* out, std::string_view text, const char* /*end*/) {
  return put_escaped(out, text);
}
#endif

char* put_hex(char* out, std::uint64_t value) noexcept {
  for (unsigned shift = 64; shift > 0; shift -= 8)
    out = put_hex_byte(out, static_cast<unsigned char>(value >> (shift - 8)));
  return out;
}

char* TimeWriter::put(char* out, TimePoint time) {
  // Years that four digits can say; others are the work of a broken clock.
  constexpr TimePoint first{std::chrono::sys_days{std::chrono::year{0} / 1 / 1}};
  constexpr TimePoint last = TimePoint{std::chrono::sys_days{std::chrono::year{9999} / 12 / 31}};
  time = std::clamp(time, first, last);
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  if (second.time_since_epoch().count() != second_) {
    const auto day = std::chrono::floor<std::chrono::days>(second);
    const std::chrono::year_month_day date{day};
    const auto of_day = static_cast<unsigned>((second - day).count());
    const auto year = static_cast<unsigned>(static_cast<int>(date.year()));
    char* at = put_pair(put_pair(text_, year / 100), year % 100);
    *at++ = '-';
    at = put_pair(at, static_cast<unsigned>(date.month()));
    *at++ = '-';
    at = put_pair(at, static_cast<unsigned>(date.day()));
    *at++ = 'T';
    at = put_pair(at, of_day / 3600);
    *at++ = ':';
    at = put_pair(at, of_day / 60 % 60);
    *at++ = ':';
    at = put_pair(at, of_day % 60);
    *at = '.';
    second_ = second.time_since_epoch().count();
  }
  std::memcpy(out, text_, text_size);
  const auto fraction = static_cast<unsigned>((time - second).count());
  out = put_pair(out + text_size, fraction / 10'000);
  out = put_pair(out, fraction / 100 % 100);
  // Three digits when they say it all.
  out = fraction % 1000 == 0 ? out - 1 : put_pair(out, fraction % 100);
  *out = 'Z';
  return out + 1;
}

}  // namespace postrider::logger
