// Values for tests in which no field has its default, so that a field that is forgotten shows.
#pragma once

#include "job/log_record.h"
#include "job/test_values.h"

namespace muster::api {

using job::full_job;
using job::full_spec;
using job::kBinary;
using job::time_at;

/// Not on a whole microsecond.
inline constexpr base::Time kTime{std::chrono::nanoseconds(1'700'000'000'123'456'789)};

inline job::LogRecord full_record() {
  return {.time = time_at(1'767'225'600'123'456'789),
          .task = "worker-0",
          .attempt = 2,
          .host = "dist-worker-0",
          .rank = 3,
          .stream = job::LogStream::kError,
          .text = "loss \"0.5\"\t\x1B[31mréd\\",
          .continues = true};
}

}  // namespace muster::api
