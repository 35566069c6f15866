// Durations and sizes as people write them, by their short names.
#pragma once

#include "base/units.h"

namespace muster::job {

using base::format_bytes;
using base::format_duration;
using base::format_milli;
using base::parse_bytes;
using base::parse_cpus;
using base::parse_duration;
using base::parse_milli;

}  // namespace muster::job
