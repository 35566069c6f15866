// What the launchers of distributed programs say when one of their processes has failed: which it
// was, where it ran and how it ended. Known are Open MPI 4 and 5, MPICH and Intel MPI (Hydra),
// horovodrun and torchrun.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/exit_status.h"

namespace muster::control {

/// What a task printed, without the newlines.
using Lines = std::vector<std::string>;

/// The process that a launcher saw fail first.
struct RankEnd {
  std::optional<int> rank;  ///< Hydra names the host alone
  std::string host;         ///< empty: the launcher does not say
  job::ExitStatus status;
  bool aborted = false;  ///< it called MPI_Abort itself, with status.code
  bool unfinalized =
      false;  ///< it ended without MPI_Finalize; the launcher does not report its code

  bool operator==(const RankEnd&) const = default;
};

/// From the last lines of a launcher; of several programs that it ran, the last one's.
std::optional<RankEnd> first_failed(const Lines& lines);

/// The end of the explanation that line `begin` is in: the next line that an Open MPI launcher
/// draws around explanations, or the end of the lines.
size_t end_of_explanation(const Lines& lines, size_t begin);

/// Open MPI's "plm:rsh: Warning: setpgid(...) failed in parent": mpirun moves each ssh to a process
/// group of its own, which the ssh has done itself if it was quicker. Nothing follows from it, and
/// its "Permission denied" is not the job's.
bool is_harmless_remark(std::string_view line);

/// The host to which a launcher lost its connection, by its name or its address as the lines have
/// it: the launcher's daemon there (orted, prted), or the ssh session that holds the daemon, ended,
/// while the host's task runs on.
std::optional<std::string> lost_host_in(const Lines& lines);

/// The lines without what launchers add about the end of their processes, which explains nothing.
Lines without_launcher_words(const Lines& lines);

}  // namespace muster::control
