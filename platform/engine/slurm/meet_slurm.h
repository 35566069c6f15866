// How Slurm is met: by slurmrestd where the options name one, else by Slurm's programs.
#pragma once

#include <memory>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/slurm/options.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// Errors: kNotFound: a program of Slurm's is missing; kInvalid: what the options say of slurmrestd
/// cannot be used.
base::Result<std::unique_ptr<SlurmClient>> meet_slurm(base::EventLoop& loop,
                                                      const SlurmEngineOptions& options);

}  // namespace muster::engine::slurm
