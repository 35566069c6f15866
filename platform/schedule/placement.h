// Finding room for all tasks of a gang together.
#pragma once

#include <vector>

#include "schedule/node_books.h"

namespace muster::schedule {

/// Nodes::place(), on the books.
base::Result<std::vector<Booking>, Shortage> place_gang(NodeBooks& books, const Gang& gang,
                                                        const std::vector<int>& counts,
                                                        const PlaceOptions& options,
                                                        const std::vector<Booking>& beside);

}  // namespace muster::schedule
