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

}  // namespace muster::launch
