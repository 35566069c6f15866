// The variables of a task of a gang.
//
// Pure. Of plan.cc and its parts alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/job.h"
#include "job/machine_type.h"
#include "job/spec.h"
#include "launch/gang.h"

namespace muster::launch {

/// Of the task at `index` of gang.tasks. Those of an image are below all others but PATH; over them
/// come Muster's own, then the user's, the secrets, and last what shows it its GPUs. Where its
/// program calls a plain ssh, PATH leads to the one that knows the job first. On the machine itself
/// PATH ends with the folder of Muster's programs.
Variables environment_of(const GangContext& gang, size_t index);

// Which ports the program of a task binds, as far as Muster chose them.
//
// Pure. Of plan.cc and its parts alone.

/// Of the task at `index` of gang.tasks. A server of TensorFlow and a store of torch bind every
/// address, whichever they are told of; rank 0 of an MPI program binds the one where the others
/// look for it.
std::vector<ServedPort> served_ports(const GangContext& gang, size_t index);

/// The task whose address MUSTER_RENDEZVOUS names: where mpirun puts rank 0, the first worker of
/// the hostfile; of other kinds the leader. An index of gang.tasks.
size_t rendezvous_task(const GangContext& gang);

// The variables that programs written for Run:AI and for Gradient look for, whatever kind their job
// is. What one kind adds: mpi_environment.h, grpc_cluster.h, torch_group.h.
//
// Pure. The user's own variables of these names win.

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

// Variables that Muster tells a task its place by, where the job has some of these names itself.
// The job's win (task_environment.h); whoever submitted it is told what that takes away, for the
// variable may have come along from a shell in which another cluster was set up.
//
// Pure.

/// A sentence for each thing that the tasks of the job, or of some of its roles, are then not told
/// by Muster:
///
///   TF_CONFIG is the job's own: Muster's, which says where each task answers, is not set; leave it
///   out unless the program finds the others by itself
///
/// Not of those that many set on purpose, to tune what Muster says (PET_MAX_RESTARTS,
/// OMPI_MCA_btl_tcp_if_include). `runs_images`: of the engine; where it does, what came along from
/// the shell is not set (job/inherited.h), and `images` stand in for nothing.
std::vector<std::string> notes_on_own_variables(const job::JobSpec& spec,
                                                const job::ImageStandIns& images, bool runs_images);

}  // namespace muster::launch
