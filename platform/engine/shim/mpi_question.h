// Which MPI a task's mpirun belongs to. The inner half runs `mpirun --version` in the task before
// the task's program starts. The answer chooses the variables and files that the program gets
// (launch::MpiChoice). The inner half sets them and passes the answer to the outer half, which
// keeps it in the task's folder.
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
  std::optional<job::MpiVersion> version;  ///< nullopt: an MPI that Muster does not support
  std::string first_line;                  ///< of the program's output; empty: no output in time

  bool is_known() const { return version.has_value(); }
  bool operator==(const MpiAnswer&) const = default;
};

/// How the program runs.
struct MpiQuestion {
  std::vector<std::string> environment;  ///< of the program; its PATH finds the program
  std::string folder;
  /// When this time is over, the program is killed with its process group.
  std::chrono::milliseconds patience{10'000};
  int interrupted_by = -1;  ///< the question ends early when this descriptor is readable
};

/// Runs the program and reads its answer. nullopt: the program does not exist, or the question was
/// interrupted. Blocking; starts a process.
std::optional<MpiAnswer> ask_mpi(const std::string& program, const MpiQuestion& question);

/// The variant for the answer. An unknown MPI gets the variant of Open MPI, which most images have.
const launch::MpiChoice::Variant& variant_for(const launch::MpiChoice& choice,
                                              const MpiAnswer& answer);

/// Adds the variables of the variant to the environment.
void add_variables(const launch::MpiChoice::Variant& variant,
                   std::vector<std::string>& environment);

/// Copies the files of the variant within the generated folder. Overwrites them in place, since a
/// file may be mounted at other paths, too. Errors name the file.
base::Result<void> copy_files(const launch::MpiChoice::Variant& variant,
                              const std::string& generated_folder);

/// The line for the log when the MPI is unknown.
std::string notice_of(const MpiAnswer& answer, const launch::MpiChoice& choice);

/// The answer as a message from the inner half to the outer half.
std::string encode(const MpiAnswer& answer);
/// nullopt: the message is of another kind.
std::optional<MpiAnswer> read_mpi_answer(std::string_view message);

}  // namespace muster::engine
