// What the engine asks of Slurm: submit, list, cancel, which nodes there are. Two clients do it:
// slurmrestd's (rest_client.h) where there is one, and Slurm's own programs (command_client.h).
//
// On the loop's thread. Nothing blocks; each answer comes later, once, and never after the client
// is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace muster::engine::slurm {

/// The unit in which Slurm counts memory.
inline constexpr int64_t kMebibyte = int64_t{1} << 20;

/// Nodes that are alike, each with the same number of tasks. A job with several of these is a
/// heterogeneous one, the first being its leader.
struct Component {
  int tasks = 0;                      ///< in all
  int least_tasks = 0;                ///< that it may do with, where that is fewer; 0: all
  int tasks_per_node = 1;             ///< the last node may have fewer
  int cpus_per_task = 0;              ///< 0: as Slurm has it
  int64_t memory_bytes_per_node = 0;  ///< 0: as Slurm has it
  int gpus_per_node = 0;
  std::string gpu_type;  ///< of the GRES: "a100"; empty: any

  bool operator==(const Component&) const = default;
};

struct Submission {
  std::string name;
  std::string comment;  ///< by which it is found again
  std::string script;   ///< the whole batch script; it may hold a key and is never an argument
  std::vector<Component> components;
  std::string partition;  ///< one or several with commas; empty: the default
  std::string account;
  std::string qos;
  std::string reservation;
  std::string constraint;
  std::vector<std::string> excluded_nodes;
  std::optional<std::chrono::minutes> time_limit;
  std::string folder = "/";                        ///< working directory of the script
  std::string output = "/dev/null";                ///< of the script, and errors
  std::map<std::string, std::string> environment;  ///< all that the script has
  std::vector<std::string> options;  ///< further ones of sbatch, "--nice=100"; slurmrestd has none
};

enum class JobState {
  kPending,
  kRunning,  ///< also configuring
  kSuspended,
  kCompleting,
  kCompleted,
  kFailed,
  kCancelled,
  kTimeout,
  kDeadline,
  kNodeFailed,
  kBootFailed,
  kPreempted,
  kOutOfMemory,
  kUnknown,  ///< a word of a newer Slurm
};

/// Whether Slurm is done with it, but for what is still being cleaned up.
bool is_over(JobState state);

/// One job as Slurm lists it. Of a heterogeneous one, its leader with what holds for all.
struct ListedJob {
  uint64_t id = 0;
  std::string comment;
  JobState state = JobState::kUnknown;
  std::string state_text;  ///< Slurm's own words: "PREEMPTED", "CANCELLED by 1000"
  std::string reason;      ///< "Resources", "Priority", "QOSMaxGRESPerUser"; "None" is empty
  std::optional<base::Time> may_start;
  std::vector<std::string> nodes;  ///< of all its components, in order
  int restarts = 0;
  int exit_code = 0;
  int exit_signal = 0;
  std::string partition;
  std::string account;
  std::string qos;

  bool operator==(const ListedJob&) const = default;
};

struct ListedNode {
  std::string name;
  std::string address;
  std::string state_text;   ///< "IDLE", "DOWN*+DRAIN"
  bool takes_jobs = false;  ///< neither down, drained nor not answering
  std::string reason;       ///< why not
  int cpus = 0;
  int64_t memory_bytes = 0;
  int gpus = 0;
  std::string gpu_type;
  std::vector<std::string> partitions;
  std::vector<std::string> features;

  bool operator==(const ListedNode&) const = default;
};

/// What it is, for people and for `muster doctor`.
struct ClientFacts {
  std::string way;      ///< "slurmrestd at /run/slurmrestd.sock", "Slurm's programs"
  std::string version;  ///< of Slurm: "22.05.8"
  std::string api;      ///< "v0.0.38"; "parseable output"
};

class SlurmClient {
 public:
  template <typename T>
  using Then = std::function<void(base::Result<T>)>;

  virtual ~SlurmClient() = default;

  /// The id of the job, of a heterogeneous one that of its leader.
  ///
  /// Errors: kRefused, kInvalid: Slurm will not have it, in Slurm's words and with what to do.
  /// kUnavailable: the controller was not reached, and nothing was submitted. kTimeout: the answer
  /// was lost, and whoever asked has to look for the comment before he asks again.
  virtual void submit(Submission submission, Then<uint64_t> then) = 0;

  /// All jobs of this user that Slurm still knows, those that ended lately included: one call to
  /// the controller, however many they are. kUnavailable: the controller does not answer.
  virtual void jobs(Then<std::vector<ListedJob>> then) = 0;

  /// Those of these that the controller may have forgotten, as the accounting database knows them;
  /// empty where there is no such database.
  virtual void past_jobs(std::vector<uint64_t> ids, Then<std::vector<ListedJob>> then) = 0;

  /// Ends jobs, one call for all. Those that are over are no error.
  virtual void cancel(std::vector<uint64_t> ids, Then<void> then) = 0;

  virtual void nodes(Then<std::vector<ListedNode>> then) = 0;

  /// kUnavailable, kRefused: why nothing can be asked.
  virtual void facts(Then<ClientFacts> then) = 0;
};

}  // namespace muster::engine::slurm
