// For tests: calls of a DockerClient one after the other, on a loop that runs while one waits.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/container/docker_client.h"

namespace muster::engine {

/// Long enough for a loaded machine; only a test that fails waits so long.
inline constexpr std::chrono::seconds kTestPatience{60};

class LoopOfTest {
 public:
  /// Runs the loop until `is_done`; false: it never was.
  bool run_until(const std::function<bool()>& is_done) {
    if (is_done()) return true;
    bool late = false;
    const auto alarm = loop_.after(kTestPatience, [&] {
      late = true;
      loop_.stop();
    });
    awaited_ = &is_done;
    while (!is_done() && !late) loop_.run();
    awaited_ = nullptr;
    return is_done();
  }

  /// To be called where something has happened.
  void look() {
    if (awaited_ != nullptr && (*awaited_)()) loop_.stop();
  }

  /// What `call` answers by the callback that it is given.
  template <class Value>
  base::Result<Value> answer(
      const std::function<void(std::function<void(base::Result<Value>)>)>& call) {
    std::optional<base::Result<Value>> answer;
    call([&](base::Result<Value> value) {
      EXPECT_FALSE(answer) << "it has answered twice";
      answer.emplace(std::move(value));
      look();
    });
    if (run_until([&] { return answer.has_value(); })) return *std::move(answer);
    return base::Error{.code = base::ErrorCode::kTimeout, .what = "no answer came"};
  }

  base::EventLoop& loop() { return loop_; }

 private:
  base::EventLoop loop_;
  const std::function<bool()>* awaited_ = nullptr;
};

/// What comes out of a stream. The stream is dropped with it.
struct Heard {
  std::string output;
  std::string error;
  bool ended = false;
  std::unique_ptr<DockerStream> stream;
};

inline DockerStream::Handlers listen_by(LoopOfTest& loop, Heard& heard) {
  return {.on_output =
              [&](std::string_view bytes, bool is_error) {
                (is_error ? heard.error : heard.output) += bytes;
                loop.look();
              },
          .on_end =
              [&] {
                EXPECT_FALSE(heard.ended) << "it has ended twice";
                heard.ended = true;
                loop.look();
              },
          .on_drain = [&] { loop.look(); }};
}

}  // namespace muster::engine
