#include "record/rfc3339.h"

namespace muster::record {

namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// Writes `value` with exactly `width` digits, and returns where they end.
char* put_digits(char* out, int64_t value, size_t width) {
  for (size_t i = width; i > 0; --i) {
    out[i - 1] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  return out + width;
}

/// Reads a text from left to right; remembers whether everything was as expected.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  /// Exactly `width` digits, between `low` and `high`.
  int number(size_t width, int low, int high) {
    int value = 0;
    for (size_t i = 0; i < width; ++i) value = value * 10 + digit();
    good_ = good_ && value >= low && value <= high;
    return value;
  }

  void expect(char letter) { good_ = take(letter) && good_; }

  bool take(char letter) {
    if (!text_.starts_with(letter)) return false;
    text_.remove_prefix(1);
    return true;
  }

  nanoseconds fraction() {
    if (!take('.')) return nanoseconds(0);
    int64_t value = 0;
    int64_t unit = 1'000'000'000;
    do {
      unit /= 10;
      value += digit() * unit;
    } while (good_ && has_digit());
    return nanoseconds(value);
  }

  minutes offset() {
    if (take('Z') || take('z')) return minutes(0);
    const int sign = take('-') ? -1 : 1;
    if (sign > 0) expect('+');
    const int hour = number(2, 0, 23);
    expect(':');
    return sign * (hours(hour) + minutes(number(2, 0, 59)));
  }

  bool good_to_the_end() const { return good_ && text_.empty(); }

 private:
  bool has_digit() const { return !text_.empty() && text_[0] >= '0' && text_[0] <= '9'; }

  int digit() {
    good_ = good_ && has_digit();
    if (!good_) return 0;
    const int value = text_[0] - '0';
    text_.remove_prefix(1);
    return value;
  }

  std::string_view text_;
  bool good_ = true;
};

}  // namespace

void append_rfc3339(std::string& out, base::Time time) {
  const auto day = floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[] = "0000-00-00T00:00:00.000000000Z";
  char* at = put_digits(text, static_cast<int>(date.year()), 4) + 1;
  at = put_digits(at, static_cast<unsigned>(date.month()), 2) + 1;
  at = put_digits(at, static_cast<unsigned>(date.day()), 2) + 1;
  at = put_digits(at, clock.hours().count(), 2) + 1;
  at = put_digits(at, clock.minutes().count(), 2) + 1;
  at = put_digits(at, clock.seconds().count(), 2) + 1;
  put_digits(at, clock.subseconds().count(), 9);
  out.append(text, sizeof text - 1);
}

std::optional<base::Time> parse_rfc3339(std::string_view text) {
  Reader reader(text);
  const std::chrono::year year(reader.number(4, 1678, 2261));
  reader.expect('-');
  const std::chrono::month month(static_cast<unsigned>(reader.number(2, 1, 12)));
  reader.expect('-');
  const std::chrono::day day(static_cast<unsigned>(reader.number(2, 1, 31)));
  if (!reader.take('t')) reader.expect('T');
  const hours hour(reader.number(2, 0, 23));
  reader.expect(':');
  const minutes minute(reader.number(2, 0, 59));
  reader.expect(':');
  const seconds second(reader.number(2, 0, 60));  // 60: a leap second
  const nanoseconds fraction = reader.fraction();
  const minutes offset = reader.offset();
  const auto date = year / month / day;
  if (!reader.good_to_the_end() || !date.ok()) return std::nullopt;
  return base::Time(std::chrono::sys_days(date)) + hour + minute + second + fraction - offset;
}

}  // namespace muster::record
