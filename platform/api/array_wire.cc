#include "api/array_wire.h"

#include "api/schemas.h"
#include "record/field.h"

namespace muster::api {

using base::Result;

void add_array_schemas(record::Schemas& schemas) {
  schemas.add(record::table_for<job::Array>());
  schemas.add_list("Arrays", "arrays", record::table_for<job::Array>());
  schemas.add(record::table_for<RerunRequest>());
}

std::string array_to_json(const job::Array& array) {
  return record::to_json(array);
}
Result<job::Array> array_from_json(std::string_view text) {
  return record::from_json<job::Array>(text, "array");
}

std::string arrays_to_json(const std::vector<job::Array>& arrays) {
  return record::list_to_json("arrays", arrays);
}
Result<std::vector<job::Array>> arrays_from_json(std::string_view text) {
  return record::list_from_json<job::Array>(text, "arrays");
}

const record::Table& table_of(const RerunRequest*) {
  static const record::Table table = record::table<RerunRequest>(
      "RerunRequest",
      {record::field<&RerunRequest::max_running>(
           "max_running",
           {.help = "From now on, the most members that run at the same time; 0: no limit.",
            .least = 0}),
       record::field<&RerunRequest::max_failures>(
           "max_failures",
           {.help = "From now on, the number of failed members that stops the array when it is "
                    "exceeded.",
            .least = 0})},
      "What changes when failed members of an array run again. Everything else of a member's spec "
      "stays.");
  return table;
}

std::string rerun_request_to_json(const RerunRequest& request) {
  return record::to_json(request);
}
Result<RerunRequest> rerun_request_from_json(std::string_view text) {
  return record::from_json<RerunRequest>(text, "request");
}

}  // namespace muster::api
