// What a job's command says of the mpirun that it calls.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::launch {

/// True where the launcher's argv is Open MPI's mpirun itself and none of its options says what
/// becomes of the ranks' output. Only then may ranks print into their own tasks' logs: a script may
/// want to read what mpirun prints (mpirun ... | grep loss), and must find it there.
bool is_plain_mpirun(const std::vector<std::string>& argv);

/// The first program of the command, or of a script given on its line (sh -c "..."), that has the
/// name of an MPI's launcher: "mpiexec.hydra", "/opt/openmpi/bin/mpirun".
std::optional<std::string> launcher_of(const std::vector<std::string>& argv);

}  // namespace muster::launch
