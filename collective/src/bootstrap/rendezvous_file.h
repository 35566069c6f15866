// The rendezvous of ranks on one host: a file in a private folder that says where rank 0 listens
// and carries the key of the job. Who can read it is the user; nothing has to be configured.
//
// The folder is $XDG_RUNTIME_DIR/muster-collective, or else /tmp/muster-collective-<uid>. As /tmp
// is everybody's, folder and file are believed only if they are the user's own and closed to all
// others, and no link is followed.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "muster/collective/result.h"
#include "transport/bytes.h"

namespace muster::collective {

/// Looks up an environment variable.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

/// Where rank 0 is to be found, and the key to it.
struct Meeting {
  std::string endpoint;
  Bytes key;
};

/// What tells one run of a launcher on this host from every other, the same on all of its ranks.
/// Nothing where the launcher is not one of those that this works for, or says too little.
///
///   Open MPI        PMIX_NAMESPACE and the ports of its servers
///   MPICH, Intel    nothing in the environment: the process that started all ranks of this host
///   Slurm           SLURM_JOB_ID and SLURM_STEP_ID
///   torchrun        MASTER_ADDR, MASTER_PORT and TORCHELASTIC_RUN_ID, and the same process
std::optional<std::string> run_of_mpirun(const Lookup& variable);
std::optional<std::string> run_of_hydra(int process);
std::optional<std::string> run_of_slurm(const Lookup& variable);
std::optional<std::string> run_of_torchrun(const Lookup& variable, int process);

/// The path of the file for a run, named by a hash of it.
std::string rendezvous_file_of(const std::string& run, const Lookup& variable);

/// A published meeting; the file goes away with it.
class Publication {
 public:
  explicit Publication(std::string path) : path_(std::move(path)) {}
  Publication(Publication&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Publication& operator=(Publication&&) = delete;
  ~Publication();

 private:
  std::string path_;
};

/// Writes the file, all of it at once, and the folder that it lies in if it is not there.
///
/// Errors: kConfiguration where the folder is not private, kSystem.
Result<Publication> publish(const std::string& path, const Meeting& meeting);

/// Reads the file; nothing while it is not there.
///
/// Errors: kConfiguration where folder or file are not private, or the file is not of this kind.
Result<std::optional<Meeting>> find_meeting(const std::string& path);

}  // namespace muster::collective
