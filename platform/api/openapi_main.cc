// Writes the API's document: the routes of openapi_base.json, with the schemas of the tables of
// fields (record/schema.h).
//
//   muster-openapi platform/api/openapi_base.json > openapi.json
//
// Run by the build. A schema that exists in both is an error: a field is written down once.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "api/schemas.h"

int main(int argc, char** argv) {
  using namespace muster;
  std::ifstream file(argc == 2 ? argv[1] : "");
  record::Schema document = record::Schema::parse(file, nullptr, false);
  if (document.is_discarded()) {
    std::cerr << "muster-openapi: give the base of the document, a JSON file\n";
    return 1;
  }
  record::Schemas schemas;
  for (auto* add : {api::add_job_schemas, api::add_project_schemas, api::add_node_schemas,
                    api::add_machine_schemas, api::add_account_schemas, api::add_artifact_schemas,
                    api::add_notification_schemas, api::add_tree_schemas, api::add_array_schemas,
                    api::add_schedule_schemas, api::add_sweep_schemas, api::add_usage_schemas}) {
    add(schemas);
  }
  record::Schema& all = document["components"]["schemas"];
  for (const auto& [name, schema] : schemas.all().items()) {
    if (all.contains(name)) {
      std::cerr << "muster-openapi: the schema '" << name
                << "' comes from a table of fields; remove it from " << argv[1] << "\n";
      return 1;
    }
    all[name] = schema;
  }
  std::cout << document.dump(2) << "\n";
  return std::cout.flush() ? 0 : 1;
}
