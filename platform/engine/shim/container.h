// muster-shim --container FOLDER: process 1 of a container. It is the outer half of the task in
// FOLDER, tells on its standard output what becomes of it (follow_wire.h), and takes in the orphans
// of all that is run in the container.
//
// When the task has ended it stays: the container, and with it whoever reads, would be gone
// otherwise. SIGTERM and SIGQUIT then end it, at once, but for what is being told still.
#pragma once

namespace muster::engine {

/// Returns an exit code.
int run_container(const char* task_folder);

}  // namespace muster::engine
