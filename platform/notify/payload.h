// The body of a notification. docs/notifications.md says what is in it.
//
// Neither a job's environment nor its command: whoever reads a notification need not be a member of
// the project. Its log only where the subscription asks for it.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/job.h"
#include "job/notification.h"

namespace muster::notify {

enum class Lines { kNone, kOfFailure };

/// JSON. `id`: of the delivery; `time`: when it happened.
std::string payload_of(const job::Job& job, job::Happening happening, const std::string& id,
                       base::Time time, Lines lines);
/// Of a ping: of a project, and of no job.
std::string ping_payload(const std::string& project, const std::string& id, base::Time time);

/// "job.failed", or "ping": as the header has it.
std::string event_name(job::Happening happening);

// What has happened to a job between two commits, told from how it was and how it is.
//
// Pure; thread-safe.

/// As much of a job as has to be remembered.
struct Standing {
  job::Phase phase = job::Phase::kQueued;
  std::optional<base::Time> started;

  bool operator==(const Standing&) const = default;
};
Standing standing_of(const job::Job& job);

/// In the order in which it happened. A job may have begun and ended since, but it has no two ends.
std::vector<job::Happening> happenings_between(const Standing& before, const job::Job& now);

}  // namespace muster::notify
