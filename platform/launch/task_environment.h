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

/// The variables of the task at `index` of gang.tasks. Variables of an image have the lowest
/// precedence, except PATH; then Muster's own, the user's, the secrets, and last those about its
/// GPUs. If its program calls a plain ssh, the PATH begins with the folder of an ssh that resolves
/// the job's tasks. Without a container, PATH ends with the folder of Muster's programs.
Variables environment_of(const GangContext& gang, size_t index);

// The ports that the program of a task binds, as far as Muster chose them.
//
// Pure. Only for plan.cc and its parts.

/// The ports of the task at `index` of gang.tasks. A server of TensorFlow and a store of torch bind
/// every address, whatever address they are given; rank 0 of an MPI program binds the address at
/// which the others look for it.
std::vector<ServedPort> served_ports(const GangContext& gang, size_t index);

/// The task whose address is MUSTER_RENDEZVOUS: the task in which mpirun starts rank 0, which is
/// the first worker of the hostfile; for other kinds the leader. An index of gang.tasks.
size_t rendezvous_task(const GangContext& gang);

// The variables that programs written for Run:AI and for Gradient read, for every kind of job.
// Variables of single kinds: mpi_environment.h, rendezvous.h.
//
// Pure. The user's own variables of these names take precedence.

/// Every task has
///
///   JOB_NAME, JOB_UUID, NODE_NAME
///   POD_INDEX           number within the role: 0 for a leader, 1 for worker-1; the same after
///                       restarts
///   POD_UUID            another one for each attempt
///   RUNAI_PROJECT, RUNAI_JOB_NAME, RUNAI_JOB_UUID
///   RUNAI_NUM_OF_GPUS   "2", "0.5"
///
/// if the job was submitted by `gradient` (an annotation "gradient/..."):
///
///   PAPERSPACE_EXPERIMENT_ID, PAPERSPACE_METRIC_WORKLOAD_ID
///
/// and if it has a folder of its project at /storage:
///
///   PS_JOBSPACE         /storage
///   PS_MODEL_PATH       the annotation "gradient/modelPath", or /artifacts for a job with
///                       one task, or /storage/models/ID
std::map<std::string, std::string> contract_environment(const job::Job& job, const job::Task& task);

// The job's own values of variables that Muster sets to describe a task and its gang. The job's
// values take precedence (environment_of()). A note reports them, because such a variable may come
// from a shell that was set up for another cluster.
//
// Pure.

/// A sentence for each variable that Muster then does not set for the tasks of the job, or of some
/// of its roles:
///
///   the job itself sets TF_CONFIG, so Muster does not set it (the address of each task); remove it
///   unless the program finds the other tasks by itself
///
/// Variables that users often set on purpose (PET_MAX_RESTARTS, OMPI_MCA_btl_tcp_if_include) get no
/// note. `runs_images`: whether the engine runs images; if it does, inherited variables are not set
/// (job/spec.h), and `images` are not used.
std::vector<std::string> notes_on_own_variables(const job::JobSpec& spec,
                                                const job::ImageStandIns& images, bool runs_images);

}  // namespace muster::launch
