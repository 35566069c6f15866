// Nodes as people read them: the table of `node list`, the page of `node get`.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "job/node.h"

namespace muster::cli {

/// NAME STATE POOL GPUS CPUS MEMORY JOBS; amounts are "taken/all".
std::string node_table(const std::vector<job::Node>& nodes);

/// What it is and has, and who holds each of its GPUs.
std::string node_page(const job::Node& node);

/// Thousandths of GPUs of `node` that are taken.
int64_t gpus_taken_milli(const job::Node& node);

}  // namespace muster::cli
