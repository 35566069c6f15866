// The schemas of the API's document (openapi.json) that come from tables of fields. openapi_writer.cc
// adds them to those in openapi_base.json when Muster is built.
//
// Each function adds the documents that its file reads and writes. Thread-safe (no state).
#pragma once

#include "record/type.h"

namespace muster::api {

void add_account_schemas(record::Schemas& schemas);
void add_array_schemas(record::Schemas& schemas);
void add_artifact_schemas(record::Schemas& schemas);
void add_job_schemas(record::Schemas& schemas);
void add_notification_schemas(record::Schemas& schemas);
void add_schedule_schemas(record::Schemas& schemas);
void add_machine_schemas(record::Schemas& schemas);
void add_node_schemas(record::Schemas& schemas);
void add_project_schemas(record::Schemas& schemas);
void add_sweep_schemas(record::Schemas& schemas);
void add_tree_schemas(record::Schemas& schemas);
void add_usage_schemas(record::Schemas& schemas);

}  // namespace muster::api
