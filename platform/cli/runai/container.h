// What the flags of Run:AI say of the image and of the containers that run it.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/caller.h"
#include "cli/flag_reader.h"
#include "job/spec.h"

namespace muster::cli::runai {

/// --image-pull-policy and its deprecated names, --large-shm, --run-as-user, --add-capability,
/// --allow-privilege-escalation. An image can be written to, as Kubernetes has it.
void read_container(FlagReader& reader, const Caller& caller, job::JobSpec& spec);

}  // namespace muster::cli::runai
