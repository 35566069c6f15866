// Ages as Run:AI shows them: one number and its largest unit, what is left cut off.
//
// Pure.
#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"
#include "job/job.h"

namespace muster::dialects::runai {

/// "59s", "59m", "23h", "364d", "2y". A clock that is up to a second behind gives "0s"; more of it,
/// "<invalid>".
std::string age_words(std::chrono::nanoseconds age);

/// Since it was submitted.
std::string age_of(const job::Job& job, base::Time now);
/// Since it was started, or else its job submitted.
std::string age_of(const job::Job& job, const job::Task& task, base::Time now);

/// How long it has run, or ran; "0s" where it never did.
std::string duration_of(const job::Job& job, base::Time now);

}  // namespace muster::dialects::runai
