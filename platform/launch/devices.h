// The variables that show a task its own GPUs, and no others.
//
// They restrict only cooperating programs: a program that sets CUDA_VISIBLE_DEVICES itself can use
// every GPU that its user may open, and a program with a fraction of a GPU can allocate any amount
// of its memory.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/job.h"

namespace muster::launch {

/// The variables about the GPUs of a task:
///
///   CUDA_VISIBLE_DEVICES   its devices, separated by commas; empty if it has none
///   CUDA_DEVICE_ORDER      PCI_BUS_ID: CUDA numbers devices as the driver does
///   MUSTER_GPUS            the number of devices
///   MUSTER_GPU_SHARE       if it has devices: the part of each, "1", "0.5", "0.125"
///   CUDA_MPS_ACTIVE_THREAD_PERCENTAGE   for a fraction: enforced where an MPS daemon runs
///
/// `names`: the names of the node's GPUs for CUDA_VISIBLE_DEVICES; a GPU without a name is
/// identified by its number.
std::map<std::string, std::string> device_environment(const job::Task& task,
                                                      const std::vector<std::string>& names);

/// The names of the task's GPUs for CUDA_VISIBLE_DEVICES.
std::vector<std::string> device_names(const job::Task& task, const std::vector<std::string>& names);

/// The number of the task's GPUs: "0", "2"; for a fraction: "0.5".
std::string gpus_text(const job::Task& task);

/// Whether a task of the job claims GPUs or a fraction of a GPU.
bool asks_for_gpus(const job::JobSpec& spec);

}  // namespace muster::launch
