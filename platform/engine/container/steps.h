// Things that are done one after the other, each later: calls to a host, mostly.
//
// Not thread-safe.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"

namespace muster::engine {

using Then = std::function<void(base::Result<void>)>;
/// Does something, and calls `then` once, at once or later.
using Step = std::function<void(Then then)>;

/// Calls each when the one before it is done, and `done` after the last, or with the error of the
/// first that fails; the others are not called then.
void one_by_one(std::vector<Step> steps, Then done);

/// All at once; `done` when all are, with the error of the first that failed.
void all_at_once(const std::vector<Step>& steps, Then done);

}  // namespace muster::engine
