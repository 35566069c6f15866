// The mpirun that a job's command calls, and its options.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launch {

/// True if the launcher's argv is Open MPI's mpirun itself and none of its options redirects the
/// ranks' output. Only then may ranks print into their own tasks' logs: a script may read mpirun's
/// output (mpirun ... | grep loss) and must find the lines there.
bool is_plain_mpirun(const std::vector<std::string>& argv);

/// The first word of the command, or of a script on its line (sh -c "..."), that is the name of an
/// MPI launcher: "mpiexec.hydra", "/opt/openmpi/bin/mpirun".
std::optional<std::string> launcher_of(const std::vector<std::string>& argv);

// The words of a command line, from which Muster guesses its programs.
//
// Pure.

/// The words of all arguments; for a script ("sh -c SCRIPT"), also the words of the script. They
/// point into `command`.
std::vector<std::string_view> words_of(const std::vector<std::string>& command);

/// Whether a word is a file of this name, in any folder: /usr/bin/NAME, --option=NAME, 'NAME'.
bool is_file_named(std::string_view word, std::string_view name);

}  // namespace muster::launch
