// Where muster-nodes call this server back, and the mark by which they tell whether they see its
// folder. Both are kept in the folder of jobs, so that a restarted server is found where the one
// before it was, or, by those who share the folder, where it is now.
//
// I/O, on the loop's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/slurm/node_hub.h"
#include "engine/slurm/options.h"

namespace muster::engine::slurm {

struct CallbackSite {
  std::unique_ptr<NodeHub> hub;
  std::vector<std::string> hosts;
  std::string mark;   ///< a file's name in the folder of jobs
  std::string nonce;  ///< what it holds
};

/// Listens at the port that the options say, else at the one that is kept, else at any.
///
/// Errors: kConflict: the port of the options is taken; those of files.
base::Result<CallbackSite> open_callback_site(base::EventLoop& loop,
                                              const SlurmEngineOptions& options, HubOptions hub);

/// This machine's name, and its addresses, but for loopback where it has others.
std::vector<std::string> own_hosts();

}  // namespace muster::engine::slurm
