#include "cron/cron.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace muster::cron {
namespace {

using base::Time;
using std::chrono::hours;
using std::chrono::minutes;

Time utc(int year, unsigned month, unsigned day, int hour = 0, int minute = 0) {
  return Time(std::chrono::sys_days(std::chrono::year(year) / std::chrono::month(month) /
                                    std::chrono::day(day))) +
         hours(hour) + minutes(minute);
}

/// "2026-03-29 03:00 +02:00"
std::string shown(const Zone& zone, Time time) {
  const LocalTime at = zone.local(time);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02d %02d:%02d %s", at.year, at.month, at.day,
                at.hour, at.minute, at.offset.c_str());
  return text;
}

std::vector<std::string> next_runs(const std::string& cron, const std::string& zone, Time from,
                                   int count) {
  const auto when = parse_cron(cron);
  const auto where = load_zone(zone);
  EXPECT_TRUE(when && where) << cron << " " << zone;
  std::vector<std::string> runs;
  for (int i = 0; i < count; ++i) {
    const auto next = next_run(*when, *where, from);
    if (!next) break;
    runs.push_back(shown(*where, *next));
    from = *next;
  }
  return runs;
}

using Texts = std::vector<std::string>;

TEST(ParseCron, ReadsNumbersNamesRangesListsAndSteps) {
  const auto cron = parse_cron("*/20 9-17/4 1,15 jan-MAR,12 Mon,fri-sun");
  ASSERT_TRUE(cron);
  EXPECT_EQ(cron->minutes.count(), 3U);
  EXPECT_TRUE(cron->minutes[40]);
  EXPECT_EQ(cron->hours.to_ulong(), (1UL << 9) | (1UL << 13) | (1UL << 17));
  EXPECT_EQ(cron->days.to_ulong(), (1UL << 1) | (1UL << 15));
  EXPECT_EQ(cron->months.to_ulong(), (1UL << 1) | (1UL << 2) | (1UL << 3) | (1UL << 12));
  EXPECT_EQ(cron->weekdays.to_ulong(), 0b1100011U);
  EXPECT_TRUE(cron->either_day);
  EXPECT_EQ(*parse_cron("0 0 * * 7"), *parse_cron("@weekly"));
  EXPECT_EQ(*parse_cron("  0  0 * * *\t"), *parse_cron("@Daily"));
}

TEST(ParseCron, RefusesOtherTextsWithTheFieldThatIsWrong) {
  const std::map<std::string, std::string> table{{"60 * * * *", "minute"},
                                                 {"* 24 * * *", "hour"},
                                                 {"* * 0 * *", "day of the month"},
                                                 {"* * 32 * *", "day of the month"},
                                                 {"* * * 13 *", "month"},
                                                 {"* * * * 8", "day of the week"},
                                                 {"5-1 * * * *", "minute"},
                                                 {"5/15 * * * *", "minute"},
                                                 {"*/0 * * * *", "minute"},
                                                 {", * * * *", "minute"},
                                                 {"1,,2 * * * *", "minute"},
                                                 {"-1 * * * *", "minute"},
                                                 {"* * * foo *", "month"},

                                                 {"* * * *", ""},
                                                 {"* * * * * *", ""},
                                                 {"", ""},
                                                 {"@reboot", ""},
                                                 {"0 0 30 2 *", ""},
                                                 {"0 0 31 4,6,9,11 *", ""}};
  for (const auto& [text, field] : table) {
    const auto cron = parse_cron(text);
    ASSERT_FALSE(cron) << text;
    ASSERT_EQ(cron.error().faults.size(), 1U) << text;
    EXPECT_EQ(cron.error().faults[0].field, field) << text;
  }
  EXPECT_EQ(parse_cron("60 24 0 13 8").error().faults.size(), 5U);
  EXPECT_TRUE(parse_cron("0 0 29 2 *"));
}

TEST(LoadZone, ReadsOnlyTheDatabase) {
  for (const char* name : {"Nowhere/Land", "", "/etc/localtime", "../zoneinfo/UTC", "file:UTC",
                           "Europe", "Europe/", "Europe/Zurich\n"}) {
    EXPECT_FALSE(load_zone(name)) << name;
  }
  EXPECT_TRUE(load_zone("Europe/Zurich"));
  EXPECT_TRUE(load_zone("Etc/GMT+5"));
}

