// For tests: an event loop that runs until a condition is met.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "base/event_loop.h"
#include "base/result.h"

namespace muster::base {

class TestLoop {
 public:
  /// Long enough for a loaded machine; only a failing test waits this long.
  static constexpr std::chrono::seconds kPatience{60};

  /// Runs the loop until `is_done` returns true; false: it did not within kPatience.
  bool run_until(const std::function<bool()>& is_done) {
    if (is_done()) return true;
    bool late = false;
    const auto alarm = loop_.after(kPatience, [&] {
      late = true;
      loop_.stop();
    });
    awaited_ = &is_done;
    while (!is_done() && !late) loop_.run();
    awaited_ = nullptr;
    return is_done();
  }

  /// Call on the loop after each event.
  void look() {
    if (awaited_ != nullptr && (*awaited_)()) loop_.stop();
  }

  /// A callback that stores its argument in `answer`. It may be called once.
  template <class Value>
  std::function<void(Result<Value>)> into(std::optional<Result<Value>>& answer) {
    return [&](Result<Value> value) {
      EXPECT_FALSE(answer) << "it has answered twice";
      answer.emplace(std::move(value));
      look();
    };
  }

  /// The value that `call` passes to its callback.
  template <class Value>
  Result<Value> answer(const std::function<void(std::function<void(Result<Value>)>)>& call) {
    std::optional<Result<Value>> answer;
    call(into(answer));
    if (run_until([&] { return answer.has_value(); })) return *std::move(answer);
    return Error{.code = ErrorCode::kTimeout, .what = "no answer came"};
  }

  EventLoop& loop() { return loop_; }

 private:
  EventLoop loop_;
  const std::function<bool()>* awaited_ = nullptr;
};

}  // namespace muster::base
