// Compiled by add_field_test.py against sources in which JobSpec has an additional number, `nice`.
// Prints, as JSON, how each form of a spec represents that field.
#include <iostream>
#include <nlohmann/json.hpp>

#include "job/spec_table.h"
#include "job/validate.h"
#include "record/type.h"

namespace {

using namespace muster;
using nlohmann::json;

std::string flag_of(const std::string& path) {
  for (const record::Place& place : record::places_of(record::table_for<job::JobSpec>())) {
    if (place.path == path && place.has_flag) return place.row->notes.flag.name;
  }
  return "";
}

}  // namespace

int main() {
  job::JobSpec spec{.name = "a", .command = {"b"}, .folder = "/c"};
  json seen;
  std::vector<base::Fault> faults;
  record::assign(record::table_for<job::JobSpec>(), &spec, "nice",
                 record::ValueTree::of("7").root(), faults);
  seen["set"] = faults.empty();
  seen["json"] = json::parse(record::to_json(spec))["nice"];
  seen["yaml"] = json::parse(record::to_json(spec, record::Form::kHuman))["nice"];
  const std::string kept = record::to_json(spec, record::Form::kStore);
  seen["store"] = json::parse(kept)["nice"];
  const auto again = record::from_json<job::JobSpec>(record::to_json(spec), "spec");
  seen["read back"] = again && *again == spec;
  seen["flag"] = flag_of("nice");
  record::Schemas schemas;
  schemas.add(record::table_for<job::JobSpec>());
  seen["schemas"] = json::parse(schemas.all().dump());
  record::assign(record::table_for<job::JobSpec>(), &spec, "nice",
                 record::ValueTree::of("20").root(), faults);
  for (const base::Fault& fault : job::validate(spec))
    seen["fault"] = fault.field + " " + fault.what;
  std::cout << seen.dump() << "\n";
  return 0;
}
