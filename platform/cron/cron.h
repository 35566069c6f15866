// When a schedule runs: cron expressions, and the instants that they mean in a time zone.
//
// A cron expression has five fields: minute, hour, day of the month, month, day of the week. A field
// is '*', a number, a range, a list, with steps: "*/15", "9-17", "mon-fri", "1,15". @hourly, @daily,
// @weekly, @monthly and @yearly are short forms. As in POSIX cron, a day must match the day of the
// month and the day of the week, but if both are restricted, either is enough.
//
// A change of clocks skips some local times and repeats others:
//   - A schedule that runs every hour (hour is '*') follows elapsed time: it runs in both passes of
//     a repeated hour, and does not make up for skipped times.
//   - For any other schedule, the skipped times of a gap together mean one run, at the first instant
//     after the gap; a repeated time means its first pass.
// The cron of Debian does the same.
//
// Thread-safe. Pure, but for load_zone(), which reads the time zone database of the system.
#pragma once

#include <bitset>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace muster::cron {

struct Cron {
  std::bitset<60> minutes;
  std::bitset<24> hours;
  std::bitset<32> days;     ///< of the month; from 1
  std::bitset<13> months;   ///< from 1
  std::bitset<7> weekdays;  ///< from 0, Sunday
  bool either_day = false;  ///< the day of the month or of the week is enough

  bool runs_every_hour() const { return hours.all(); }
  bool operator==(const Cron&) const = default;
};

/// Errors: kInvalid with a fault for each field that is wrong. An expression that never matches, such
/// as 30 February, is an error, too.
base::Result<Cron> parse_cron(std::string_view text);

/// A time by the clock of a zone.
struct LocalTime {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int weekday = 0;              ///< from 0, Sunday
  bool is_second_pass = false;  ///< the same local time was an earlier instant already
  std::string offset;           ///< "+01:00"

  bool operator==(const LocalTime&) const = default;
};

/// A time zone of the IANA database. A cheap handle.
class Zone {
 public:
  struct Data;
  explicit Zone(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  const Data& data() const { return *data_; }
  const std::string& name() const;
  LocalTime local(base::Time time) const;

 private:
  std::shared_ptr<const Data> data_;
};

/// "Europe/Zurich"; "UTC" needs no database.
///
/// Errors: kInvalid: there is no such zone on this machine.
base::Result<Zone> load_zone(const std::string& name);

/// The first run after `time`. Nothing: no run in the next 40 years.
std::optional<base::Time> next_run(const Cron& cron, const Zone& zone, base::Time time);

/// The last run after `from` and not after `until`.
std::optional<base::Time> last_run(const Cron& cron, const Zone& zone, base::Time from,
                                   base::Time until);

}  // namespace muster::cron
