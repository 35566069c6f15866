#include "server/named.h"

#include <algorithm>

#include "server/sight.h"

namespace muster::server {

base::Result<std::string> project_in_path(const control::Controller& controller, const Call& call,
                                          access::Role needed) {
  const std::string& name = call.path.at("name");
  MUSTER_CHECK(Sight(controller, call.who).project(name, needed));
  return name;
}

base::Result<void> check_task(const job::Job& job, const std::optional<std::string>& task) {
  const bool has_it =
      !task || std::any_of(job.tasks.begin(), job.tasks.end(),
                           [&](const job::Task& each) { return each.name == *task; });
  if (has_it) return {};
  return base::Error{.code = base::ErrorCode::kNotFound,
                     .what = "job '" + job.spec.name + "' has no task '" + *task + "'",
                     .advice = "muster get " + job.spec.name + " shows its tasks"};
}

}  // namespace muster::server
