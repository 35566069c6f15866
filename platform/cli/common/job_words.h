// How a job runs in its image and on Slurm, in a few words.
//
// Pure.
#pragma once

#include <string>

#include "job/job.h"

namespace muster::cli {

/// "by ssh: the images have sshd and ssh; Open MPI 4.1.4". Empty where nothing is known.
std::string launch_words(const job::Job& job);

/// What a job asks for beside the usual: "writable root, SYS_PTRACE, 8Gi of /dev/shm". Empty where
/// that is nothing.
std::string container_words(const job::ContainerSpec& container);

/// "job 17, partition gpu, account vision": its last job there, as its events tell, and what was
/// said of it. Empty where there is nothing of either.
std::string slurm_words(const job::Job& job);

}  // namespace muster::cli
