#include "cli/spec/begin_time.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "record/rfc3339.h"

namespace muster::cli::spec {
namespace {

/// The zone of this process during a test.
class LocalZone {
 public:
  explicit LocalZone(const char* name) {
    if (const char* const before = std::getenv("TZ")) before_ = before;
    setenv("TZ", name, 1);
    tzset();
  }
  ~LocalZone() {
    if (before_.empty()) {
      unsetenv("TZ");
    } else {
      setenv("TZ", before_.c_str(), 1);
    }
    tzset();
  }
  LocalZone(const LocalZone&) = delete;
  LocalZone& operator=(const LocalZone&) = delete;

 private:
  std::string before_;
};

TEST(ParseBegin, ReadsTimesOfTheShellsZone) {
  // The POSIX form needs no time zone database. The clocks change on 29 March and 25 October 2026.
  const LocalZone zurich("CET-1CEST,M3.5.0,M10.5.0/3");
  const struct {
    const char* text;
    const char* now;
    const char* begin;
  } table[] = {
      {"2026-11-29T03:00:00+01:00", "2026-11-28T12:00:00Z", "2026-11-29T02:00:00Z"},
      {"2026-11-29T03:00:00Z", "2026-11-28T12:00:00Z", "2026-11-29T03:00:00Z"},
      {"+2h", "2026-11-28T12:00:00Z", "2026-11-28T14:00:00Z"},
      {"+30m", "2026-11-28T12:00:00Z", "2026-11-28T12:30:00Z"},
      {"14:00", "2026-11-28T12:00:00Z", "2026-11-28T13:00:00Z"},
      {"13:00", "2026-11-28T12:00:00Z", "2026-11-29T12:00:00Z"},  // it is 13:00: the next one
      {"3:05", "2026-11-28T12:00:00Z", "2026-11-29T02:05:00Z"},
      {"tomorrow 14:00", "2026-11-28T12:00:00Z", "2026-11-29T13:00:00Z"},
      {"tomorrow 03:00", "2026-12-31T22:59:00Z", "2027-01-01T02:00:00Z"},
      {"2026-07-01 03:00", "2026-06-28T12:00:00Z", "2026-07-01T01:00:00Z"},
      {"2026-07-01T03:00:30", "2026-06-28T12:00:00Z", "2026-07-01T01:00:30Z"},
      {"03:30", "2026-03-28T22:00:00Z", "2026-03-29T01:30:00Z"},
      {"2026-10-25 02:30", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},  // repeated: the first
  };
  for (const auto& row : table) {
    const auto begin = parse_begin(row.text, *record::parse_rfc3339(row.now));
    ASSERT_TRUE(begin) << row.text;
    EXPECT_EQ(*begin, *record::parse_rfc3339(row.begin)) << row.text << " at " << row.now;
  }
}

TEST(ParseBegin, RefusesOtherTexts) {
  const base::Time now = *record::parse_rfc3339("2026-11-28T12:00:00Z");
  for (const char* text : {"", "soon", "25:00", "3", "12:60", "tomorrow", "tomorrow 24:00", "+",
                           "+-2h", "2026-04-31 03:00", "2026-13-01 03:00", "2026-11-29",
                           "+99999999h", "2099-01-01T00:00:00Z"}) {
    EXPECT_FALSE(parse_begin(text, now)) << text;
  }
}

}  // namespace
}  // namespace muster::cli::spec
