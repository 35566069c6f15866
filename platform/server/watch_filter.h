// Which jobs a watcher has asked for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "job/job_facts.h"
#include "server/sight.h"

namespace muster::server {

/// Plain values.
struct WatchFilter {
  std::optional<std::string> project;
  std::optional<std::string> name;

  bool takes(std::string_view of_project, std::string_view of_name) const {
    return (!project || *project == of_project) && (!name || *name == of_name);
  }
  /// Also requires that the caller sees the job.
  bool takes(const Sight& sight, const job::JobFacts& job) const {
    return takes(job.project, job.name) && sight.sees(job);
  }
};

}  // namespace muster::server
