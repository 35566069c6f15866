// muster-shim --run FOLDER and --attach FOLDER: a program beside the task's own, and the input and
// output of the task's own one, for whoever is elsewhere and has this process's standard input and
// output alone (run_wire.h). Started in the task: by the exec of its container.
//
// --run is the near end of what exec.h runs, as the engine is where a task is a process of its own
// machine.
#pragma once

namespace muster::engine {

/// An exit code; how the program ended is told in a message.
int run_beside(const char* task_folder);
int run_attach(const char* task_folder);

}  // namespace muster::engine
