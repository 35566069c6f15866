// Which MPI a task's mpirun belongs to is asked of it, in the task and before its program starts;
// what the program then finds is what stands under the answer (launch::MpiChoice).
//
// The inner half asks, sets its variables and files, and tells the outer half, which keeps the
// answer in the task's folder.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/mpi_version.h"
#include "launch/task_plan.h"

namespace muster::engine {

struct MpiAnswer {
  std::optional<job::MpiVersion> version;  ///< unset: it is none that Muster knows
  std::string first_line;                  ///< of what it printed; empty: nothing, in time

  bool is_known() const { return version.has_value(); }
  bool operator==(const MpiAnswer&) const = default;
};

/// How the program is asked.
struct MpiQuestion {
  std::vector<std::string> environment;  ///< its own; it is looked up in the PATH of it
  std::string folder;
  /// Until it is killed, with all that is in its process group.
  std::chrono::milliseconds patience{10'000};
  int interrupted_by = -1;  ///< readable: somebody has better to do
};

/// nullopt: there is no such program, or it was interrupted. Blocking; starts a process.
std::optional<MpiAnswer> ask_mpi(const std::string& program, const MpiQuestion& question);

/// What stands under the answer. One that nobody knows gets what Open MPI does: it is what most
/// images have.
const launch::MpiChoice::Variant& variant_for(const launch::MpiChoice& choice,
                                              const MpiAnswer& answer);

/// On top of what is there.
void add_variables(const launch::MpiChoice::Variant& variant,
                   std::vector<std::string>& environment);

/// In place: a file may be seen at other paths, too. Errors name the file.
base::Result<void> copy_files(const launch::MpiChoice::Variant& variant,
                              const std::string& generated_folder);

/// A line for the log, of an answer that is not known.
std::string notice_of(const MpiAnswer& answer, const launch::MpiChoice& choice);

/// As the inner half tells it the outer one.
std::string encode(const MpiAnswer& answer);
/// nullopt: it is another message.
std::optional<MpiAnswer> read_mpi_answer(std::string_view message);

}  // namespace muster::engine
