// For tests that repeat one scenario, each time with a crash of the server at another commit.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "control/test_parts.h"

namespace muster::control {

/// Runs the scenario from its beginning. Returns whether the server crashed at the commit that the
/// store was given; there is no second crash.
template <class Story>
bool dies_in(MortalStore& store, const Story& story) {
  try {
    story();
    return false;
  } catch (const Crash&) {
    store.dies_before = store.dies_after = 0;
    return true;
  }
}

inline void expect_no_task_was_started_twice(const engine::FakeEngine& engine) {
  std::set<std::string> starts;
  for (const std::string& call : engine.calls) {
    if (!call.starts_with("start ")) continue;
    EXPECT_TRUE(starts.insert(call).second) << call << " twice";
  }
}

}  // namespace muster::control
