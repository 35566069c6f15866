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
  // One more, so that steps that are done at once do not end it before all have begun.
  const auto together = std::make_shared<Together>(Together{steps.size() + 1, {}, std::move(done)});
  const auto ended = [together](Result<void> result) {
    if (!result && together->result) together->result = std::move(result);
    if (--together->left == 0) together->done(together->result);
  };
  for (const Step& step : steps) step(ended);
  ended({});
}

}  // namespace muster::engine
