// Measures a task at intervals.
//
// Measuring can block: walking the page tables of a task with a hundred gigabytes takes a second, and
// NVML may never return for a GPU that has failed. Then samples are missing, and the task continues.
// So a sample has two parts. The supervisor of the task takes the quick part itself, from files of
// /proc for which the kernel waits for nothing. The other part is read by a process of its own, and
// only if there is something to read: memory of processes that have changed, or TCP connections. A
// task that sleeps or only computes needs no such process.
//
// After a slow sample the next one comes later, so that measuring takes at most a fiftieth of a CPU.
//
// muster-shim is linked statically and cannot load NVML. muster-gpu-sampler, linked dynamically, holds
// NVML and takes all samples of a task with GPUs, as a process that lasts as long as the task. If that
// program is missing or does not run (the image of a container has another libc), there are no samples
// of GPUs.
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

#include "base/clock.h"
#include "base/result.h"
#include "engine/metric_log.h"
#include "engine/nvml_library.h"
#include "engine/shim/process_usage.h"

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

  bool operator==(const TcpSocket&) const = default;
};

/// The sockets of this network namespace that may have carried data. nullopt: the kernel does not
/// report them, or not their bytes.
std::optional<std::vector<TcpSocket>> tcp_sockets();

/// The inodes of the sockets that these processes have open.
std::set<uint64_t> socket_inodes(const std::vector<pid_t>& processes);

/// Whether one of these processes has a TCP socket open. Does not block. True for processes with so many
/// descriptors that reading them would take long.
bool may_have_tcp(const std::vector<pid_t>& processes);

struct Traffic {
  uint64_t sent = 0;
  uint64_t received = 0;

  bool operator==(const Traffic&) const = default;
};

/// Counts the bytes of a task's sockets. Not thread-safe.
class SocketUsage {
 public:
  /// The task's sockets among all `sockets`: those in `own`, and those that were the task's at the last
  /// look. `own`: finds the inodes of the task's sockets; called only if there are other sockets, since
  /// it reads /proc.
  std::vector<TcpSocket> own_of(const std::vector<TcpSocket>& sockets,
                                const std::function<std::set<uint64_t>()>& own) const;
  /// The bytes since the last call, or since a socket was made. `own`: the task's sockets.
  Traffic count(const std::vector<TcpSocket>& own);

  /// Whether the task had sockets at the last look.
  bool has_sockets() const { return !counted_.empty(); }

 private:
  std::map<uint64_t, Traffic> counted_;  ///< by cookie
};

// --- the sampler
//

/// The part of a sample that may block while it is read.
struct SlowLook {
  std::map<pid_t, int64_t> memory;                ///< of processes, in bytes
  std::optional<std::vector<TcpSocket>> sockets;  ///< of the task; nullopt: none are reported

  bool operator==(const SlowLook&) const = default;
};

/// For a pipe from the process that looks. nullopt: the process has ended before it had written all.
std::string encode(const SlowLook& look);
std::optional<SlowLook> decode_slow_look(std::string_view text);

/// Takes samples of a task, without those of its GPUs: begin(), look_slowly() if it is needed, finish().
///
/// Not thread-safe. look_slowly() may run in a copy of the object, in a forked process.
class Sampler {
 public:
  using Steady = std::chrono::steady_clock;

  /// The processes below `shim` are the task, except `left_out`. `started`: start of the task.
  Sampler(pid_t shim, pid_t left_out, Steady::time_point started);

  /// Begins a sample, also if the last one was not finished: then the new one covers its time, too.
  /// Does not block. Returns whether look_slowly() is needed.
  bool begin(base::Time time, Steady::time_point now);
  /// May block.
  SlowLook look_slowly() const;
  /// `slow`: nullopt if look_slowly() is not needed.
  MetricSample finish(const std::optional<SlowLook>& slow);

 private:
  ProcessUsage processes_;
  SocketUsage sockets_;
  std::optional<bool>
      reports_tcp_;          ///< whether the kernel reports sockets; unknown before the first look
  ProcessUsage::Look look_;  ///< of the sample that was begun
  std::chrono::nanoseconds cpu_{0};  ///< since the last finished sample
  base::Time time_{};                ///< of the sample that was begun
  Steady::time_point begun_;
  Steady::time_point last_;  ///< when the last finished sample was begun
};

/// How long to wait after a sample that began at `begin`, has just been taken, and is taken at this
/// interval.
std::chrono::steady_clock::duration rest_after(std::chrono::steady_clock::time_point begin,
                                               std::chrono::milliseconds interval);

// --- the program muster-gpu-sampler

struct SamplerPlan {
  pid_t shim = 0;                                 ///< the processes below it are the task
  std::chrono::steady_clock::time_point started;  ///< start of the task
  std::chrono::milliseconds interval{0};
  std::string nvml;               ///< the NVML library
  std::vector<std::string> gpus;  ///< as CUDA_VISIBLE_DEVICES names them

  bool operator==(const SamplerPlan&) const = default;
};

/// The plan as arguments of the program, and back. kInvalid: the arguments are not a plan.
std::vector<std::string> arguments_of(const SamplerPlan& plan);
base::Result<SamplerPlan> read_sampler_plan(const std::vector<std::string>& arguments);

/// Returns the usage of GPUs: values by the names of job/metric.h.
using LookAtGpus = std::function<std::vector<std::pair<std::string, double>>()>;

/// Writes samples, with those of `gpus`, as lines of metric_log.h to standard output, until no process
/// reads it. Returns an exit code.
int run_sampler(const SamplerPlan& plan, const LookAtGpus& gpus);

}  // namespace muster::engine
