// A spec within the document of its job.
//
// Pure. Reading throws, see document.h.
#pragma once

#include "job/spec.h"
#include "store/document.h"

namespace muster::store {

void write_spec(CborWriter& out, const job::JobSpec& spec);
job::JobSpec read_spec(const CborValue& value);

}  // namespace muster::store
