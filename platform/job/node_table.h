// The fields of a node and of its devices, one row each (record/table.h), as the API lists them.
#pragma once

#include "job/node.h"
#include "record/table.h"

namespace muster::job {

const record::Table& table_of(const Device*);
const record::Table& table_of(const Node*);

}  // namespace muster::job
