// Counts what is missing, for the sentence that tells a user why a gang waits.
#pragma once

#include "schedule/choose_node.h"
#include "schedule/node_books.h"

namespace muster::schedule {

/// How many eligible nodes there are, and how much is free on them.
void count_free(const NodeBooks& books, const RoomIndex& index, const Eligible& eligible,
                Shortage& shortage);
/// How many of them lack what for one more task.
void count_lacks(const RoomIndex& index, const Eligible& eligible, const TaskNeeds& needs,
                 Shortage& shortage);

}  // namespace muster::schedule
