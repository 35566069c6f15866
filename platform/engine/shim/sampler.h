// Measures a task at intervals and writes each sample as a line of metric_log.h to standard output,
// until no process reads it (muster-shim --sample).
//
// The sampler is a process of its own, because measuring can block: walking the page tables of a
// task with a hundred gigabytes takes a second, and NVML may never return for a GPU that has
// failed. Then samples are missing, and the task continues. After a slow sample the next one comes
// later, so that measuring takes at most a fiftieth of a CPU.
//
// muster-shim is linked statically and cannot load NVML. muster-gpu-sampler is the same sampler,
// linked dynamically, with NVML. If that program is missing or does not run (the image of a
// container has another libc), there are no samples of GPUs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/nvml_library.h"

namespace muster::engine {

// --- GPUs
//

/// How busy the GPUs of a task are. NVML measures whole GPUs: a task that shares a GPU gets the
/// usage of all tasks on it.
///
/// Blocking (nvml_library.h). Not thread-safe.
class GpuUsage {
 public:
  /// `names`: as in CUDA_VISIBLE_DEVICES: numbers in bus order, or UUIDs. Opens the library unless
  /// there are no names. Missing GPUs, and a missing library, are ignored.
  GpuUsage(const std::string& library, const std::vector<std::string>& names);

  /// Values by the names of job/metric.h, without those that no GPU reports.
  std::vector<std::pair<std::string, double>> look() const;

 private:
  std::unique_ptr<NvmlLibrary> library_;
  std::unique_ptr<NvmlSession> session_;
  std::vector<NvmlDevice*> devices_;
};

// --- TCP
//
// The bytes that the processes of a task send and receive over TCP, within the machine and to other
// machines. Tasks may share the machine's network, so the counters of its interfaces do not help.
// The kernel counts the bytes of each socket and reports them to any process (NETLINK_SOCK_DIAG);
// the descriptors of a task's processes show which sockets are the task's.
//
// Bytes between the last look at a socket and its end are not counted. Neither are UDP and traffic
// that bypasses the kernel (RDMA).

struct TcpSocket {
  uint64_t cookie = 0;  ///< identifies the socket; the kernel never reuses it
  uint64_t inode = 0;   ///< 0: no process has the socket yet, or any more
  uint64_t sent = 0;
  uint64_t received = 0;
};

/// The sockets of this network namespace that may have carried data. nullopt: the kernel does not
/// report them, or not their bytes.
std::optional<std::vector<TcpSocket>> tcp_sockets();

/// The inodes of the sockets that these processes have open.
std::set<uint64_t> socket_inodes(const std::vector<pid_t>& processes);

struct Traffic {
  uint64_t sent = 0;
  uint64_t received = 0;

  bool operator==(const Traffic&) const = default;
};

/// Counts the bytes of a task's sockets. Not thread-safe.
class SocketUsage {
 public:
  /// The bytes since the last call, or since a socket was made. `own`: finds the inodes of the
  /// task's sockets; called only if `sockets` has a new one, since it reads /proc.
  Traffic look(const std::vector<TcpSocket>& sockets,
               const std::function<std::set<uint64_t>()>& own);

 private:
  struct Known {
    bool is_own = false;
    Traffic counted;
  };
  std::map<uint64_t, Known> known_;  ///< by cookie
};

// --- the sampler
//

struct SamplerPlan {
  pid_t shim = 0;                                 ///< the processes below it are the task
  std::chrono::steady_clock::time_point started;  ///< start of the task
  std::chrono::milliseconds interval{0};
  std::string nvml;               ///< the NVML library
  std::vector<std::string> gpus;  ///< as CUDA_VISIBLE_DEVICES names them

  bool operator==(const SamplerPlan&) const = default;
};

/// The plan as arguments after "--sample", and back. kInvalid: the arguments are not a plan.
std::vector<std::string> arguments_of(const SamplerPlan& plan);
base::Result<SamplerPlan> read_sampler_plan(const std::vector<std::string>& arguments);

/// Returns the usage of GPUs: values by the names of job/metric.h.
using LookAtGpus = std::function<std::vector<std::pair<std::string, double>>()>;

/// Runs the sampler. `gpus` may be empty: then there are no samples of GPUs. Returns an exit code.
int run_sampler(const SamplerPlan& plan, LookAtGpus gpus = {});

}  // namespace muster::engine
