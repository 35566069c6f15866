// The outermost part of a program: what went wrong is said on standard error, and becomes its exit
// code.
//
// I/O.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "base/result.h"

namespace muster::cli {

/// "PROGRAM: what", then faults and advice; the exit code that goes with it.
int tell(const base::Error& error, const std::string& program);

/// The exit code of what `command_line` does, whatever becomes of it.
int run_and_tell(const std::string& program,
                 const std::function<base::Result<int>()>& command_line);

}  // namespace muster::cli