TEST(NextRun, TakesEitherDayIfBothAreRestricted) {
  // 1 November 2026 is a Sunday.
  EXPECT_EQ(
      next_runs("0 12 3 * wed", "UTC", utc(2026, 11, 1), 3),
      (Texts{"2026-11-03 12:00 +00:00", "2026-11-04 12:00 +00:00", "2026-11-11 12:00 +00:00"}));
  EXPECT_EQ(next_runs("0 12 */2 * wed", "UTC", utc(2026, 11, 1), 2),
            (Texts{"2026-11-11 12:00 +00:00", "2026-11-25 12:00 +00:00"}));
  EXPECT_EQ(next_runs("0 0 29 2 *", "UTC", utc(2096, 3, 1), 1), (Texts{"2104-02-29 00:00 +00:00"}));
}

TEST(NextRun, ASkippedTimeRunsOnceRightAfterTheGapAndARepeatedTimeOnce) {
  const struct {
    const char* cron;
    const char* zone;
    Time from;
    Texts runs;
  } table[] = {
      // Forward at 2:00 on 29 March 2026, back at 3:00 on 25 October 2026.
      {"30 2 * * *",
       "Europe/Zurich",
       utc(2026, 3, 28, 0),
       {"2026-03-28 02:30 +01:00", "2026-03-29 03:00 +02:00", "2026-03-30 02:30 +02:00"}},
      {"0,30 2 * * *",
       "Europe/Zurich",
       utc(2026, 3, 29, 0),
       {"2026-03-29 03:00 +02:00", "2026-03-30 02:00 +02:00", "2026-03-30 02:30 +02:00"}},
      {"0 2,3 * * *",
       "Europe/Zurich",
       utc(2026, 3, 29, 0),
       {"2026-03-29 03:00 +02:00", "2026-03-30 02:00 +02:00"}},
      {"30 2 * * *",
       "Europe/Zurich",
       utc(2026, 10, 24, 12),
       {"2026-10-25 02:30 +02:00", "2026-10-26 02:30 +01:00"}},
      {"30 1 * * *",
       "America/New_York",
       utc(2026, 10, 31, 12),
       {"2026-11-01 01:30 -04:00", "2026-11-02 01:30 -05:00"}},
      // Every hour: by elapsed time.
      {"30 * * * *",
       "Europe/Zurich",
       utc(2026, 3, 29, 0),
       {"2026-03-29 01:30 +01:00", "2026-03-29 03:30 +02:00"}},
      {"30 * * * *",
       "Europe/Zurich",
       utc(2026, 10, 24, 23, 45),
       {"2026-10-25 02:30 +02:00", "2026-10-25 02:30 +01:00", "2026-10-25 03:30 +01:00"}},
      // Half an hour, forward at 2:00 on 4 October 2026.
      {"15 2 * * *",
       "Australia/Lord_Howe",
       utc(2026, 10, 3, 0),
       {"2026-10-04 02:30 +11:00", "2026-10-05 02:15 +11:00"}},
      // Midnight does not exist on 4 November 2018, and is repeated on 18 February 2018.
      {"@daily",
       "America/Sao_Paulo",
       utc(2018, 11, 3, 12),
       {"2018-11-04 01:00 -02:00", "2018-11-05 00:00 -02:00"}},
      {"30 23 * * *",
       "America/Sao_Paulo",
       utc(2018, 2, 17, 12),
       {"2018-02-17 23:30 -02:00", "2018-02-18 23:30 -03:00"}},
      // 30 December 2011 does not exist.
      {"0 12 * * *",
       "Pacific/Apia",
       utc(2011, 12, 29, 12),
       {"2011-12-29 12:00 -10:00", "2011-12-31 00:00 +14:00", "2011-12-31 12:00 +14:00"}},
      {"0 6 * * *", "Asia/Kathmandu", utc(2026, 1, 1), {"2026-01-01 06:00 +05:45"}},
  };
  for (const auto& row : table) {
    EXPECT_EQ(next_runs(row.cron, row.zone, row.from, static_cast<int>(row.runs.size())), row.runs)
        << row.cron << " " << row.zone;
  }
}

// --- against each minute of the days around changes of clocks

/// Each minute of a period by the clock of a zone.
struct Minute {
  Time time;
  LocalTime local;
  Time clock;  ///< `local` as if it were UTC
};

