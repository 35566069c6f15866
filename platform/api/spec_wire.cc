#include "api/wire.h"
#include "job/spec_table.h"

namespace muster::api {

using job::JobSpec;

std::string spec_to_json(const JobSpec& spec) {
  return record::to_json(spec);
}

Result<JobSpec> spec_from_json(std::string_view text) {
  return record::from_json<JobSpec>(text, "spec");
}

}  // namespace muster::api
