// The machine types that a server knows, as they go over the wire:
// {"machine_types": [{"name", "gpus", "gpu_share", "gpu_memory_bytes", "gpu_model", "cpus",
// "memory_bytes"}, ...]}, all of them in each.
//
// Pure; as api/wire.h.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "job/machine_type.h"

namespace muster::api {

std::string machine_types_to_json(const job::MachineTypes& types);
base::Result<job::MachineTypes> machine_types_from_json(std::string_view text);

}  // namespace muster::api
