// The time of --begin: a time with its offset, or a time of the shell's time zone.
//
//   2026-11-29T03:00:00+01:00    RFC 3339
//   2026-11-29 03:00             local time
//   03:00, tomorrow 03:00        the next 03:00; 03:00 of the next day
//   +2h                          from now
//
// The C library reads the zone from TZ or /etc/localtime, so this is not thread-safe where another
// thread changes TZ.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace muster::cli::spec {

/// A local time that a change of clocks skips is the time as long after midnight by the clock before
/// the change; of a repeated time it is the first.
///
/// Errors: kInvalid: another form, an impossible date, or a time more than 10 years from `now`.
base::Result<base::Time> parse_begin(std::string_view text, base::Time now);

}  // namespace muster::cli::spec
