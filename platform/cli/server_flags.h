// What `muster server` is told on its command line and by its environment, so that a server which a
// command starts by itself hears of the latter, too.
//
// Pure.
#pragma once

#include "cli/caller.h"
#include "cli/flag_reader.h"
#include "cli/server_config.h"

namespace muster::cli {

/// Which file was named, and what stands above it.
ServerSource read_server_source(const Caller& caller, const FlagReader& reader);

/// The options as far as flags and environment say. Notes a fault, named after its flag or
/// variable, for each value that cannot be read.
ServeOptions read_server_flags(const ServerSource& source, FlagReader& reader);

}  // namespace muster::cli
