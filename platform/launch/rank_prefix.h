// Whether a job's command has MPICH or Intel MPI put the rank in front of each line: "[3] text".
//
// Pure.
#pragma once

#include <string>
#include <vector>

namespace muster::launch {

/// True where the command, or a script given on its line (sh -c "..."), calls mpiexec or mpirun
/// with -l or -prepend-rank among its own options, in front of the program. Programs begin lines
/// with "[3] " of their own accord, so what is not certain is no prefix.
bool prepends_rank(const std::vector<std::string>& command);

}  // namespace muster::launch
