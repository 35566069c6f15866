// Charts as an SVG file of its own: no script, no font, nothing from elsewhere; readable on light
// and on dark ground, and each series with a colour and a pattern of dashes.
//
// Pure: values in, text out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/chart.h"

namespace muster::cli {

/// The charts one below the other on one axis of time, from `begin` on. `title` is plain text.
std::string chart_svg(const std::vector<Chart>& charts, std::optional<base::Time> begin,
                      std::string_view title);

}  // namespace muster::cli
