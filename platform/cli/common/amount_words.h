// Amounts of several resources at once, and times, as people read them.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "job/job.h"
#include "job/spec.h"

namespace muster::cli {

/// "2 GPU, 16 CPU, 64Gi". GPUs always, the others where they are said.
std::string amounts_words(std::optional<int64_t> gpu_milli, std::optional<int64_t> cpu_milli,
                          std::optional<int64_t> memory_bytes);

/// How many workers it runs with: "4", "2-4" of an elastic one.
std::string worker_range(const job::JobSpec& spec);

/// What a job asks for: "2 x 1 GPU, 4 CPU", "2-4 x 1 GPU", "0.5 GPU", "1 x 1 GPU + 1 GPU (chief)";
/// "-" where it claims nothing.
std::string needs_words(const job::JobSpec& spec);

/// "2026-01-31T12:34:56Z".
std::string moment_words(base::Time time);

/// How long ago `then` was: "12s", "3h5m". A clock that was set back gives "0s".
std::string age(base::Time then, base::Time now);

/// How long the job has run, or ran; "-" where it never started.
std::string run_time(const job::Job& job, base::Time now);

/// "10m": so long before `now`; else RFC 3339, as in 2026-01-31T12:00:00+01:00.
base::Result<base::Time> parse_moment(std::string_view text, base::Time now);

}  // namespace muster::cli
