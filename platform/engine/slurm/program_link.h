// The server's end of a program that runs beside a task, or of the task's own, on a connection that
// its muster-node has made for that.
//
// On the loop's thread.
#pragma once

#include <memory>

#include "engine/run_conversation.h"
#include "engine/slurm/node_hub.h"

namespace muster::engine::slurm {

/// What `line` brings goes to the conversation, as long as that is there.
std::unique_ptr<RunLink> link_program(std::shared_ptr<NodeConnection> line,
                                      const std::shared_ptr<RunConversation>& to);

}  // namespace muster::engine::slurm
