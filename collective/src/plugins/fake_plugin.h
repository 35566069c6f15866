// A plug-in for tests: ranks are threads, and a message stays in a box until its receiver takes it.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/plugin.h"

namespace muster::collective::testing {

/// The behaviour of a fake plug-in.
struct FakeTraits {
  bool sums_floats = false;  // supports the plain sum of float32
  bool takes_lists = false;
  int device_rank = -1;      // the rank whose memory counts as that of a device
  int unprepared_calls = 0;  // the number of calls of prepare() that fail
  int breaks_on_rank = -1;   // the rank whose next call fails
};

/// Empties the boxes and sets the behaviour. No state may be open.
void reset_fake(const FakeTraits& traits);

/// The length of the longest message since reset_fake().
std::uint64_t largest_message();

/// The lengths of all pieces that a rank has reduced since reset_fake(), in elements.
std::vector<std::uint64_t> reduced_pieces(int rank);

const MusterPlugin& fake_plugin();

}  // namespace muster::collective::testing
