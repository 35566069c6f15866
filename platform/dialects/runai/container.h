// What the flags of Run:AI say of the image and of the containers that run it.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/command/arguments.h"
#include "cli/connection/caller.h"
#include "job/spec.h"

namespace muster::dialects::runai {

/// --image-pull-policy and its deprecated names, --large-shm, --run-as-user, --add-capability,
/// --allow-privilege-escalation. An image can be written to, as Kubernetes has it.
void read_container(cli::FlagReader& reader, const cli::Caller& caller, job::JobSpec& spec);

}  // namespace muster::dialects::runai
