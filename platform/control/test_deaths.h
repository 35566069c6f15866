// What tests share that tell one story again and again, each time with a death of the server at
// another commit.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "control/test_parts.h"

namespace muster::control {

/// Tells the story from its beginning; whether the server died in the midst of it, at the commit
/// that the store was given. From then on nothing dies any more.
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
