#include "cron/cron.h"

#include <absl/time/civil_time.h>
#include <absl/time/time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/text.h"

namespace muster::cron {

using base::Error;
using base::ErrorCode;

namespace {

// --- reading an expression

struct FieldRules {
  const char* name;
  int least;
  int most;
  std::vector<std::string> words;  ///< the first means `least`
};

const std::array<FieldRules, 5>& field_rules() {
  static const std::array<FieldRules, 5> rules{{
      {"minute", 0, 59, {}},
      {"hour", 0, 23, {}},
      {"day of the month", 1, 31, {}},
      {"month",
       1,
       12,
       {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
      {"day of the week", 0, 7, {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
  }};
  return rules;
}

std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

/// A number or a name within the limits of the field.
std::optional<int> value_of(const std::string& text, const FieldRules& rules) {
  const auto word = std::find(rules.words.begin(), rules.words.end(), lowered(text));
  if (word != rules.words.end()) {
    return rules.least + static_cast<int>(word - rules.words.begin());
  }
  const bool is_plain =
      !text.empty() && text.size() <= 2 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_plain) return std::nullopt;
  const int value = std::stoi(text);
  if (value < rules.least || value > rules.most) return std::nullopt;
  return value;
}

struct Span {
  int first = 0;
  int last = 0;
  int step = 1;
};

/// One entry of a list: "*", "5", "1-5", each but the number with "/STEP".
std::optional<Span> span_of(const std::string& text, const FieldRules& rules) {
  const size_t slash = text.find('/');
  const std::string range = text.substr(0, slash);
  Span span{.first = rules.least, .last = rules.most};
  const size_t dash = range.find('-');
  if (range != "*") {
    const auto first = value_of(range.substr(0, dash), rules);
    if (!first) return std::nullopt;
    span.first = span.last = *first;
    if (dash != std::string::npos) {
      const auto last = value_of(range.substr(dash + 1), rules);
      if (!last) return std::nullopt;
      span.last = *last;
      // "fri-sun"
      if (rules.most == 7 && span.last == 0 && span.first > 0) span.last = 7;
    } else if (slash != std::string::npos) {
      return std::nullopt;
    }
  }
  if (slash != std::string::npos) {
    const std::string step = text.substr(slash + 1);
    const FieldRules steps{.name = "", .least = 1, .most = 99, .words = {}};
    const auto value = value_of(step, steps);
    if (!value) return std::nullopt;
    span.step = *value;
  }
  if (span.first > span.last) return std::nullopt;
  return span;
}

template <size_t N>
bool read_field(const std::string& text, const FieldRules& rules, std::bitset<N>& into,
                std::vector<base::Fault>& faults) {
  for (const std::string& entry : base::split(text, ',')) {
    const auto span = span_of(entry, rules);
    if (!span) {
      faults.push_back({.field = rules.name,
                        .what = "'" + entry + "' is not valid; use '*', numbers from " +
                                std::to_string(rules.least) + " to " + std::to_string(rules.most) +
                                (rules.words.empty() ? "" : ", names such as " + rules.words[1]) +
                                ", ranges such as " + std::to_string(rules.least + 1) + "-" +
                                std::to_string(rules.least + 4) + ", and steps such as */2"});
      return false;
    }
    for (int value = span->first; value <= span->last; value += span->step) {
      into.set(static_cast<size_t>(rules.most == 7 ? value % 7 : value));
    }
  }
  return true;
}

std::string expanded(const std::string& text) {
  const std::array<std::pair<std::string_view, const char*>, 7> shorts{{{"@yearly", "0 0 1 1 *"},
                                                                        {"@annually", "0 0 1 1 *"},
                                                                        {"@monthly", "0 0 1 * *"},
                                                                        {"@weekly", "0 0 * * 0"},
                                                                        {"@daily", "0 0 * * *"},
                                                                        {"@midnight", "0 0 * * *"},
                                                                        {"@hourly", "0 * * * *"}}};
  for (const auto& [name, meaning] : shorts) {
    if (lowered(text) == name) return meaning;
  }
  return text;
}

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(text) + " ") {
    if (c != ' ' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

bool matches_day(const Cron& cron, absl::CivilDay day) {
  if (!cron.months[static_cast<size_t>(day.month())]) return false;
  // absl counts weekdays from Monday.
  const auto weekday = (static_cast<size_t>(absl::GetWeekday(day)) + 1) % 7;
  const bool in_month = cron.days[static_cast<size_t>(day.day())];
  const bool in_week = cron.weekdays[weekday];
  return cron.either_day ? in_month || in_week : in_month && in_week;
}

// The days of the week and the leap years repeat within this time, also across 2100.
constexpr int kSearchedDays = 40 * 366;

bool matches_ever(const Cron& cron) {
  absl::CivilDay day(2001, 1, 1);
  for (int i = 0; i < kSearchedDays; ++i, ++day) {
    if (matches_day(cron, day)) return true;
  }
  return false;
}

}  // namespace

base::Result<Cron> parse_cron(std::string_view text) {
  Error error{.code = ErrorCode::kInvalid,
              .what = "'" + std::string(text) + "' is not a cron expression",
              .advice =
                  "give five fields: minute, hour, day of the month, month, day of the week, "
                  "as in '0 3 * * mon-fri'; or @hourly, @daily, @weekly, @monthly, @yearly"};
  const std::vector<std::string> fields = words_in(expanded(base::joined(words_in(text), " ")));
  if (fields.size() != 5) {
    error.faults.push_back({.what = "has " + std::to_string(fields.size()) +
                                    (fields.size() == 1 ? " field" : " fields") + " instead of 5"});
    return error;
  }
  Cron cron;
  const auto& rules = field_rules();
  read_field(fields[0], rules[0], cron.minutes, error.faults);
  read_field(fields[1], rules[1], cron.hours, error.faults);
  read_field(fields[2], rules[2], cron.days, error.faults);
  read_field(fields[3], rules[3], cron.months, error.faults);
  read_field(fields[4], rules[4], cron.weekdays, error.faults);
  if (!error.faults.empty()) return error;
  cron.either_day = !fields[2].starts_with('*') && !fields[4].starts_with('*');
  if (matches_ever(cron)) return cron;
  error.faults.push_back({.what = "never matches: there is no such day"});
  return error;
}

// --- zones

struct Zone::Data {
  std::string name;
  absl::TimeZone zone;
};

namespace {

/// The names of the database. The library would also read other files by their paths.
bool is_zone_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-' || c == '/';
  };
  return !name.empty() && name.size() <= 64 && name.front() != '/' && name.back() != '/' &&
         std::all_of(name.begin(), name.end(), allowed);
}

absl::Time to_absl(base::Time time) {
  return absl::FromUnixNanos(time.time_since_epoch().count());
}

base::Time from_absl(absl::Time time) {
  return base::Time(std::chrono::nanoseconds(absl::ToUnixNanos(time)));
}

}  // namespace

base::Result<Zone> load_zone(const std::string& name) {
  auto data = std::make_shared<Zone::Data>();
  data->name = name;
  if (name == "UTC") {
    data->zone = absl::UTCTimeZone();
    return Zone(std::move(data));
  }
  if (is_zone_name(name) && absl::LoadTimeZone(name, &data->zone)) return Zone(std::move(data));
  return Error{.code = ErrorCode::kInvalid,
               .what = "there is no time zone " + base::in_quotes(name) + " on the server",
               .advice =
                   "give a name of the IANA database, such as Europe/Zurich, or UTC; the "
                   "server needs the package tzdata"};
}

const std::string& Zone::name() const {
  return data_->name;
}

LocalTime Zone::local(base::Time time) const {
  const absl::Time instant = to_absl(time);
  const absl::TimeZone::CivilInfo info = data_->zone.At(instant);
  const absl::CivilSecond& at = info.cs;
  LocalTime local{.year = static_cast<int>(at.year()),
                  .month = at.month(),
                  .day = at.day(),
                  .hour = at.hour(),
                  .minute = at.minute(),
                  .second = at.second(),
                  .weekday = (static_cast<int>(absl::GetWeekday(at)) + 1) % 7};
  const absl::TimeZone::TimeInfo instants = data_->zone.At(at);
  local.is_second_pass =
      instants.kind == absl::TimeZone::TimeInfo::REPEATED && instant >= instants.post;
  const int minutes = std::abs(info.offset) / 60;
  std::array<char, 16> offset{};
  std::snprintf(offset.data(), offset.size(), "%c%02d:%02d", info.offset < 0 ? '-' : '+',
                minutes / 60 % 100, minutes % 60);
  local.offset = offset.data();
  return local;
}

// --- runs

namespace {

/// The instants of the runs on a local day, in any order; some may be equal.
std::vector<absl::Time> runs_on(const Cron& cron, const absl::TimeZone& zone, absl::CivilDay day) {
  using Info = absl::TimeZone::TimeInfo;
  std::vector<absl::Time> runs;
  if (!matches_day(cron, day)) return runs;
  const Info begin = zone.At(absl::CivilSecond(day));
  const Info end = zone.At(absl::CivilSecond(day + 1));
  const bool is_plain = begin.kind == Info::UNIQUE && end.kind == Info::UNIQUE &&
                        end.pre - begin.pre == absl::Hours(24);
  for (int hour = 0; hour < 24; ++hour) {
    if (!cron.hours[static_cast<size_t>(hour)]) continue;
    for (int minute = 0; minute < 60; ++minute) {
      if (!cron.minutes[static_cast<size_t>(minute)]) continue;
      if (is_plain) {
        runs.push_back(begin.pre + absl::Hours(hour) + absl::Minutes(minute));
        continue;
      }
      const Info at =
          zone.At(absl::CivilSecond(day.year(), day.month(), day.day(), hour, minute, 0));
      if (at.kind == Info::SKIPPED) {
        if (!cron.runs_every_hour()) runs.push_back(at.trans);
        continue;
      }
      runs.push_back(at.pre);
      if (at.kind == Info::REPEATED && cron.runs_every_hour()) runs.push_back(at.post);
    }
  }
  return runs;
}

}  // namespace

// Local days are searched one by one. Where clocks go back across midnight, an instant of one day may
// lie before an instant of the day before it. So the day next to the first with a run counts as well.

std::optional<base::Time> next_run(const Cron& cron, const Zone& zone, base::Time time) {
  const absl::TimeZone& clock = zone.data().zone;
  const absl::Time from = to_absl(time);
  std::optional<absl::Time> next;
  absl::CivilDay day = absl::ToCivilDay(from, clock) - 1;
  for (int i = 0; i < kSearchedDays; ++i, ++day) {
    const bool is_last = next.has_value();
    for (const absl::Time run : runs_on(cron, clock, day)) {
      if (run > from && (!next || run < *next)) next = run;
    }
    if (is_last) break;
  }
  if (!next) return std::nullopt;
  return from_absl(*next);
}

std::optional<base::Time> last_run(const Cron& cron, const Zone& zone, base::Time from,
                                   base::Time until) {
  const absl::TimeZone& clock = zone.data().zone;
  const absl::Time first = to_absl(from);
  const absl::Time end = to_absl(until);
  std::optional<absl::Time> last;
  const absl::CivilDay earliest = absl::ToCivilDay(first, clock) - 1;
  for (absl::CivilDay day = absl::ToCivilDay(end, clock) + 1; day >= earliest; --day) {
    const bool is_last = last.has_value();
    for (const absl::Time run : runs_on(cron, clock, day)) {
      if (run > first && run <= end && (!last || run > *last)) last = run;
    }
    if (is_last) break;
  }
  if (!last) return std::nullopt;
  return from_absl(*last);
}

}  // namespace muster::cron
