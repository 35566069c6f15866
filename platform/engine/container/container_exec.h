// Runs programs in containers beside the task's own program, and attaches to the task's own
// program. Both go through the task's shim (engine/shim/run_wire.h).
//
// On the loop's thread. The client must outlive the returned objects.
#pragma once

#include <memory>
#include <string>

#include "base/event_loop.h"
#include "engine/container/docker_client.h"
#include "engine/engine.h"
#include "engine/run_conversation.h"

namespace muster::engine {

/// Runs a program in a container whose shim is running. Faults are reported later: if the program
/// does not exist, or the container has ended, the exit code is 127 and the status has the reason.
std::unique_ptr<Exec> run_in_container(base::EventLoop& loop, DockerClient& client,
                                       const std::string& container, const ExecPlan& plan,
                                       ExecHandlers handlers);

/// The input and output of the task's own program. Its end is reported when its log is complete.
std::unique_ptr<Exec> attach_to_container(base::EventLoop& loop, DockerClient& client,
                                          const std::string& container, TaskEnd end,
                                          ExecHandlers handlers);

}  // namespace muster::engine
