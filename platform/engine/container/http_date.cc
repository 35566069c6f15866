#include "engine/container/http_date.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/units.h"

namespace muster::engine {

namespace {

// By hand: strptime() reads the names of months as the user's language has them.
constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::string_view kForm = "Sun, 06 Nov 1994 08:49:37 GMT";

}  // namespace

std::optional<int64_t> parse_http_date(std::string_view text) {
  if (text.size() != kForm.size() || !text.ends_with(" GMT")) return std::nullopt;
  const auto number = [&](size_t at, size_t width) {
    return base::number_of<unsigned>(text.substr(at, width));
  };
  const auto month = std::find(kMonths.begin(), kMonths.end(), text.substr(8, 3));
  const auto day = number(5, 2);
  const auto year = number(12, 4);
  const auto hours = number(17, 2);
  const auto minutes = number(20, 2);
  const auto seconds = number(23, 2);
  if (month == kMonths.end() || !day || !year || !hours || !minutes || !seconds) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date(
      std::chrono::year(static_cast<int>(*year)),
      std::chrono::month(static_cast<unsigned>(month - kMonths.begin()) + 1),
      std::chrono::day(*day));
  if (!date.ok() || *hours > 23 || *minutes > 59 || *seconds > 60) return std::nullopt;
  const std::chrono::seconds since = std::chrono::sys_days(date).time_since_epoch();
  return since.count() + int64_t{*hours} * 3600 + int64_t{*minutes} * 60 + *seconds;
}

}  // namespace muster::engine
