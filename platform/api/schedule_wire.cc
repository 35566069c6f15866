#include "api/schedule_wire.h"

#include "api/fields.h"
#include "api/schemas.h"
#include "job/validate.h"

namespace muster::api {

void add_schedule_schemas(record::Schemas& schemas) {
  schemas.add(record::table_for<job::ScheduleSpec>());
  schemas.add(record::table_for<job::Schedule>());
  schemas.add_list("Schedules", "schedules", record::table_for<job::Schedule>(),
                   "By project and name.");
}

std::string schedule_to_json(const job::Schedule& schedule) {
  return record::to_json(schedule);
}
Result<job::Schedule> schedule_from_json(std::string_view text) {
  return record::from_json<job::Schedule>(text, "schedule");
}

std::string schedule_spec_to_json(const job::ScheduleSpec& spec) {
  return record::to_json(spec);
}
Result<job::ScheduleSpec> schedule_spec_from_json(
    std::string_view text,
    const std::function<std::vector<base::Fault>(const job::ScheduleSpec&)>& faults_of_times) {
  return record::from_json<job::ScheduleSpec>(
      text, "schedule", [&](const job::ScheduleSpec& spec, std::vector<base::Fault>& unread) {
        job::add_dependents(unread, "job.");
        std::vector<base::Fault> faults = job::validate_schedule(spec);
        if (!faults_of_times) return faults;
        for (base::Fault& fault : faults_of_times(spec)) faults.push_back(std::move(fault));
        return faults;
      });
}

std::string schedules_to_json(const std::vector<job::Schedule>& schedules) {
  return record::list_to_json("schedules", schedules);
}
Result<std::vector<job::Schedule>> schedules_from_json(std::string_view text) {
  return record::list_from_json<job::Schedule>(text, "schedules");
}

}  // namespace muster::api
