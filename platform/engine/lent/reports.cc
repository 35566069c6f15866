#include "engine/lent/reports.h"

#include <utility>

namespace muster::engine::lent {

bool Reports::listen(Engine::Listener listener) {
  const bool is_first = listener_ == nullptr && listener != nullptr;
  listener_ = std::move(listener);
  return is_first;
}

void Reports::post(std::function<void()> action) const {
  loop_.post([weak = std::weak_ptr(alive_), action = std::move(action)] {
    if (weak.lock()) action();
  });
}

void Reports::announce(const GangId& gang, AllocationNews news) {
  post([this, gang, news = std::move(news)] {
    if (allocation_listener_) allocation_listener_(gang, news);
  });
}

void Reports::waits(const GangPointer& gang, AllocationPending waits) {
  if (gang->record.given_back && !gang->next_request) return;
  if (gang->reported_waits == waits) return;
  gang->reported_waits = waits;
  announce(gang->gang, std::move(waits));
}

void Reports::task(const GangId& gang, const std::string& task, TaskNews news) {
  post([this, gang, task, news = std::move(news)] {
    if (listener_) listener_({.gang = gang, .task = task, .what = news});
  });
}

}  // namespace muster::engine::lent
