#include "cli/spec/begin_time.h"

#include <array>
#include <ctime>
#include <optional>
#include <string>

#include "base/text.h"
#include "base/units.h"
#include "record/rfc3339.h"

namespace muster::cli::spec {

namespace {

struct DayTime {
  int hour = 0;
  int minute = 0;
  int second = 0;
};

std::optional<int> digits(std::string_view text, size_t count) {
  if (text.size() != count) return std::nullopt;
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

/// "03:00", "3:00", "03:00:30"
std::optional<DayTime> day_time_of(std::string_view text) {
  const std::vector<std::string> parts = base::split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  const auto hour = digits(parts[0], parts[0].size() == 1 ? 1 : 2);
  const auto minute = digits(parts[1], 2);
  const auto second = parts.size() == 3 ? digits(parts[2], 2) : std::optional(0);
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 59) {
    return std::nullopt;
  }
  return DayTime{*hour, *minute, *second};
}

/// "2026-11-29"
bool read_date(std::string_view text, std::tm& into) {
  const std::vector<std::string> parts = base::split(text, '-');
  if (parts.size() != 3) return false;
  const auto year = digits(parts[0], 4);
  const auto month = digits(parts[1], 2);
  const auto day = digits(parts[2], 2);
  if (!year || !month || !day || *month < 1 || *month > 12 || *day < 1 || *day > 31) return false;
  into.tm_year = *year - 1900;
  into.tm_mon = *month - 1;
  into.tm_mday = *day;
  return true;
}

std::tm local_time(base::Time now) {
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  std::tm local{};
  localtime_r(&seconds, &local);
  return local;
}

/// Days beyond the end of the month are of the next month: for "tomorrow", and for a wrong date, which
/// the caller excludes.
std::optional<base::Time> instant_of(std::tm day, const DayTime& time) {
  day.tm_hour = time.hour;
  day.tm_min = time.minute;
  day.tm_sec = time.second;
  // With -1, glibc resolves a repeated time by its last conversion; so both are tried.
  std::optional<std::time_t> first;
  for (const int is_summer : {1, 0, -1}) {
    std::tm tried = day;
    tried.tm_isdst = is_summer;
    const std::time_t seconds = std::mktime(&tried);
    const bool is_it = tried.tm_hour == time.hour && tried.tm_min == time.minute;
    if (seconds == -1 || (!is_it && (is_summer != -1 || first))) continue;
    if (!first || seconds < *first) first = seconds;
  }
  if (!first) return std::nullopt;
  return base::Time(std::chrono::seconds(*first));
}

std::optional<base::Time> local_begin(std::string_view text, base::Time now) {
  const std::tm today = local_time(now);
  if (const auto time = day_time_of(text)) {
    const auto instant = instant_of(today, *time);
    if (instant && *instant > now) return instant;
    std::tm tomorrow = today;
    ++tomorrow.tm_mday;
    return instant_of(tomorrow, *time);
  }
  constexpr std::string_view kTomorrow = "tomorrow ";
  if (text.starts_with(kTomorrow)) {
    const auto time = day_time_of(text.substr(kTomorrow.size()));
    std::tm tomorrow = today;
    ++tomorrow.tm_mday;
    return time ? instant_of(tomorrow, *time) : std::nullopt;
  }
  constexpr size_t kDate = 10;  // "2026-11-29"
  std::tm day{};
  if (text.size() <= kDate || (text[kDate] != ' ' && text[kDate] != 'T')) return std::nullopt;
  const auto time = day_time_of(text.substr(kDate + 1));
  if (!time || !read_date(text.substr(0, kDate), day)) return std::nullopt;
  const auto instant = instant_of(day, *time);
  // mktime() has normalised 31 April to 1 May.
  if (!instant || local_time(*instant).tm_mon != day.tm_mon) return std::nullopt;
  return instant;
}

}  // namespace

base::Result<base::Time> parse_begin(std::string_view text, base::Time now) {
  constexpr auto kMost = std::chrono::hours(24 * 365 * 10);
  std::optional<base::Time> begin;
  if (text.starts_with('+')) {
    const auto delay = base::parse_duration(text.substr(1));
    if (delay && *delay <= kMost) begin = now + *delay;
  } else {
    begin = record::parse_rfc3339(text);
    if (!begin) begin = local_begin(text, now);
  }
  if (begin && *begin <= now + kMost) return *begin;
  return base::Error{
      .code = base::ErrorCode::kInvalid,
      .what = "'" + std::string(text) +
              "' is not a time within the next 10 years; give 03:00, tomorrow 03:00, "
              "+2h, 2026-11-29 03:00 (local time) or 2026-11-29T03:00:00+01:00"};
}

}  // namespace muster::cli::spec
