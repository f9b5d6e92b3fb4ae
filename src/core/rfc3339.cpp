// SPDX-License-Identifier: Apache-2.0
#include "core/rfc3339.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace postrider {
namespace {

using namespace std::chrono;  // NOLINT(google-build-using-namespace)

/// Takes a text apart from left to right. Once something did not fit, nothing fits any more.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  /// A number of exactly so many digits, between two bounds.
  int digits(std::size_t count, int least, int most) {
    int value = 0;
    if (text_.size() < count) return fail();
    for (const char c : text_.substr(0, count)) {
      if (c < '0' || c > '9') return fail();
      value = value * 10 + (c - '0');
    }
    text_.remove_prefix(count);
    return value < least || value > most ? fail() : value;
  }
  char one_of(std::string_view choice) {
    if (text_.empty() || choice.find(text_.front()) == std::string_view::npos) {
      fail();
      return '\0';
    }
    const char c = text_.front();
    text_.remove_prefix(1);
    return c;
  }
  /// What stands behind the decimal point, if there is one.
  microseconds fraction() {
    if (!text_.starts_with('.')) return {};
    text_.remove_prefix(1);
    const std::size_t count = std::min(text_.find_first_not_of("0123456789"), text_.size());
    if (count == 0 || count > 9) return microseconds{fail()};
    std::int64_t value = 0;
    for (std::size_t i = 0; i < 6; ++i) value = value * 10 + (i < count ? text_[i] - '0' : 0);
    text_.remove_prefix(count);
    return microseconds{value};
  }
  minutes offset() {
    const char sign = one_of("Zz+-");
    if (sign != '+' && sign != '-') return {};
    const int hour = digits(2, 0, 23);
    one_of(":");
    const minutes offset{hour * 60 + digits(2, 0, 59)};
    return sign == '-' ? -offset : offset;
  }
  [[nodiscard]] bool done() const { return ok_ && text_.empty(); }

 private:
  int fail() {
    ok_ = false;
    text_ = {};
    return 0;
  }
  std::string_view text_;
  bool ok_ = true;
};

}  // namespace

std::optional<TimePoint> parse_time(std::string_view text) {
  Reader reader(text);
  const year_month_day date = [&] {
    const year y{reader.digits(4, 1000, 9999)};
    reader.one_of("-");
    const month m{static_cast<unsigned>(reader.digits(2, 1, 12))};
    reader.one_of("-");
    return y / m / day{static_cast<unsigned>(reader.digits(2, 1, 31))};
  }();
  reader.one_of("Tt ");
  const hours hour{reader.digits(2, 0, 23)};
  reader.one_of(":");
  const minutes minute{reader.digits(2, 0, 59)};
  reader.one_of(":");
  const seconds second{std::min(reader.digits(2, 0, 60), 59)};
  const microseconds fraction = reader.fraction();
  const minutes offset = reader.offset();
  if (!reader.done() || !date.ok()) return std::nullopt;
  const TimePoint time = TimePoint(sys_days{date}) + hour + minute + second + fraction - offset;
  if (time < first_time || time >= end_of_time) return std::nullopt;  // an offset may lead out of them
  return time;
}

std::string format_time(TimePoint time) {
  std::string text;
  text.reserve(27);
  append_time(text, time);
  return text;
}

void append_time(std::string& text, TimePoint time) {
  const auto midnight = floor<days>(time);
  const year_month_day date{midnight};
  const hh_mm_ss clock{time - midnight};
  // Without printf: a sink formats one for every message.
  const auto number = [&text](int value, int width, char before) {
    std::array<char, 12> digits{};
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    if (before != 0) text += before;
    for (auto written = end - digits.data(); written < width; ++written) text += '0';
    text.append(digits.data(), end);
  };
  number(static_cast<int>(date.year()), 4, 0);
  number(static_cast<int>(static_cast<unsigned>(date.month())), 2, '-');
  number(static_cast<int>(static_cast<unsigned>(date.day())), 2, '-');
  number(static_cast<int>(clock.hours().count()), 2, 'T');
  number(static_cast<int>(clock.minutes().count()), 2, ':');
  number(static_cast<int>(clock.seconds().count()), 2, ':');
  const auto micros = static_cast<int>(clock.subseconds().count());
  if (micros % 1000 != 0) {
    number(micros, 6, '.');
  } else if (micros != 0) {
    number(micros / 1000, 3, '.');
  }
  text += 'Z';
}

}  // namespace postrider
