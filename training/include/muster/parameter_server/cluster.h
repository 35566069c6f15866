// The role of this process in a job, from TF_CONFIG: a variable of TensorFlow, which Muster sets
// for every task of a job of kind `grpc`.
//
//   {"cluster": {"chief": ["h0:2222"], "worker": ["h1:2222"], "ps": ["h2:2222"]},
//    "task": {"type": "worker", "index": 0}}
//
// The key is MUSTER_RENDEZVOUS_KEY, the same that the collective library uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/collective/result.h"

namespace muster::parameter_server {

enum class Role {
  kServer,
  kWorker,
};

struct Cluster {
  Role role;
  int index;            // of the servers or of the workers; the chief is worker 0
  bool is_chief;        // `chief` or `master`, or else worker 0 of a cluster without one
  std::string address;  // this task's own host:port
  std::vector<std::string> servers;  // host:port of every parameter server, in order
  int workers;                       // the chief included
  std::string key = {};              // the job's, in hex
};

/// From the text of TF_CONFIG, without the key.
///
/// Errors: kConfiguration, listing all faults and the expected form.
collective::Result<Cluster> cluster_from(std::string_view tf_config);

/// From TF_CONFIG and MUSTER_RENDEZVOUS_KEY.
///
/// Errors: as above, and if one of the two is not set. No message contains the key.
/// Thread-safety: reads the environment, which no other thread may change meanwhile.
collective::Result<Cluster> cluster_from_environment();

}  // namespace muster::parameter_server
