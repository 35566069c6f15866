// A chart in a terminal: braille dots where letters may be more than ASCII, else one letter a
// series.
//
//   loss
//     1 ┤⠉⠒⠤⢄⣀
//       │     ⠉⠒⠢⢄⡀
//   0.5 ┤         ⠈⠉⠒⠤⣀⡀
//       │              ⠈⠑⠒⠤⢄⡀
//     0 ┤
//       └┬────────────┬───────
//        0            20s
//     main  0.2  (0.2 to 1)
//
// Where there are several series, each has a marker, which stands on its line now and then and in
// the legend; the colour says the same once more.
//
// Pure: values in, text out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/chart.h"

namespace muster::cli {

struct ChartLook {
  size_t columns = 80;
  size_t rows = 12;  ///< of the plot, without title, axis and legend
  bool unicode = true;
  bool colour = false;
};

/// The charts one below the other on one axis of time, from `begin` on. Every line ends with a
/// newline, and none is wider than `look.columns`, but for a terminal that is hardly there.
/// Labels come as they are: whoever shows them on a terminal makes them harmless before.
std::string chart_text(const std::vector<Chart>& charts, std::optional<base::Time> begin,
                       const ChartLook& look);

}  // namespace muster::cli
