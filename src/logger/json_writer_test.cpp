// SPDX-License-Identifier: Apache-2.0
#include "logger/json_writer.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "logger/text_buffer.hpp"

namespace postrider::logger {
namespace {

/// One byte after the other, as anybody would write it. ASCII only.
std::string escaped_simply(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '"':
      case '\\':
        (out += '\\') += c;
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (c >= ' ' && c < 0x7f) {
          out += c;
        } else {
          char code[8];
          std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
          out += code;
        }
    }
  }
  return out;
}

std::string escaped(std::string_view text) {
  std::string out(escaped_room(text.size()), '?');
  out.resize(static_cast<std::size_t>(put_escaped(out.data(), text) - out.data()));
  return out;
}

/// A page whose neighbours must not be touched: a read or write too far ends the test.
struct GuardedPage {
  const std::size_t size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  char* const before =
      static_cast<char*>(::mmap(nullptr, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  char* const begin = before + size;
  GuardedPage() { EXPECT_EQ(::mprotect(begin, size, PROT_READ | PROT_WRITE), 0); }
  ~GuardedPage() { ::munmap(before, 3 * size); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
};

TEST(JsonWriterTest, EveryCharacterAtEveryPlaceOfEveryLength) {
  const GuardedPage page;
  for (std::size_t size = 0; size <= 34; ++size) {
    for (std::size_t at = 0; at < std::max<std::size_t>(size, 1); ++at) {
      for (int c = 0; c < 0x80; ++c) {
        std::string text(size, 'x');
        if (size > 0) text[at] = static_cast<char>(c);
        // Right before the end of the page, and at its beginning.
        char* const last = page.begin + page.size - size;
        std::copy(text.begin(), text.end(), last);
        ASSERT_EQ(escaped({last, size}), escaped_simply(text)) << size << " " << at << " " << c;
        std::copy(text.begin(), text.end(), page.begin);
        ASSERT_EQ(escaped({page.begin, size}), escaped_simply(text)) << size << " " << at << " " << c;
      }
    }
  }
}

/// `text` in front of `behind`, both at the very end of the page; what lies behind must not be taken for a
/// part of the text.
std::string escaped_part(const GuardedPage& page, std::string_view text, std::string_view behind) {
  char* const end = page.begin + page.size;
  char* const begin = end - behind.size() - text.size();
  std::copy(behind.begin(), behind.end(), std::copy(text.begin(), text.end(), begin));
  std::string out(escaped_room(text.size()), '?');
  out.resize(static_cast<std::size_t>(put_escaped_part(out.data(), {begin, text.size()}, end) - out.data()));
  return out;
}

TEST(JsonWriterTest, APartOfALargerTextIsEscapedAsIfItStoodAlone) {
  const GuardedPage page;
  for (std::size_t size = 0; size <= 50; ++size) {
    for (std::size_t at = 0; at < std::max<std::size_t>(size, 1); ++at) {
      for (const char c : {'x', '"', '\\', '\n', '\x1f', '\x7f', ' ', '~'}) {
        std::string text(size, 'x');
        if (size > 0) text[at] = c;
        for (const std::size_t behind : {0U, 1U, 15U, 16U, 17U, 40U})
          ASSERT_EQ(escaped_part(page, text, std::string(behind, '"')), escaped_simply(text))
              << size << " " << at << " " << c << " " << behind;
      }
    }
  }
  EXPECT_EQ(escaped_part(page, "a Zürich\xff", std::string(20, '\x80')), "a Zürich\uFFFD");
}

TEST(JsonWriterTest, StaysInItsRoomWhateverComes) {
  const GuardedPage page;
  for (const char c : {'\x01', '"', '\xff', '\xc3', 'x'}) {
    for (std::size_t size = 0; size <= 40; ++size) {
      const std::string text(size, c);
      char* const out = page.begin + page.size - escaped_room(size);
      EXPECT_LE(put_escaped(out, text), page.begin + page.size);
      const std::string larger = text + std::string(16, c);
      EXPECT_LE(put_escaped_part(out, {larger.data(), size}, larger.data() + larger.size()),
                page.begin + page.size);
    }
  }
}

TEST(JsonWriterTest, TextBeyondAsciiStaysAndWhatIsNoUtf8IsRepaired) {
  EXPECT_EQ(escaped("Zürich, 東京 und \xf0\x9f\x90\x95"), "Zürich, 東京 und \xf0\x9f\x90\x95");
  EXPECT_EQ(escaped("a\xff\"b"), "a\uFFFD\\\"b");
  EXPECT_EQ(escaped("0123456\xc3"), "0123456\uFFFD") << "cut off at the end of a word";
}

TEST(JsonWriterTest, TimesOfTheSameSecondAndOfOthers) {
  TimeWriter writer;
  const auto text = [&](std::int64_t micros) {
    char out[TimeWriter::room];
    return std::string(out, writer.put(out, TimePoint{Duration{micros}}));
  };
  EXPECT_EQ(text(1'780'308'930'123'000), "2026-06-01T10:15:30.123Z");
  EXPECT_EQ(text(1'780'308'930'999'999), "2026-06-01T10:15:30.999999Z");
  EXPECT_EQ(text(1'780'308'931'000'000), "2026-06-01T10:15:31.000Z");
  EXPECT_EQ(text(-1), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(text(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(text(1'000), "1970-01-01T00:00:00.001Z");
  EXPECT_EQ(text(90'004), "1970-01-01T00:00:00.090004Z");
  EXPECT_EQ(text(INT64_MAX), "9999-12-31T00:00:00.000Z");
}

TEST(JsonWriterTest, HexadecimalDigits) {
  char out[16];
  EXPECT_EQ(put_hex(out, 0x0123456789abcdef), out + 16);
  EXPECT_EQ(std::string(out, 16), "0123456789abcdef");
}

TEST(TextBufferTest, KeepsWhatItHasWhenItGrows) {
  TextBuffer buffer;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    const std::string line = "line " + std::to_string(i);
    buffer.take(put(buffer.reserve(100), line));
    expected += line;
  }
  EXPECT_EQ(buffer.view(), expected);
  (void)buffer.reserve(100);
  EXPECT_EQ(buffer.view(), expected) << "reserved is not taken";
  buffer.truncate(4);
  EXPECT_EQ(buffer.view(), "line");
}

}  // namespace
}  // namespace postrider::logger
