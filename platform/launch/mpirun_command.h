// Whether a job's command is an mpirun of its own accord.
//
// Pure.
#pragma once

#include <string>
#include <vector>

namespace muster::launch {

/// True where the launcher's argv is Open MPI's mpirun itself and none of its options says what
/// becomes of the ranks' output. Only then may ranks print into their own tasks' logs: a script may
/// want to read what mpirun prints (mpirun ... | grep loss), and must find it there.
bool is_plain_mpirun(const std::vector<std::string>& argv);

}  // namespace muster::launch