std::vector<Minute> minutes_between(const Zone& zone, Time from, Time until) {
  std::vector<Minute> all;
  for (Time time = from; time <= until; time += minutes(1)) {
    const LocalTime at = zone.local(time);
    const Time clock = utc(at.year, static_cast<unsigned>(at.month), static_cast<unsigned>(at.day),
                           at.hour, at.minute);
    all.push_back({.time = time, .local = at, .clock = clock});
  }
  return all;
}

/// The runs of the period without its first minute, found by looking at each of its minutes.
std::set<Time> runs_by_minute(const Cron& cron, const std::vector<Minute>& all) {
  const auto matches = [&](const LocalTime& at) {
    const bool in_month = cron.days[static_cast<size_t>(at.day)];
    const bool in_week = cron.weekdays[static_cast<size_t>(at.weekday)];
    return cron.minutes[static_cast<size_t>(at.minute)] &&
           cron.hours[static_cast<size_t>(at.hour)] && cron.months[static_cast<size_t>(at.month)] &&
           (cron.either_day ? in_month || in_week : in_month && in_week);
  };
  const auto utc_zone = load_zone("UTC");
  std::set<Time> runs;
  for (size_t i = 1; i < all.size(); ++i) {
    const Minute& now = all[i];
    if (matches(now.local) && (cron.runs_every_hour() || !now.local.is_second_pass)) {
      runs.insert(now.time);
    }
    if (cron.runs_every_hour()) continue;
    // The local minutes between those of the last minute and of this one were skipped.
    for (Time skipped = all[i - 1].clock + minutes(1); skipped < now.clock; skipped += minutes(1)) {
      if (matches(utc_zone->local(skipped))) runs.insert(now.time);
    }
  }
  return runs;
}

TEST(NextRun, MissesAndDoublesNoMinuteAroundChangesOfClocks) {
  const struct {
    const char* zone;
    Time middle;
  } changes[] = {
      {"Europe/Zurich", utc(2026, 3, 29)},       {"Europe/Zurich", utc(2026, 10, 25)},
      {"America/New_York", utc(2026, 3, 8)},     {"America/New_York", utc(2026, 11, 1)},
      {"Australia/Lord_Howe", utc(2026, 10, 4)}, {"Australia/Lord_Howe", utc(2026, 4, 5)},
      {"America/Sao_Paulo", utc(2018, 11, 4)},   {"America/Sao_Paulo", utc(2018, 2, 18)},
      {"Pacific/Apia", utc(2011, 12, 30)},       {"America/St_Johns", utc(2010, 11, 7)},
      {"Africa/Casablanca", utc(2026, 2, 15)},   {"UTC", utc(2026, 12, 31)}};
  const char* crons[] = {"* * * * *",       "*/7 * * * *",    "30 2 * * *",
                         "*/15 1-3 * * *",  "1 0 * * *",      "59 23 * * sat",
                         "0 0,2 1,8 * sun", "*/30 */2 * * *", "0 12 30 12 *"};
  for (const auto& change : changes) {
    const auto zone = load_zone(change.zone);
    ASSERT_TRUE(zone) << change.zone;
    const Time from = change.middle - hours(30);
    const Time until = change.middle + hours(30);
    const std::vector<Minute> period = minutes_between(*zone, from, until);
    for (const char* text : crons) {
      SCOPED_TRACE(std::string(text) + " " + change.zone);
      // Thousands of runs, each found by itself.
      const bool is_dense = std::string_view(text) == "* * * * *";
      if (is_dense && std::string_view(change.zone) != "Europe/Zurich") continue;
      const auto cron = parse_cron(text);
      const std::set<Time> expected = runs_by_minute(*cron, period);
      std::set<Time> found;
      Time last = from;
      for (auto next = next_run(*cron, *zone, from); next && *next <= until;
           next = next_run(*cron, *zone, *next)) {
        ASSERT_GT(*next, last);
        if (!is_dense) {
          EXPECT_EQ(last_run(*cron, *zone, last, *next), *next);
          EXPECT_EQ(last_run(*cron, *zone, last, *next - minutes(1)), std::nullopt);
        }
        last = *next;
        found.insert(last);
      }
      EXPECT_EQ(found, expected);
      if (!expected.empty()) {
        EXPECT_EQ(last_run(*cron, *zone, from, until), *expected.rbegin());
      }
    }
  }
}

}  // namespace
}  // namespace muster::cron
