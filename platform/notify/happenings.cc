#include "notify/happenings.h"

namespace muster::notify {

using job::Happening;
using job::Phase;

Standing standing_of(const job::Job& job) {
  return {.phase = job.phase, .started = job.started};
}

std::vector<Happening> happenings_between(const Standing& before, const job::Job& now) {
  std::vector<Happening> happenings;
  const bool ran = before.phase == Phase::kRunning;
  const bool runs_anew = now.started && now.started != before.started;
  const bool waits = now.phase == Phase::kQueued || now.phase == Phase::kStarting;
  if (ran && (waits || runs_anew)) happenings.push_back(Happening::kRequeued);
  if (runs_anew) happenings.push_back(Happening::kStarted);
  if (now.phase == before.phase) return happenings;
  if (now.phase == Phase::kSucceeded) happenings.push_back(Happening::kSucceeded);
  if (now.phase == Phase::kFailed) happenings.push_back(Happening::kFailed);
  if (now.phase == Phase::kStopped) happenings.push_back(Happening::kStopped);
  return happenings;
}

}  // namespace muster::notify
