// The body of a notification (docs/notifications.md), and the events of a job between two commits.
//
// The body contains neither the environment nor the command of a job, because its readers need not
// be members of the project. It contains lines of the log only if the subscription asks for them.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/job.h"
#include "job/notification.h"

namespace muster::notify {

enum class PayloadLines { kNone, kOfFailure };

/// JSON. `id`: of the delivery; `time`: of the event.
std::string payload_of(const job::Job& job, job::Happening happening, const std::string& id,
                       base::Time time, PayloadLines lines);
/// The same for the end of an array or a sweep.
std::string payload_of(const job::ObjectEnd& end, const std::string& id, base::Time time);
/// The body of a ping, which concerns a project and no job.
std::string ping_payload(const std::string& project, const std::string& id, base::Time time);

/// The event in the header: "job.failed", "array.failed" or "ping". `object`: "array" or "sweep";
/// empty: a job.
std::string event_name(job::Happening happening, const std::string& object = "");

job::Happening happening_of(const job::ObjectEnd& end);

/// The state of a job that events are derived from.
struct ObservedState {
  job::Phase phase = job::Phase::kQueued;
  std::optional<base::Time> started;

  bool operator==(const ObservedState&) const = default;
};
ObservedState standing_of(const job::Job& job);

/// The events between two states of a job, in order. A job may start and end between two commits.
std::vector<job::Happening> happenings_between(const ObservedState& before, const job::Job& now);

}  // namespace muster::notify
