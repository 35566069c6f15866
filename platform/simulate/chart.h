// A picture of a replay: how many jobs wait and how much of the cluster is used, over time. An SVG
// file of its own, readable on light and on dark ground.
//
// Pure: values in, text out.
#pragma once

#include <string>
#include <string_view>

#include "simulate/trace_replay.h"

namespace muster::simulate {

/// `title` is plain text.
std::string chart_of(const TraceReport& report, std::string_view title);

}  // namespace muster::simulate
