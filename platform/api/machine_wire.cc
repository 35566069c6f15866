#include "api/machine_wire.h"

#include "api/schemas.h"
#include "job/spec_table.h"
#include "record/field.h"

namespace muster::api {

using job::MachineTypes;
using record::Table;
using record::Told;

struct NamedMachineType {
  std::string name;
  std::string gpu_model;
  job::Resources resources;
};

const Table& table_of(const NamedMachineType*) {
  static const Table table = [] {
    std::vector<record::Row> rows = record::rows_of_member<&NamedMachineType::resources>(
        record::table_for<job::Resources>().rows());
    rows.insert(rows.begin(),
                {record::field<&NamedMachineType::name>(
                     "name", {.help = "`p2.xlarge`, `V100`. Letters match in any case.",
                              .need = record::Need::kRequired}),
                 record::field<&NamedMachineType::gpu_model>(
                     "gpu_model", {.help = "For people. It does not restrict where a task runs.",
                                   .told = Told::kAlways})});
    return record::table<NamedMachineType>(
               "MachineType", std::move(rows),
               "A machine by the name that clouds sell it under, and the resources of a task that "
               "requests it. 0: no claim.")
        .as_answer();
  }();
  return table;
}

void add_machine_schemas(record::Schemas& schemas) {
  schemas.add_list("MachineTypes", "machine_types", record::table_for<NamedMachineType>());
}

std::string machine_types_to_json(const MachineTypes& types) {
  std::vector<NamedMachineType> list;
  for (const auto& [name, type] : types) {
    list.push_back({.name = name, .gpu_model = type.gpu_model, .resources = type.resources});
  }
  return record::list_to_json("machine_types", list);
}

base::Result<MachineTypes> machine_types_from_json(std::string_view text) {
  MUSTER_TRY(const std::vector<NamedMachineType> list,
             record::list_from_json<NamedMachineType>(text, "machine_types"));
  MachineTypes types;
  for (const NamedMachineType& each : list) {
    types[each.name] = {.resources = each.resources, .gpu_model = each.gpu_model};
  }
  return types;
}

}  // namespace muster::api
