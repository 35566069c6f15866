// Which jobs a watcher asked for.
//
// Plain values.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "http/message.h"
#include "job/job.h"
#include "server/sight.h"

namespace muster::server {

struct WatchFilter {
  std::optional<std::string> project;
  std::optional<std::string> name;

  bool takes(const std::string& of_project, const std::string& of_name) const {
    return (!project || *project == of_project) && (!name || *name == of_name);
  }
  /// And the caller sees it.
  bool takes(const Sight& sight, const job::Job& job) const {
    return takes(job.spec.project, job.spec.name) && sight.sees(job);
  }
};

}  // namespace muster::server
