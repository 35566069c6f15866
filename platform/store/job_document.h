// A job as the document (CBOR) that the store keeps.
//
// Pure. Its own format, apart from the API's, so that the one may change without the other. Reads
// what every earlier Muster wrote: a field that is not there has its default.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "job/job.h"

namespace muster::store {

std::string to_document(const job::Job& job);
base::Result<job::Job> from_document(std::string_view document);

}  // namespace muster::store
