// The options of a world, from the program and from the environment.
//
// Pure: the environment and the process id are arguments.
#pragma once

#include "bootstrap/rendezvous_file.h"
#include "muster/collective/bootstrap.h"

namespace muster::collective {

/// bootstrap_from_environment() over a given environment; bootstrap.h documents the precedence of
/// the variables. `process` is the id of this process: with some launchers, the parent process is
/// all that the ranks of one host have in common.
Result<Options> bootstrap_from(const Lookup& variable, Options given, int process);

/// Checks the options that are names or small numbers, whether they come from a program or from the
/// environment. Errors: kConfiguration, naming the value and the valid values.
Status check_choices(const Options& options);

}  // namespace muster::collective
