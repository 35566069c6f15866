// For tests: an event loop that runs while a test waits for something to have happened on it.
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
  /// Long enough for a loaded machine; only a test that fails waits so long.
  static constexpr std::chrono::seconds kPatience{60};

  /// Runs the loop until `is_done`; false: it never was.
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

  /// To be called on the loop where something has happened.
  void look() {
    if (awaited_ != nullptr && (*awaited_)()) loop_.stop();
  }

  /// A callback that puts what it is told, once, into `answer`.
  template <class Value>
  std::function<void(Result<Value>)> into(std::optional<Result<Value>>& answer) {
    return [&](Result<Value> value) {
      EXPECT_FALSE(answer) << "it has answered twice";
      answer.emplace(std::move(value));
      look();
    };
  }

  /// What `call` answers by the callback that it is given.
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
