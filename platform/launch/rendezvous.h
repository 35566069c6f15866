// The variables of tasks in TensorFlow clusters and in torch.distributed groups.
//
// Pure. The user's own variables of these names take precedence: a TF_CONFIG of the job is passed
// on unchanged.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster::launch {

/// The address of each task, "host:port", in the order of their numbers.
struct GrpcCluster {
  std::string chief;
  std::vector<std::string> workers;  ///< without the chief
  std::vector<std::string> parameter_servers;
  bool chief_is_worker = false;  ///< TF_CONFIG lists the chief as worker 0, and no chief
};

/// A place in the cluster: the chief, workers[index], or parameter_servers[index]. An evaluator is
/// outside the cluster: it gets the cluster's addresses, but no task connects to it or waits for
/// it.
struct GrpcPlace {
  enum class Kind { kChief, kWorker, kParameterServer, kEvaluator };
  Kind kind = Kind::kChief;
  int index = 0;
};

/// TF_CONFIG as TensorFlow 2 reads it: "chief", "worker" and "ps", each unless it is empty, with
/// numbers that start from 0 in each. An evaluator's task is {"type": "evaluator", "index": 0}, and
/// the cluster does not list it, as TensorFlow requires.
///
/// Also the variables of Gradient, which counts its chief ("master") as worker number 0:
///
///   PS_CONFIG                      such a cluster, JSON in base64 for URLs
///   TYPE                           master, worker, ps or evaluator
///   INDEX                          0 for the chief, i + 1 for worker-i, i for ps-i, evaluator-i
///   MASTER, WORKER_HOSTS, PS_HOSTS  lists of 'host:port', written as Python writes them
std::map<std::string, std::string> grpc_environment(const GrpcCluster& cluster,
                                                    const GrpcPlace& place);

// The variables with which a task of a kTorch job finds the others.
//
// Pure. The user's own variables of these names take precedence, and torchrun's arguments over
// PET_*.

struct TorchPlace {
  std::string master_host;
  int master_port = 0;
  std::string host;   ///< the address of this task
  int rank = 0;       ///< of the task: 0 is the master, i + 1 is worker-i
  int tasks = 1;      ///< the number of tasks, including the master
  int min_tasks = 1;  ///< the number with which it continues; max_tasks if it is not elastic
  int max_tasks = 1;
  int processes_per_task = 1;
  std::string group;      ///< unique for this attempt
  std::string interface;  ///< for traffic between the tasks; empty: torch's own choice
};

/// For programs without a launcher, with one process for each task: torch.distributed's "env://"
/// (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE), and variables that
/// others read (GROUP_RANK, GROUP_WORLD_SIZE, NODE_RANK). torchrun replaces all of these for the
/// programs that it starts.
///
/// For torchrun, which reads arguments that are not given from PET_ and the argument's name:
///
///   PET_NNODES           "3"; of an elastic job the fewest and the most, "2:4"
///   PET_NPROC_PER_NODE   processes_per_task
///   PET_RDZV_BACKEND     c10d: the master's torchrun holds the store
///   PET_RDZV_ENDPOINT    the master's host and port
///   PET_RDZV_ID          group
///   PET_RDZV_CONF        which task holds the store: torchrun would compare addresses, but a task
///                        has every address of 127.x.y.z. And timeouts: 300 s for an answer of the
///                        store, because a large torch loads slowly on some nodes; 10 s for more
///                        tasks when there are enough (torchrun's defaults: 60 s and 30 s)
///   PET_MAX_RESTARTS     for an elastic job: 16. When a task is lost, the processes of all other
///                        tasks fail, which costs each torchrun one restart; a task that joins
///                        costs none. A program that fails by itself is tried as often
///   PET_REDIRECTS, PET_TEE
///                        9:1: the output of process 9 goes to a file; usually there is no process
///                        9. torchrun's own "0" has the same effect, but makes torch 1.13 fail with
///                        Python 3.11, which Debian 12 has
///   PET_LOCAL_ADDR       host: torch 2 gives it to the others instead of the host name
///   PET_NODE_RANK, PET_MASTER_ADDR, PET_MASTER_PORT   for --rdzv-backend static
///
/// If `interface` is set: GLOO_SOCKET_IFNAME, TP_SOCKET_IFNAME. By default, Gloo and TensorPipe
/// bind the address of the host name, which without a sandbox is reachable from other machines.
std::map<std::string, std::string> torch_environment(const TorchPlace& place);

}  // namespace muster::launch
