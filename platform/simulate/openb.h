// The openb experiment: a cluster's list of nodes is filled by the pods of a list, one after the
// other in random order and none ever leaving, until as many GPUs have been asked for as there are.
// What part of the GPUs is then in use says how well a packing avoids fragments.
//
// The way of Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
// Fragmentation Gradient Descent" (USENIX ATC'23), over Alibaba's openb lists
// (cluster-trace-gpu-v2023), with the placement that the scheduler uses. Pure: no file is read
// here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedule/nodes.h"

namespace muster::simulate {

struct OpenbOptions {
  std::vector<int> seeds{42, 43, 44, 45, 46, 47, 48, 49, 50, 51};
  /// Random pods are added again, or left out, until all of them ask for this part of all GPUs.
  double tuned = 1.3;
  schedule::Packing packing = schedule::Packing::kFragmentation;
};

struct OpenbRun {
  int seed = 0;
  double ratio = 0;  ///< allocated GPUs / all, when the arrived pods ask for all GPUs there are
  int arrived = 0;   ///< pods until then
  int refused = 0;   ///< of these
};

struct OpenbResult {
  std::vector<OpenbRun> runs;  ///< by seed
  double mean = 0;             ///< of their ratios
  double lowest = 0;
  double highest = 0;
  int nodes = 0;
  int gpus = 0;
  int pods = 0;  ///< of the list, before tuning
};

/// Columns of the nodes: sn, cpu_milli, memory_mib, gpu, model. Of the pods: cpu_milli, memory_mib,
/// num_gpu, gpu_milli, and gpu_spec if there is one (the models it may use, joined by '|').
///
/// Errors: kInvalid, with every fault of the lists and its line.
base::Result<OpenbResult> replay_openb(std::string_view nodes_csv, std::string_view pods_csv,
                                       const OpenbOptions& options);

/// A table: a line for each seed, then the mean with the spread.
std::string openb_text(const OpenbResult& result);

}  // namespace muster::simulate
