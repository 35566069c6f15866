#include "engine/container/turns.h"

#include <utility>

namespace muster::engine {

Turns::Turns(base::EventLoop& loop, size_t most) : state_(std::make_shared<State>(loop)) {
  state_->free = most;
}

void Turns::wait(std::function<void(Turn)> go) {
  state_->waiting.push_back(std::move(go));
  next(state_);
}

void Turns::next(const std::shared_ptr<State>& state) {
  if (state->free == 0 || state->waiting.empty()) return;
  --state->free;
  const auto go = std::move(state->waiting.front());
  state->waiting.pop_front();
  // A turn may end in the midst of anything: the next begins when that is over.
  const Turn turn(nullptr, [weak = std::weak_ptr(state)](void*) {
    const auto still = weak.lock();
    if (still == nullptr) return;
    ++still->free;
    still->loop.post([weak] {
      if (const auto later = weak.lock()) next(later);
    });
  });
  go(turn);
}

}  // namespace muster::engine
