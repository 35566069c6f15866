// Which jobs a watcher has asked for.
#pragma once

#include <optional>
#include <string>

#include "job/job.h"
#include "server/sight.h"

namespace muster::server {

/// Plain values.
struct WatchFilter {
  std::optional<std::string> project;
  std::optional<std::string> name;

  bool takes(const std::string& of_project, const std::string& of_name) const {
    return (!project || *project == of_project) && (!name || *name == of_name);
  }
  /// Also requires that the caller sees the job.
  bool takes(const Sight& sight, const job::Job& job) const {
    return takes(job.spec.project, job.spec.name) && sight.sees(job);
  }
};

}  // namespace muster::server
