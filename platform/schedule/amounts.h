// The words of job/amounts.h as the scheduler's own: its books hold nothing else.
#pragma once

#include "job/amounts.h"

namespace muster::schedule {

using job::Amounts;
using job::Claim;
using job::kBoundless;
using job::kNothing;
using job::kResources;
using job::kUnlimited;
using job::kWholeGpu;
using job::Resource;

}  // namespace muster::schedule
