// The image that a task needs, and the login to its registry: what an engine prepares before a gang
// starts.
//
// Plain values.
#pragma once

#include <memory>
#include <string>

#include "job/job.h"
#include "job/spec.h"

namespace muster::engine {

/// The image for a task.
struct ImageRequest {
  std::string task;
  std::string node;
  std::string image;
  std::string user;  ///< JobSpec::user; empty: the image's user
  job::PullPolicy pull = job::PullPolicy::kIfMissing;
  std::string registry;  ///< to log in to; empty: the registry in the image's name
  std::string username;  ///< empty: no login
  std::string password;
  /// The job, of which the task is one: for an engine that runs pods, else null.
  std::shared_ptr<const job::Job> job = {};

  bool operator==(const ImageRequest&) const = default;
};

}  // namespace muster::engine
