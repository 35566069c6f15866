// Facts as sentences. words/sight.h has already removed what the reader may not see; a hidden name
// becomes "another project" or "a job of another project". tests/data/messages.txt lists all
// sentences.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "job/fact.h"
#include "job/forecast.h"

namespace muster::words {

/// The commands that sentences name. A program with commands of its own sets them.
struct Commands {
  std::string_view resume = "muster resume ";  ///< followed by the name of the job
};

std::string sentence(const job::Fact& fact, const Commands& commands = {});
/// "was preempted by 'b' of the same project, ..."
std::string sentence(const job::Eviction& why);
std::string sentence(const job::AllocationEnd& end);
/// "worker-1 was killed by signal 9 (SIGKILL)"
std::string sentence(const job::FailureCause& cause);
/// Whether that sentence names the task at fault, or needs no task.
bool names_its_task(const job::FailureCause& cause);
/// "retry 1 of 3"
std::string sentence(const job::Retry& retry);
std::string sentence(const job::Reason& reason, const Commands& commands = {});
std::string sentence(const job::Detail& detail);
/// ": " and the sentence; empty if there is no reason.
std::string after_colon(const job::Reason& reason, const Commands& commands = {});

/// Sentences that follow a reason: remedies, then its details.
std::vector<std::string> details(const job::Reason& reason);

/// kRefused: "job 'a' can never start here: ...". It keeps `refused` as its detail.
base::Error refusal(job::NeverStarts refused);

/// "'a' would be evicted for ..."; one sentence for all hidden jobs.
std::vector<std::string> evictions(const job::Forecast& forecast);

}  // namespace muster::words
