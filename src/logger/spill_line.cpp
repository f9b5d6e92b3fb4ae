// SPDX-License-Identifier: Apache-2.0
// The one file of this room that includes Boost.JSON: it is slow to compile.
#include "logger/spill_line.hpp"

#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <charconv>

#include "logger/checksum.hpp"
#include "logger/json_writer.hpp"
#include "logger/packed_entry.hpp"

namespace postrider::logger {
namespace {

namespace bj = boost::json;

constexpr std::string_view opening = R"({"spillSeq":)";
constexpr std::string_view key_opening = R"(,"idempotencyKey":")";
constexpr std::string_view sum_opening = R"(,"xxh3":")";
constexpr std::string_view closing = R"("})";
constexpr std::size_t digits = 16;
constexpr std::size_t trailer = sum_opening.size() + digits + closing.size();

std::array<char, digits> hex(std::uint64_t value) noexcept {
  constexpr std::string_view alphabet = "0123456789abcdef";
  std::array<char, digits> text{};
  for (std::size_t i = digits; i-- > 0; value >>= 4U) text.at(i) = alphabet[value & 15U];
  return text;
}

bool has_trailer(std::string_view line) noexcept {
  return line.size() > trailer && line.substr(line.size() - trailer, sum_opening.size()) == sum_opening &&
         line.substr(line.size() - closing.size()) == closing;
}

std::string_view trimmed(std::string_view line) noexcept {
  constexpr std::string_view blank = " \t\r";
  const std::size_t begin = line.find_first_not_of(blank);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(blank) - begin + 1);
}

/// Without a checksum of ours only the grammar can tell whether a line is whole.
SpillLine parse_foreign(std::string_view line) {
  SpillLine parsed;
  line = trimmed(line);
  bj::error_code error;
  bj::parse_options options;
  options.allow_invalid_utf8 = false;
  const bj::value value = bj::parse(bj::string_view(line.data(), line.size()), error, {}, options);
  if (error || !value.is_object() || value.get_object().empty()) return parsed;
  const bj::object& object = value.get_object();
  // A number or a checksum of ours that does not hold: a damaged line of ours, however well it parses.
  if (object.contains("spillSeq") || object.contains("xxh3")) return parsed;
  parsed.kind = SpillLine::Kind::foreign;
  parsed.members = line.substr(1, line.size() - 2);
  const bj::value* const key = object.if_contains("idempotencyKey");
  if (key != nullptr && key->is_string()) {
    // Plain keys stand in the line as they are; another one is left to the receiver.
    const std::string_view text(key->get_string().data(), key->get_string().size());
    const std::size_t at = line.find(text);
    if (is_plain_key(text) && at != std::string_view::npos) parsed.key = line.substr(at, text.size());
  }
  return parsed;
}

}  // namespace

char* open_spill_line(char* line, SpillSeq seq) noexcept {
  constexpr std::size_t most_digits = 20;
  line = put(line, opening);
  return put(std::to_chars(line, line + most_digits, seq).ptr, ",");
}

char* close_spill_line(const char* line, char* end) noexcept {
  const std::uint64_t sum = checksum({line, static_cast<std::size_t>(end - line)});
  return put(put(put_hex(put(end, sum_opening), sum), closing), "\n");
}

void append_spill_line(std::string& out, SpillSeq seq, std::string_view members) {
  const std::size_t before = out.size();
  out.resize(before + spill_line_room + members.size());
  const char* const begin = out.data() + before;
  const char* const end = close_spill_line(begin, put(open_spill_line(out.data() + before, seq), members));
  out.resize(static_cast<std::size_t>(end - out.data()));
}

std::optional<SpillSeq> leading_seq(std::string_view line) noexcept {
  if (!line.starts_with(opening)) return std::nullopt;
  SpillSeq seq = 0;
  const char* const end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data() + opening.size(), end, seq);
  if (error != std::errc{} || stop == end || *stop != ',') return std::nullopt;
  return seq;
}

SpillLine parse_spill_line(std::string_view line) {
  SpillLine parsed;
  const auto seq = leading_seq(line);
  if (!seq || !has_trailer(line)) return parse_foreign(line);
  const std::string_view body = line.substr(0, line.size() - trailer);
  const auto sum = hex(checksum(body));
  const std::string_view written = line.substr(body.size() + sum_opening.size(), digits);
  if (written != std::string_view(sum.data(), sum.size())) return parsed;
  const std::size_t comma = body.find(',', opening.size());
  const std::size_t key = body.rfind(key_opening);
  if (comma == std::string_view::npos || key == std::string_view::npos || body.back() != '"') return parsed;
  parsed.kind = SpillLine::Kind::ours;
  parsed.seq = *seq;
  parsed.members = body.substr(comma + 1);
  parsed.key = body.substr(key + key_opening.size());
  parsed.key.remove_suffix(1);
  return parsed;
}

LineMarks marks_of(std::string_view line) noexcept {
  return {line.starts_with(opening), has_trailer(line)};
}

std::size_t find_glued_line(std::string_view line) noexcept {
  // The byte between the two lines was a newline once, and may be anything now.
  for (std::size_t at = line.find(opening, 1); at != std::string_view::npos;
       at = line.find(opening, at + 1)) {
    if (has_trailer(line.substr(0, at - 1))) return at;
  }
  return std::string_view::npos;
}

}  // namespace postrider::logger
