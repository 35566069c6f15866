// The flags that describe a job, as words: those of single fields, made from its table, and those
// that mean more than one field. spec_flags.h reads them.
//
// Pure.
#pragma once

#include <string_view>

#include "cli/command_parts.h"

namespace muster::cli {

/// The flags of single fields of a job of this kind ("mpi", ...; "run" of `muster run`), as the
/// table of fields has them.
Flags field_flags(std::string_view kind);
/// Those that mean more than one field: how important a job is; how many workers it may have.
Flags importance_flags();
Flags worker_flags();
/// What a job finds: its files, its volumes; and what it is called by.
Flags content_flags();

}  // namespace muster::cli
