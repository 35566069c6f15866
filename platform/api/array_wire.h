// Arrays of jobs on the wire, in both directions.
//
// Pure; thread-safe. Reading as in wire.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/array.h"
#include "record/table.h"

namespace muster::api {

std::string array_to_json(const job::Array& array);
base::Result<job::Array> array_from_json(std::string_view text);

/// {"arrays": [...]}
std::string arrays_to_json(const std::vector<job::Array>& arrays);
base::Result<std::vector<job::Array>> arrays_from_json(std::string_view text);

/// What changes when failed members run again.
struct RerunRequest {
  std::optional<int> max_running;  ///< 0: no limit
  std::optional<int> max_failures;

  bool operator==(const RerunRequest&) const = default;
};
const record::Table& table_of(const RerunRequest*);
std::string rerun_request_to_json(const RerunRequest& request);
base::Result<RerunRequest> rerun_request_from_json(std::string_view text);

}  // namespace muster::api
