// The flags that say what image a job runs in and how far its containers are set apart, read into a
// spec.
//
// Pure.
#pragma once

#include <optional>
#include <string_view>

#include "cli/flag_reader.h"
#include "job/spec.h"

namespace muster::cli {

/// --image, --user, --registry-*, --image-pull-policy, --writable-root, --allow-new-privileges,
/// --cap-add, --shm-size, --keep-entrypoint, --launch.
void read_container_flags(FlagReader& reader, job::JobSpec& spec);

/// "if-missing", "always", "never", or in Kubernetes' words "IfNotPresent", "Always", "Never".
std::optional<job::PullPolicy> pull_policy_of_any(std::string_view name);

}  // namespace muster::cli
