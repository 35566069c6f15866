// A project as the document (CBOR) that the store keeps.
//
// Pure. A field that is not there, because an earlier Muster wrote it, has its default.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "job/project.h"

namespace muster::store {

std::string to_project_document(const job::Project& project);
base::Result<job::Project> from_project_document(std::string_view document);

}  // namespace muster::store
