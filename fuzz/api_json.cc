// The JSON of the API, in both directions: the worst result is an error, and encoding and decoding
// a decoded value gives the same value.
#include <cstdlib>
#include <string_view>

#include "api/cluster_wire.h"
#include "api/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto spec = spec_from_json(text)) {
    const auto again = spec_from_json(spec_to_json(*spec));
    if (!again || *again != *spec) std::abort();
  }
  if (const auto record = log_record_from_json(text)) {
    const auto again = log_record_from_json(log_record_to_json(*record));
    if (!again || *again != *record) std::abort();
  }
  if (const auto project = project_from_json(text)) {
    const auto again = project_from_json(project_to_json(*project));
    if (!again || *again != *project) std::abort();
  }
  if (const auto node = node_from_json(text)) {
    const auto again = node_from_json(node_to_json(*node));
    if (!again || *again != *node) std::abort();
  }
  if (const auto types = machine_types_from_json(text)) {
    const auto again = machine_types_from_json(machine_types_to_json(*types));
    if (!again || *again != *types) std::abort();
  }
  if (const auto labels = label_changes_from_json(text)) {
    const auto again = label_changes_from_json(label_changes_to_json(*labels));
    if (!again || *again != *labels) std::abort();
  }
  [[maybe_unused]] const auto change = read_project(text, {.name = "default"});
  [[maybe_unused]] const auto forecast = forecast_from_json(text);
  [[maybe_unused]] const auto explanation = explanation_from_json(text);
  [[maybe_unused]] const auto job = job_from_json(text);
  [[maybe_unused]] const auto jobs = jobs_from_json(text);
  [[maybe_unused]] const auto problem = problem_from_json(400, text);
  return 0;
}
