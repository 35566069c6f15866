// A fixture for tests that hold for every session, whichever channel its ranks use.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string_view>
#include <vector>

#include "session/session_world.h"

namespace muster::collective::session {

class SessionTest : public ::testing::TestWithParam<Over> {
 protected:
  void run(int size, const std::function<void(Session&)>& body,
           const SessionOptions& options = {}) const {
    with_sessions(size, GetParam(), body, options);
  }
};
#define INSTANTIATE_SESSION_TEST(name)                                                            \
  INSTANTIATE_TEST_SUITE_P(                                                                       \
      Over, name, ::testing::Values(Over::kSharedMemory, Over::kMessages), [](const auto& over) { \
        return over.param == Over::kSharedMemory ? "SharedMemory" : "Messages";                   \
      })

/// A function, so that a reference to a part of a temporary stays valid until the check ends.
inline void expect_ok(const Status& status) {
  EXPECT_TRUE(status) << status.error().to_string();
}
#define EXPECT_OK(status)  \
  do {                     \
    SCOPED_TRACE(#status); \
    expect_ok(status);     \
  } while (false)

inline Ticket ticket_of(const Result<Ticket>& result) {
  EXPECT_TRUE(result) << result.error().to_string();
  return result ? *result : Ticket{};
}

inline Status sum(Session& session, std::string_view name, std::vector<float>& values) {
  return session.wait(ticket_of(session.all_reduce(
      name, values.data(), values.data(), values.size(), DataType::kFloat32, ReduceOp::kSum)));
}

inline float sum_of_ranks(int size) {
  const int total = size * (size - 1) / 2;
  return static_cast<float>(total);
}

}  // namespace muster::collective::session
