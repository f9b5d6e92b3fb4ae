// SPDX-License-Identifier: Apache-2.0
// The one file of this room that includes Boost.JSON: it is slow to compile.
#include "core/json_text.hpp"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

namespace bj = boost::json;

/// Takes everything, keeps nothing. Its shape is Boost.JSON's.
struct NullHandler {
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);

  bool on_document_begin(bj::error_code&) { return true; }
  bool on_document_end(bj::error_code&) { return true; }
  bool on_array_begin(bj::error_code&) { return true; }
  bool on_array_end(std::size_t, bj::error_code&) { return true; }
  bool on_object_begin(bj::error_code&) { return true; }
  bool on_object_end(std::size_t, bj::error_code&) { return true; }
  bool on_string_part(bj::string_view, std::size_t, bj::error_code&) { return true; }
  bool on_string(bj::string_view, std::size_t, bj::error_code&) { return true; }
  bool on_key_part(bj::string_view, std::size_t, bj::error_code&) { return true; }
  bool on_key(bj::string_view, std::size_t, bj::error_code&) { return true; }
  bool on_number_part(bj::string_view, bj::error_code&) { return true; }
  bool on_int64(std::int64_t, bj::string_view, bj::error_code&) { return true; }
  bool on_uint64(std::uint64_t, bj::string_view, bj::error_code&) { return true; }
  bool on_double(double, bj::string_view, bj::error_code&) { return true; }
  bool on_bool(bool, bj::error_code&) { return true; }
  bool on_null(bj::error_code&) { return true; }
  bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
  bool on_comment(bj::string_view, bj::error_code&) { return true; }
};

/// Stops at what not every database stores.
struct StoredHandler : NullHandler {
  std::string_view fault{};

  bool judge(bool taken, std::string_view otherwise, bj::error_code& error) {
    if (taken) return true;
    fault = otherwise;
    error = bj::error::syntax;
    return false;
  }
  bool text(bj::string_view part, bj::error_code& error) {
    return judge(part.find('\0') == bj::string_view::npos, "the character U+0000", error);
  }
  bool on_string_part(bj::string_view part, std::size_t, bj::error_code& error) { return text(part, error); }
  bool on_string(bj::string_view part, std::size_t, bj::error_code& error) { return text(part, error); }
  bool on_key_part(bj::string_view part, std::size_t, bj::error_code& error) { return text(part, error); }
  bool on_key(bj::string_view part, std::size_t, bj::error_code& error) { return text(part, error); }
  bool on_double(double value, bj::string_view, bj::error_code& error) {
    return judge(std::isfinite(value), "a number that is too large for anybody to read back", error);
  }
};

/// Stops at what a tree does not keep.
struct LossHandler : NullHandler {
  static constexpr std::size_t shown_digits = 40;
  std::vector<std::set<std::string>> names{};  // of the objects that are open
  std::string part{};                          // of a name or a number
  std::optional<std::string> loss{};

  std::string whole(bj::string_view end) {
    part.append(end.data(), end.size());
    return std::exchange(part, {});
  }
  bool stop(std::string why, bj::error_code& error) {
    loss = std::move(why);
    error = bj::error::syntax;
    return false;
  }
  bool on_object_begin(bj::error_code&) {
    names.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, bj::error_code&) {
    names.pop_back();
    return true;
  }
  bool on_key_part(bj::string_view text, std::size_t, bj::error_code&) {
    part.append(text.data(), text.size());
    return true;
  }
  bool on_key(bj::string_view end, std::size_t, bj::error_code& error) {
    const auto [name, fresh] = names.back().insert(whole(end));
    return fresh || stop("the member '" + *name + "' is given more than once", error);
  }
  bool on_number_part(bj::string_view text, bj::error_code&) {
    part.append(text.data(), text.size());
    return true;
  }
  bool on_int64(std::int64_t, bj::string_view, bj::error_code&) {
    part.clear();
    return true;
  }
  bool on_uint64(std::uint64_t, bj::string_view, bj::error_code&) {
    part.clear();
    return true;
  }
  bool on_double(double value, bj::string_view end, bj::error_code& error) {
    const std::string digits = whole(end);
    if (std::isfinite(value)) return true;
    return stop("the number " + digits.substr(0, shown_digits) +
                    (digits.size() > shown_digits ? "\u2026" : "") + " is beyond what a double can have",
                error);
  }
};

/// Stops at what is not an array of texts.
struct TextsHandler : NullHandler {
  const std::function<void(std::string_view)>* each = nullptr;
  bool within = false;
  std::string_view fault{};
  std::string parts{};

