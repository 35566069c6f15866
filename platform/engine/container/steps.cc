#include "engine/container/steps.h"

#include <memory>
#include <utility>

namespace muster::engine {

using base::Result;

namespace {

using Steps = std::shared_ptr<const std::vector<Step>>;

void go_on(const Steps& steps, size_t next, const Then& done) {
  if (next == steps->size()) return done({});
  (*steps)[next]([steps, next, done](Result<void> result) {
    if (!result) return done(std::move(result));
    go_on(steps, next + 1, done);
  });
}

}  // namespace

void one_by_one(std::vector<Step> steps, Then done) {
  go_on(std::make_shared<const std::vector<Step>>(std::move(steps)), 0, done);
}

void all_at_once(const std::vector<Step>& steps, Then done) {
  struct Together {
    size_t left;
    Result<void> result;
    Then done;
  };
  // One more, so that steps that finish at once do not end it before all have started.
  const auto together = std::make_shared<Together>(Together{steps.size() + 1, {}, std::move(done)});
  const auto ended = [together](Result<void> result) {
    if (!result && together->result) together->result = std::move(result);
    if (--together->left == 0) together->done(together->result);
  };
  for (const Step& step : steps) step(ended);
  ended({});
}

void Later::operator()(std::function<void()> action) const {
  loop_.post([still = std::weak_ptr<bool>(alive_), action = std::move(action)] {
    if (!still.expired()) action();
  });
}

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
  // A turn may end inside any call, so the next one begins in a later turn of the loop.
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
