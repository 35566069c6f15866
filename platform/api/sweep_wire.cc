#include "api/sweep_wire.h"

#include "api/schemas.h"
#include "record/table.h"

namespace muster::api {

void add_sweep_schemas(record::Schemas& schemas) {
  schemas.add(record::table_for<sweep::SweepSpec>());
  schemas.add(record::table_for<sweep::Sweep>());
  schemas.add_list("Sweeps", "sweeps", record::table_for<sweep::SweepSummary>(), "Oldest first.");
  schemas.add(record::table_for<sweep::SweepPlan>());
}

std::string sweep_spec_to_json(const sweep::SweepSpec& spec) {
  return record::to_json(spec);
}
base::Result<sweep::SweepSpec> sweep_spec_from_json(std::string_view text) {
  return record::from_json<sweep::SweepSpec>(
      text, "sweep", [](const sweep::SweepSpec& spec, std::vector<base::Fault>& unread) {
        sweep::add_dependents(unread);
        return sweep::validate(spec);
      });
}

std::string sweep_to_json(const sweep::Sweep& sweep) {
  return record::to_json(sweep);
}
base::Result<sweep::Sweep> sweep_from_json(std::string_view text) {
  return record::from_json<sweep::Sweep>(text, "sweep");
}

std::string sweeps_to_json(const std::vector<sweep::SweepSummary>& sweeps) {
  return record::list_to_json("sweeps", sweeps);
}
base::Result<std::vector<sweep::SweepSummary>> sweeps_from_json(std::string_view text) {
  return record::list_from_json<sweep::SweepSummary>(text, "sweeps");
}

base::Result<sweep::SweepSummary> sweep_summary_from_json(std::string_view text) {
  return record::from_json<sweep::SweepSummary>(text, "sweep");
}

std::string sweep_plan_to_json(const sweep::SweepPlan& plan) {
  return record::to_json(plan);
}
base::Result<sweep::SweepPlan> sweep_plan_from_json(std::string_view text) {
  return record::from_json<sweep::SweepPlan>(text, "plan");
}

}  // namespace muster::api
