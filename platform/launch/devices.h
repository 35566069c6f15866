// The variables that show a task the GPUs it was given, and no others.
//
// They are an agreement, not a wall: a program that sets CUDA_VISIBLE_DEVICES itself reaches every
// GPU that its user may open, and one that was given a part of a GPU takes what memory it wants.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/job.h"

namespace muster::launch {

/// What a job is given of the GPUs of a node, by name of variable:
///
///   CUDA_VISIBLE_DEVICES   its devices, joined by commas; empty where it has none
///   CUDA_DEVICE_ORDER      PCI_BUS_ID: numbers mean to CUDA what they mean to the driver
///   MUSTER_GPUS            how many they are
///   MUSTER_GPU_SHARE       where it has any: how much of each, "1", "0.5", "0.125"
///   CUDA_MPS_ACTIVE_THREAD_PERCENTAGE   where that is a part: kept to where an MPS daemon runs
///
/// `names`: what CUDA_VISIBLE_DEVICES calls the GPUs of the task's node; a missing one goes by its
/// number.
std::map<std::string, std::string> device_environment(const job::Task& task,
                                                      const std::vector<std::string>& names);

/// What CUDA_VISIBLE_DEVICES calls the GPUs that a task was given.
std::vector<std::string> device_names(const job::Task& task, const std::vector<std::string>& names);

/// How many GPUs a task was given: "0", "2"; a part of one: "0.5".
std::string gpus_text(const job::Task& task);

/// Whether any task of the job claims a GPU, or a part of one.
bool asks_for_gpus(const job::JobSpec& spec);

}  // namespace muster::launch
