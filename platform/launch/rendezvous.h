// What a task of a TensorFlow cluster is told: who is in it, where each answers, and which it is.
//
// Pure. The user's own variables of these names win: a TF_CONFIG of the job is handed on as it is.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster::launch {

/// Where each task answers, "host:port", in the order of their numbers.
struct GrpcCluster {
  std::string chief;
  std::vector<std::string> workers;  ///< those beside the chief
  std::vector<std::string> parameter_servers;
};

/// A place in the cluster: the chief, workers[index], or parameter_servers[index]. An evaluator has
/// none: it knows the cluster, and nobody in it calls it or waits for it.
struct GrpcPlace {
  enum class Kind { kChief, kWorker, kParameterServer, kEvaluator };
  Kind kind = Kind::kChief;
  int index = 0;
};

/// TF_CONFIG as TensorFlow 2 reads it: "chief", "worker" and "ps", each where it has any, and
/// numbers that start from 0 in each. An evaluator's task is {"type": "evaluator", "index": 0}, and
/// the cluster is without it, as TensorFlow wants it.
///
/// And the names of Gradient, which counts its chief ("master") among the workers, as number 0 of
/// them:
///
///   PS_CONFIG                      such a cluster, JSON in base64 for URLs
///   TYPE                           master, worker, ps or evaluator
///   INDEX                          0 for the chief, i + 1 for worker-i, i for ps-i, evaluator-i
///   MASTER, WORKER_HOSTS, PS_HOSTS  lists of 'host:port', written as Python writes them
std::map<std::string, std::string> grpc_environment(const GrpcCluster& cluster,
                                                    const GrpcPlace& place);

// What a task of a kTorch job is told to find the others.
//
// Pure. The user's own variables of these names win, as do torchrun's arguments over PET_*.

struct TorchPlace {
  std::string master_host;
  int master_port = 0;
  std::string host;   ///< where others reach this task
  int rank = 0;       ///< of the task: 0 is the master, i + 1 is worker-i
  int tasks = 1;      ///< that take part, the master among them
  int min_tasks = 1;  ///< with so many it goes on; as many as max_tasks where it is not elastic
  int max_tasks = 1;
  int processes_per_task = 1;
  std::string group;      ///< of this attempt alone
  std::string interface;  ///< the one that all of them talk through; empty: as torch finds it
};

/// For programs that no launcher starts, each task being one process: torch.distributed's "env://"
/// (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE), and what others read
/// (GROUP_RANK, GROUP_WORLD_SIZE, NODE_RANK). torchrun sets all of these anew for what it starts.
///
/// For torchrun, which reads what it has no argument for from PET_ and the argument's name:
///
///   PET_NNODES           "3"; of an elastic job the fewest and the most, "2:4"
///   PET_NPROC_PER_NODE   processes_per_task
///   PET_RDZV_BACKEND     c10d: the master's torchrun holds the store
///   PET_RDZV_ENDPOINT    the master's host and port
///   PET_RDZV_ID          group
///   PET_RDZV_CONF        who holds the store, which torchrun would find by comparing addresses: of
///                        127.x.y.z every task has every one. And how long to wait: 300 s for an
///                        answer of the store, for a large torch is slow to load on some node; 10 s
///                        for more tasks once there are enough (torchrun's own: 60 s and 30 s)
///   PET_MAX_RESTARTS     of an elastic job: 16. Where a task is lost the processes of all others
///                        fail, which costs each torchrun one of these; a task that joins costs
///                        none. So a program that fails by itself is tried as often
///   PET_REDIRECTS, PET_TEE
///                        9:1: the output of process 9 goes to a file; usually there is no process
///                        9. torchrun's own "0" has the same effect, but makes torch 1.13 fail with
///                        Python 3.11, which Debian 12 has
///   PET_LOCAL_ADDR       host: torch 2 tells the others of it in the place of its host name
///   PET_NODE_RANK, PET_MASTER_ADDR, PET_MASTER_PORT   for who asks for --rdzv-backend static
///
/// Where there is one interface: GLOO_SOCKET_IFNAME, TP_SOCKET_IFNAME. Left to themselves Gloo and
/// TensorPipe take the address that the host name has, which without a sandbox is one that others
/// outside may reach.
std::map<std::string, std::string> torch_environment(const TorchPlace& place);

}  // namespace muster::launch
