// Programs in containers: those that are run beside a task's own, and the task's own, for whoever
// sits before it. Each is spoken to through the task's shim (engine/shim/run_wire.h).
//
// On the loop's thread. The client must outlive what is returned.
#pragma once

#include <memory>
#include <string>

#include "base/event_loop.h"
#include "engine/container/docker_client.h"
#include "engine/engine.h"
#include "engine/folder/run_conversation.h"

namespace muster::engine {

/// Runs a program in a container whose shim runs. Whether there is such a program is known later
/// only: where there is none, or the container has ended meanwhile, it has exited with a code of
/// 127, and its status says why.
std::unique_ptr<Exec> run_in_container(base::EventLoop& loop, DockerClient& client,
                                       const std::string& container, const ExecPlan& plan,
                                       ExecHandlers handlers);

/// The input and output of the task's own program. Whoever sits before it hears of its end when its
/// log is whole.
std::unique_ptr<Exec> attach_to_container(base::EventLoop& loop, DockerClient& client,
                                          const std::string& container, TaskEnd end,
                                          ExecHandlers handlers);

}  // namespace muster::engine
