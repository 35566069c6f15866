// What jobs may ask of the hosts that their containers run on.
//
// A path of a host, mounted into a container whose programs are root, and some rights of root make
// whoever submits root on that host. The one user of a server of their own is that by its engine
// anyway; of a server that is shared an administrator says what its jobs may.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "job/spec.h"

namespace muster::control {

struct ContainerPolicy {
  bool is_shared = false;  ///< false: jobs may ask for all there is
  /// The paths that may be mounted, each by itself: what is below one of them was left there by
  /// jobs, and may lead elsewhere.
  std::vector<std::string> host_paths;
  std::vector<std::string> capabilities;  ///< "SYS_PTRACE"
};

/// kRefused, with a fault for each that is not allowed.
base::Result<void> check_container_policy(const job::JobSpec& spec, const ContainerPolicy& policy);

}  // namespace muster::control
