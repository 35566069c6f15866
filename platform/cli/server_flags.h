// What `muster server` is told: by its flags, and, of the GPUs to declare, by $MUSTER_DECLARE_GPUS,
// so that a server which a command starts by itself has them too.
//
// Pure.
#pragma once

#include "cli/caller.h"
#include "cli/cli.h"
#include "cli/flag_reader.h"

namespace muster::cli {

ServeOptions read_server_flags(const Caller& caller, FlagReader& reader);

}  // namespace muster::cli
