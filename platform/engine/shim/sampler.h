// Measures a task at intervals and writes each measurement as a line (muster-shim --sample).
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
// How busy a task's GPUs are, as NVML tells. It speaks of whole GPUs: where tasks share one, each
// of them sees what all do.
//
// Blocking, as nvml_library.h says. Not thread-safe.

class GpuUsage {
 public:
  /// By the names of CUDA_VISIBLE_DEVICES: numbers, in the order of the bus, or UUIDs. Opens the
  /// library at once, where there is any GPU to ask for. A GPU or a library that is not there is
  /// left out.
  GpuUsage(const std::string& library, const std::vector<std::string>& names);

  /// By the names of job/metric.h; what no GPU tells is not among them.
  std::vector<std::pair<std::string, double>> look() const;

 private:
  std::unique_ptr<NvmlLibrary> library_;
  std::unique_ptr<NvmlSession> session_;
  std::vector<NvmlDevice*> devices_;
};

// --- TCP
//
// What the processes of a task send and receive over TCP, over loopback and to other machines
// alike.
//
// They share their machine's network, so interfaces tell nothing of them; but the kernel counts the
// bytes of each socket, and tells them to anybody (NETLINK_SOCK_DIAG). Which sockets are a task's
// is told by the descriptors of its processes. What a socket carries between the last look and its
// end is lost. UDP, and what bypasses the kernel (RDMA), are not seen.
//
// Not thread-safe.

struct TcpSocket {
  uint64_t cookie = 0;  ///< the kernel gives it to one socket only
  uint64_t inode = 0;   ///< 0: it is nobody's yet, or no longer
  uint64_t sent = 0;
  uint64_t received = 0;
};

/// Those of this network namespace that can have carried something. nullopt where the kernel does
/// not tell, or not how much they carried.
std::optional<std::vector<TcpSocket>> tcp_sockets();

/// The inodes of the sockets that these processes hold.
std::set<uint64_t> socket_inodes(const std::vector<pid_t>& processes);

struct Traffic {
  uint64_t sent = 0;
  uint64_t received = 0;

  bool operator==(const Traffic&) const = default;
};

/// Bytes of a task's sockets, from look to look.
class SocketUsage {
 public:
  /// Since the last look, or since the sockets were made. `own`: the inodes of the task's sockets;
  /// asked only where there is a socket that was not there before.
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
// muster-shim --sample: measures one task, again and again, and writes a line of metric_log.h each
// time to its standard output, until nobody reads there.
//
// A process of its own beside the shim, which must not be held up: walking the page tables of a
// task with a hundred gigabytes takes a second, and a GPU that has failed may hold whoever asks it
// for good. Then there are no samples, and the task goes on. Where a sample takes long, the next
// one comes later: measuring never takes more than a fiftieth of a CPU.
//
// The shim is linked to no library, so it cannot load the one that tells of GPUs; a program beside
// it, muster-gpu-sampler, is the same sampler with that. Where it is not there, or does not run
// (the image of a container has another libc), GPUs are not measured.

struct SamplerPlan {
  pid_t shim = 0;                                 ///< all below it is the task
  std::chrono::steady_clock::time_point started;  ///< when the task did
  std::chrono::milliseconds interval{0};
  std::string nvml;               ///< the library
  std::vector<std::string> gpus;  ///< as CUDA_VISIBLE_DEVICES names them

  bool operator==(const SamplerPlan&) const = default;
};

/// The arguments behind "--sample", and back. kInvalid: they are none.
std::vector<std::string> arguments_of(const SamplerPlan& plan);
base::Result<SamplerPlan> read_sampler_plan(const std::vector<std::string>& arguments);

/// By the names of job/metric.h.
using LookAtGpus = std::function<std::vector<std::pair<std::string, double>>()>;

/// `gpus` may be empty. Returns an exit code.
int run_sampler(const SamplerPlan& plan, LookAtGpus gpus = {});

}  // namespace muster::engine
