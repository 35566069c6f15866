// What launchers report in the last lines of their log: the process that failed first, and a lost
// connection to a host (Open MPI 4 and 5, MPICH and Intel MPI with Hydra, horovodrun, torchrun).
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/exit_status.h"

namespace muster::control {

/// The lines that a task printed, without the newlines.
using LastLines = std::vector<std::string>;

/// The process that a launcher saw fail first.
struct RankEnd {
  std::optional<int> rank;  ///< Hydra names only the host; torchrun may not know it
  std::string host;         ///< empty: the launcher does not name it
  job::ExitStatus status;
  bool aborted = false;  ///< the process called MPI_Abort with status.code
  /// The process ended without MPI_Finalize; the launcher does not report its exit code.
  bool unfinalized = false;

  bool operator==(const RankEnd&) const = default;
};

/// Read from the last lines of a launcher. If it ran several programs, from the last one's report.
std::optional<RankEnd> first_failed(const LastLines& lines);

/// The end of the explanation that line `begin` is part of: the next line that an Open MPI launcher
/// draws around explanations, or the end of the lines.
size_t end_of_explanation(const LastLines& lines, size_t begin);

/// Open MPI's "plm:rsh: Warning: setpgid(...) failed in parent": mpirun moves each ssh to a process
/// group of its own, and the ssh was quicker to do so itself. The "Permission denied" in that line
/// has no consequences.
bool is_harmless_remark(std::string_view line);

/// The host to which a launcher lost its connection, by the name or address in the lines: the
/// launcher's daemon there (orted, prted), or the ssh session that holds the daemon, ended while
/// the task of that host still runs.
std::optional<std::string> lost_host_in(const LastLines& lines);

/// The lines without the launchers' own reports of ended processes, which explain nothing.
LastLines without_launcher_words(const LastLines& lines);

}  // namespace muster::control
