// Times as people write and read them.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "job/job.h"

namespace muster::cli {

/// "2026-01-31T12:34:56Z".
std::string moment_words(base::Time time);

/// How long ago `then` was: "12s", "3h5m". A clock that was set back gives "0s".
std::string age(base::Time then, base::Time now);

/// How long the job has run, or ran; "-" where it never started.
std::string run_time(const job::Job& job, base::Time now);

/// "10m": so long before `now`; else RFC 3339, as in 2026-01-31T12:00:00+01:00.
base::Result<base::Time> parse_moment(std::string_view text, base::Time now);

}  // namespace muster::cli
