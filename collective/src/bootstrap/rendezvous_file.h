// The rendezvous of ranks on one host: a file in a private folder, with the address of rank 0 and
// the key of the job. Only the user can read it, so nothing has to be configured.
//
// The folder is $XDG_RUNTIME_DIR/muster-collective, or else /tmp/muster-collective-<uid>. Since
// every user can write to /tmp, folder and file are used only if they belong to the user and are
// closed to all other users. Symbolic links are not followed.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "muster/collective/result.h"
#include "transport/bytes.h"

namespace muster::collective {

/// Looks up an environment variable.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

/// The address of rank 0, and the key of the job.
struct Meeting {
  std::string endpoint;
  Bytes key;
};

/// An identifier of one run of a launcher on this host, equal on all of its ranks. Empty for an
/// unsupported launcher, or if the launcher sets too few variables.
///
///   Open MPI        PMIX_NAMESPACE and the ports of its servers
///   MPICH, Intel    the parent process, which starts all ranks of this host
///   Slurm           SLURM_JOB_ID and SLURM_STEP_ID
///   torchrun        MASTER_ADDR, MASTER_PORT and TORCHELASTIC_RUN_ID, and the parent process
std::optional<std::string> run_of_mpirun(const Lookup& variable);
std::optional<std::string> run_of_hydra(int process);
std::optional<std::string> run_of_slurm(const Lookup& variable);
std::optional<std::string> run_of_torchrun(const Lookup& variable, int process);

/// The path of the file for a run; its name is a hash of `run`.
std::string rendezvous_file_of(const std::string& run, const Lookup& variable);

/// A published file, which the destructor removes.
class Publication {
 public:
  explicit Publication(std::string path) : path_(std::move(path)) {}
  Publication(Publication&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Publication& operator=(Publication&&) = delete;
  ~Publication();

 private:
  std::string path_;
};

/// Writes the file atomically, and creates its folder if necessary.
///
/// Errors: kConfiguration if the folder is not private, kSystem.
Result<Publication> publish(const std::string& path, const Meeting& meeting);

/// Reads the file; empty if it does not exist.
///
/// Errors: kConfiguration if folder or file are not private, or the file has another format.
Result<std::optional<Meeting>> find_meeting(const std::string& path);

}  // namespace muster::collective
