// A world for some of the ranks of another one, without the others.
//
// The first rank of the list opens a rendezvous and tells the members, over the monitors of the
// world that they have in common, where it is; then they join as at any rendezvous. Its key is
// derived from that world's, from the list, and from how often the list was joined before, so that
// it need not be sent, and no two groups can be mixed up.
#pragma once

#include <memory>
#include <span>

#include "muster/collective/result.h"
#include "world/share.h"
#include "world/world.h"

namespace muster::collective {

/// Joins the ranks of `ranks`, which become 0, 1, ... in this order: called by each of them with
/// the same list. Members may join several groups in any order, also at the same time on several
/// threads, as long as they join the groups of one list in the same order.
///
/// Errors: kBadArgument where the list names a rank twice, one outside of the world, or not this
/// one; the failure of `parent`, as soon as it fails; those of join(), with the ranks of the group.
Result<std::unique_ptr<World>> join_group(World& parent, std::span<const int> ranks,
                                          const MemoryBytes& memory_bytes);

}  // namespace muster::collective
