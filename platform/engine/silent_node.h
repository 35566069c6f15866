// A node whose machine does not answer for the moment, though nothing there is given up yet, or
// that answers and takes nothing new: each is told by a label of the node, which says since when,
// or who closed it.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/text.h"
#include "engine/engine.h"

namespace muster::engine {

inline constexpr const char* kSilentSince = "silent-since";
inline constexpr const char* kClosedBy = "closed-by";

inline bool is_silent(const Node& node) {
  return node.labels.count(kSilentSince) > 0;
}

inline bool is_closed(const Node& node) {
  return node.labels.count(kClosedBy) > 0;
}

/// Once it is, later calls leave since when it is.
inline void call_silent(Node& node, base::Time since) {
  node.labels.emplace(kSilentSince, base::to_rfc3339(since, 0));
}

}  // namespace muster::engine
