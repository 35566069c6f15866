// A plug-in for tests: ranks are threads, and what one sends lies in a box until another takes it.
#pragma once

#include "plugins/plugin.h"

namespace muster::collective::testing {

/// What a fake plug-in is like.
struct FakeTraits {
  bool sums_floats = false;  // knows the plain sum of float32 itself
  int unprepared_calls = 0;  // so many calls of prepare() fail
  int breaks_on_rank = -1;   // this rank's next call fails
};

/// Empties the boxes and sets how the plug-in is. No state may be open.
void reset_fake(const FakeTraits& traits);

/// The most bytes that any one message had since reset_fake().
std::uint64_t largest_message();

const MusterPlugin& fake_plugin();

}  // namespace muster::collective::testing
