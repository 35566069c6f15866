// The engine's requests to Slurm: submit a job, list jobs and nodes, cancel jobs. There are two
// clients (open_client.h): one for slurmrestd, and one that runs Slurm's own programs.
//
// On the loop's thread. No call blocks. Each answer comes once, later, and never after the client
// is destroyed.
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

/// Equal nodes, each with the same number of tasks. A job with several components is a
/// heterogeneous job; the first component is its leader.
struct Component {
  int tasks = 0;                      ///< in all
  int least_tasks = 0;                ///< the fewest that will do; 0: all
  int tasks_per_node = 1;             ///< the last node may have fewer
  int cpus_per_task = 0;              ///< 0: Slurm's default
  int64_t memory_bytes_per_node = 0;  ///< 0: Slurm's default
  int gpus_per_node = 0;
  std::string gpu_type;  ///< of the GRES: "a100"; empty: any

  bool operator==(const Component&) const = default;
};

struct Submission {
  std::string name;
  std::string comment;  ///< identifies the job in Slurm's queue
  std::string script;   ///< the whole batch script; may contain a key, so never an argument
  std::vector<Component> components;
  std::string partition;  ///< one, or several separated by commas; empty: the default
  std::string account;
  std::string qos;
  std::string reservation;
  std::string constraint;
  std::vector<std::string> excluded_nodes;
  std::optional<std::chrono::minutes> time_limit;
  std::string folder = "/";                        ///< working directory of the script
  std::string output = "/dev/null";                ///< file for the script's output and errors
  std::map<std::string, std::string> environment;  ///< the script's whole environment
  std::vector<std::string> options;  ///< more options of sbatch, "--nice=100"; not for slurmrestd
};

enum class JobState {
  kPending,
  kConfiguring,  ///< it has nodes, which Slurm boots or prepares before it starts the job there
  kRunning,
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
  kUnknown,  ///< a state of a newer Slurm
};

/// Whether the job is over; Slurm may still be cleaning up.
bool is_over(JobState state);

/// A job in Slurm's queue. A heterogeneous job is its leader, with the nodes of all components.
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
  bool takes_jobs = false;  ///< neither down, drained nor unreachable
  std::string reason;       ///< why it takes no jobs
  int cpus = 0;
  int64_t memory_bytes = 0;
  int gpus = 0;
  std::string gpu_type;
  std::vector<std::string> partitions;
  std::vector<std::string> features;

  bool operator==(const ListedNode&) const = default;
};

/// What a client uses, for users and for `muster doctor`.
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

  /// Answers with the id of the job (of a heterogeneous job, its leader).
  ///
  /// Errors: kRefused, kInvalid: Slurm rejects the job, in Slurm's words and with advice.
  /// kUnavailable: the controller was not reached, and nothing was submitted. kTimeout: the answer
  /// was lost; the caller must look for the comment in the queue before it submits again.
  virtual void submit(Submission submission, Then<uint64_t> then) = 0;

  /// Lists all jobs of this user in the controller's memory, recently ended jobs among them, in one
  /// request. kUnavailable: the controller does not answer.
  virtual void jobs(Then<std::vector<ListedJob>> then) = 0;

  /// Lists jobs of the accounting database, for jobs that the controller may have forgotten. Empty
  /// if there is no database.
  virtual void past_jobs(std::vector<uint64_t> ids, Then<std::vector<ListedJob>> then) = 0;

  /// Cancels jobs in one request. A job that is already over is not an error.
  virtual void cancel(std::vector<uint64_t> ids, Then<void> then) = 0;

  virtual void nodes(Then<std::vector<ListedNode>> then) = 0;

  /// kUnavailable, kRefused: why Slurm cannot be used.
  virtual void facts(Then<ClientFacts> then) = 0;
};

}  // namespace muster::engine::slurm
