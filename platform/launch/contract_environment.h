// The variables that programs written for Run:AI and for Gradient look for, whatever kind their job
// is. What one kind adds: mpi_environment.h, grpc_cluster.h, torch_group.h.
//
// Pure. The user's own variables of these names win.
#pragma once

#include <map>
#include <string>

#include "job/job.h"

namespace muster::launch {

/// Every task has
///
///   JOB_NAME, JOB_UUID, NODE_NAME
///   POD_INDEX           which of its role it is: 0 for a leader, 1 for worker-1; the same over
///                       restarts
///   POD_UUID            another one for each attempt
///   RUNAI_PROJECT, RUNAI_JOB_NAME, RUNAI_JOB_UUID
///   RUNAI_NUM_OF_GPUS   "2", "0.5"
///
/// where the job was submitted in Gradient's words (an annotation "gradient/..."):
///
///   PAPERSPACE_EXPERIMENT_ID, PAPERSPACE_METRIC_WORKLOAD_ID
///
/// and where it has a folder of its project at /storage:
///
///   PS_JOBSPACE         /storage
///   PS_MODEL_PATH       what the annotation "gradient/modelPath" says, or /artifacts for a job of
///                       one task, or /storage/models/ID
std::map<std::string, std::string> contract_environment(const job::Job& job, const job::Task& task);

}  // namespace muster::launch
