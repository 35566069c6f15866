// What a job's command says of the mpirun that it calls.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launch {

/// True where the launcher's argv is Open MPI's mpirun itself and none of its options says what
/// becomes of the ranks' output. Only then may ranks print into their own tasks' logs: a script may
/// want to read what mpirun prints (mpirun ... | grep loss), and must find it there.
bool is_plain_mpirun(const std::vector<std::string>& argv);

/// The first program of the command, or of a script given on its line (sh -c "..."), that has the
/// name of an MPI's launcher: "mpiexec.hydra", "/opt/openmpi/bin/mpirun".
std::optional<std::string> launcher_of(const std::vector<std::string>& argv);

// The words of a command line, for guesses at what it runs.
//
// Pure.

/// Of all arguments; of one that is a script ("sh -c SCRIPT"), those of the script too. They point
/// into `command`.
std::vector<std::string_view> words_of(const std::vector<std::string>& command);

/// Whether a word is a file of this name, whatever its folder: /usr/bin/NAME, --option=NAME,
/// 'NAME'.
bool is_file_named(std::string_view word, std::string_view name);

}  // namespace muster::launch
