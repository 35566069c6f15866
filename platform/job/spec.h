// What a user asks for. Every dialect and the YAML file end in one JobSpec; nothing else enters
// the system.
//
// Plain values. Whether they make sense is validate()'s question (job/validate.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::job {

/// How the tasks of a job find each other.
enum class Kind {
  kSingle,  ///< one task, which runs the command
  kMpi,     ///< a launcher that runs the command, and workers it reaches by ssh
};

std::string_view to_string(Kind kind);
std::optional<Kind> kind_of(std::string_view name);

/// How far the tasks of a job are set apart from the machine they run on.
enum class Sandbox {
  kBubblewrap,  ///< own hostname, process tree, /generated, /dev/shm
  kNone,        ///< plain processes; names resolve through the ssh configuration alone
};

std::string_view to_string(Sandbox sandbox);
std::optional<Sandbox> sandbox_of(std::string_view name);

/// What one task needs of a node. Zero means: no claim.
struct Resources {
  int gpus = 0;
  int cpus = 0;
  int64_t memory_bytes = 0;

  bool operator==(const Resources&) const = default;
};

struct JobSpec {
  std::string name;
  std::string project = "default";
  Kind kind = Kind::kSingle;
  std::vector<std::string> command;  ///< argv: of the launcher, or of the single task
  int workers = 0;                   ///< kMpi: how many workers; kSingle: 0
  int slots_per_worker = 1;          ///< ranks that a worker takes (hostfile slots)
  Resources resources;               ///< of each worker, or of the single task
  std::map<std::string, std::string> environment;
  std::string folder;  ///< working directory of every task, absolute
  Sandbox sandbox = Sandbox::kBubblewrap;
  std::chrono::milliseconds start_timeout{30'000};  ///< until every worker answers
  std::chrono::milliseconds grace{10'000};          ///< between SIGTERM and SIGKILL

  bool operator==(const JobSpec&) const = default;
};

}  // namespace muster::job
