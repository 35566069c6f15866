#include "server/event_horizon.h"

#include <algorithm>

namespace muster::server {

namespace {

constexpr size_t kHorizonChangesAtOnce = 256;

base::Time last_event(const job::Job& job) {
  return job.events.empty() ? base::Time() : job.events.back().time;
}

}  // namespace

EventHorizon::EventHorizon(control::Controller& controller)
    : controller_(controller), feed_watch_(controller.feed().watch([this] {
        if (known_) look_at_changes();
      })) {}

base::Time EventHorizon::time() {
  if (!known_) look_at_all();
  return time_;
}

void EventHorizon::look_at_all() {
  known_ = true;
  at_ = controller_.feed().now();
  controller_.jobs().each_job(false, std::nullopt, [this](const job::Job& job) {
    time_ = std::max(time_, last_event(job));
    return true;
  });
}

void EventHorizon::look_at_changes() {
  while (true) {
    const auto changes = controller_.feed().after(at_, kHorizonChangesAtOnce);
    if (!changes) return look_at_all();
    for (const auto& change : *changes) {
      at_.number = change.number;
      const job::Job* const job = controller_.jobs().with_id(change.job);
      if (job != nullptr) time_ = std::max(time_, last_event(*job));
    }
    if (changes->size() < kHorizonChangesAtOnce) return;
  }
}

}  // namespace muster::server
