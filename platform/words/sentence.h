// A fact as a sentence: the one place where that is done. What the reader may not see was removed
// from the fact before (words/sight.h); here it is "another project", "a job of another project".
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "job/fact.h"
#include "job/forecast.h"

namespace muster::words {

std::string sentence(const job::Fact& fact);
/// "was preempted by 'b' of the same project, ..."
std::string sentence(const job::Eviction& why);
std::string sentence(const job::SlurmEnded& end);
/// "worker-1 was killed by signal 9 (SIGKILL)"
std::string sentence(const job::FailureCause& cause);
/// Whether that sentence names the task at fault, or says all there is to say without it.
bool names_its_task(const job::FailureCause& cause);
/// "retry 1 of 3"
std::string sentence(const job::Retry& retry);
std::string sentence(const job::Reason& reason);
std::string sentence(const job::Detail& detail);
/// ": " and the sentence; empty where there is no reason.
std::string after_colon(const job::Reason& reason);

/// Sentences behind a reason: what follows from it, then its details.
std::vector<std::string> details(const job::Reason& reason);

/// kRefused: "job 'a' can never start here: ...". It keeps `refused` as its detail.
base::Error refusal(job::NeverStarts refused);

/// "'a' would be evicted for ..."; all that are hidden are one sentence.
std::vector<std::string> evictions(const job::Forecast& forecast);

}  // namespace muster::words
