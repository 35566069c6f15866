#include "api/openapi_writer.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "api/schemas.h"
#include "base/json_text.h"

namespace muster::api {

bool write_openapi(const char* base_file, std::ostream& out, std::ostream& errors) {
  std::ifstream file(base_file);
  record::Schema document = record::Schema::parse(file, nullptr, false);
  if (document.is_discarded()) {
    errors << "muster-openapi: give the base of the document, a JSON file\n";
    return false;
  }
  record::Schemas schemas;
  for (auto* add :
       {add_job_schemas, add_project_schemas, add_node_schemas, add_machine_schemas,
        add_account_schemas, add_artifact_schemas, add_notification_schemas, add_tree_schemas,
        add_array_schemas, add_schedule_schemas, add_sweep_schemas, add_usage_schemas}) {
    add(schemas);
  }
  record::Schema& all = document["components"]["schemas"];
  for (const auto& [name, schema] : schemas.all().items()) {
    if (all.contains(name)) {
      errors << "muster-openapi: the schema '" << name
             << "' comes from a table of fields; remove it from " << base_file << "\n";
      return false;
    }
    all[name] = schema;
  }
  out << base::indented_json_text(document) << "\n";
  return static_cast<bool>(out.flush());
}

}  // namespace muster::api
