// For tests: frames of logs, given by their text and time.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "base/clock.h"
#include "engine/log_frame.h"
#include "job/log_record.h"

namespace muster::logs {

inline constexpr base::Time kFirstFrame{std::chrono::seconds(1'700'000'000)};

inline engine::LogFrame frame_of(std::string bytes, job::LogStream stream = job::LogStream::kOutput,
                                 int second = 0) {
  return {.time = kFirstFrame + std::chrono::seconds(second),
          .stream = stream,
          .bytes = std::move(bytes)};
}

}  // namespace muster::logs