  bool refuse(bj::error_code& error) {
    fault = within ? "one of them is not a text" : "they are not a JSON array";
    error = bj::error::syntax;
    return false;
  }
  bool on_array_begin(bj::error_code& error) {
    if (within) return refuse(error);
    return within = true;
  }
  bool on_object_begin(bj::error_code& error) { return refuse(error); }
  bool on_int64(std::int64_t, bj::string_view, bj::error_code& error) { return refuse(error); }
  bool on_uint64(std::uint64_t, bj::string_view, bj::error_code& error) { return refuse(error); }
  bool on_double(double, bj::string_view, bj::error_code& error) { return refuse(error); }
  bool on_bool(bool, bj::error_code& error) { return refuse(error); }
  bool on_null(bj::error_code& error) { return refuse(error); }
  bool on_string_part(bj::string_view part, std::size_t, bj::error_code& error) {
    if (!within) return refuse(error);
    parts.append(part.data(), part.size());
    return true;
  }
  bool on_string(bj::string_view part, std::size_t, bj::error_code& error) {
    if (!within) return refuse(error);
    if (parts.empty()) {  // nearly always
      (*each)({part.data(), part.size()});
      return true;
    }
    parts.append(part.data(), part.size());
    (*each)(parts);
    parts.clear();
    return true;
  }
};

bj::parse_options with_depth(std::size_t max_depth) {
  bj::parse_options options;
  options.max_depth = max_depth;
  return options;
}

std::string position(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = lines == 0 ? 0 : before.rfind('\n') + 1;
  const auto starts_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  const auto chars =
      std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start), before.end(), starts_character);
  return "at byte " + std::to_string(offset) + " (line " + std::to_string(lines + 1) + ", column " +
         std::to_string(chars + 1) + ")";
}

/// The character at the beginning of `rest`, quoted when it can be shown.
std::string culprit(std::string_view rest) {
  const std::string_view character = utf8_prefix(rest, 1);
  const auto byte = static_cast<unsigned char>(rest.front());
  if (byte >= 0x20 && byte != 0x7F && utf8_length(character).has_value())
    return "'" + std::string(character) + "'";
  constexpr std::string_view digits = "0123456789ABCDEF";
  return std::string("byte 0x") + digits[byte >> 4] + digits[byte & 15];
}

std::string reason(bj::error_code error, std::string_view rest, std::size_t max_depth) {
  if (error == bj::error::too_deep) return "nested deeper than " + std::to_string(max_depth) + " levels";
  if (error == bj::error::incomplete || rest.empty()) return "the text ends too early";
  if (error == bj::error::extra_data) return "unexpected " + culprit(rest) + " after the end of the value";
  if (error == bj::error::syntax) return "unexpected " + culprit(rest);
  return error.message();
}

template <class Handler>
std::optional<std::string> fault_by(bj::basic_parser<Handler>& parser, std::string_view text,
                                    std::size_t max_depth) {
  bj::error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (!error && read == text.size()) return std::nullopt;
  if (!error) error = bj::error::extra_data;
  return position(text, read) + ": " + reason(error, text.substr(read), max_depth);
}

}  // namespace

std::optional<std::string> json_fault(std::string_view text, std::size_t max_depth) {
  bj::basic_parser<NullHandler> parser(with_depth(max_depth));
  return fault_by(parser, text, max_depth);
}

std::optional<std::string> stored_json_fault(std::string_view text, std::size_t max_depth) {
  bj::basic_parser<StoredHandler> parser(with_depth(max_depth));
  std::optional<std::string> fault = fault_by(parser, text, max_depth);
  const std::string_view seen = parser.handler().fault;
  return seen.empty() ? std::move(fault) : "it has " + std::string(seen);
}

std::optional<std::string> json_loss(std::string_view text, std::size_t max_depth) {
  bj::basic_parser<LossHandler> parser(with_depth(max_depth));
  bj::error_code error;
  (void)parser.write_some(false, text.data(), text.size(), error);
  return std::move(parser.handler().loss);
}

std::string_view each_json_text(std::string_view text, const std::function<void(std::string_view)>& each) {
  constexpr std::size_t depth = 2;  // one more than it has, for a better message than "too deep"
  bj::basic_parser<TextsHandler> parser(with_depth(depth));
  parser.handler().each = &each;
  bj::error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (!parser.handler().fault.empty()) return parser.handler().fault;
  if (error || read != text.size()) return "they are not a JSON array";
  return {};
}

std::string encode_headers(const Headers& headers) {
  if (headers.empty()) return {};
  std::string text = "{";
  for (const auto& [name, value] : headers) {
    if (text.size() > 1) text += ',';
    text += bj::serialize(bj::string_view(name));
    text += ':';
    text += bj::serialize(bj::string_view(value));
  }
  text += '}';
  return text;
}

Headers decode_headers(std::string_view text) {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, "headers cannot be read", why,
                R"(they must be one JSON object of strings, like {"trace":"abc"})");
  };
  Headers headers;
  if (text.empty()) return headers;
  constexpr std::size_t depth =
      2;  // an object of strings has 1; one more for a better message than "too deep"
  if (const auto fault = json_fault(text, depth)) refuse(*fault);
  const bj::value parsed = bj::parse(bj::string_view(text.data(), text.size()), {}, with_depth(depth));
  if (!parsed.is_object()) refuse("this is no object");
  for (const auto& member : parsed.get_object()) {
    std::string name(member.key().data(), member.key().size());
    if (!member.value().is_string()) refuse("the value of '" + name + "' is no string");
    const bj::string& value = member.value().get_string();
    headers.insert_or_assign(std::move(name), std::string(value.data(), value.size()));
  }
  return headers;
}

}  // namespace postrider
