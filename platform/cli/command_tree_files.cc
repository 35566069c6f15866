// cp, port-forward, artifacts: what goes into tasks and comes out of them.
#include <limits>

#include "cli/command_parts.h"

namespace muster::cli {

namespace {

constexpr size_t kAny = std::numeric_limits<size_t>::max();

Flags task_flag() {
  return {{.name = "--task",
           .value = "TASK",
           .help = "of this task; else of the one that decides how the job ends"}};
}

Command copy() {
  return {.name = "cp",
          .help = "copy files out of a task of a running job, or into it",
          .positionals = {.name = "FROM... TO", .most = kAny, .offer = Offer::kFiles},
          .flags = task_flag() + whose_job_flag(),
          .example = "muster cp dist:/data/model.pt . && muster cp config.yaml dist/worker-1:"};
}

Command port_forward() {
  return {.name = "port-forward",
          .help = "reach ports of a task as if they were of this machine",
          .positionals = {.name = "NAME [LOCAL:]PORT...", .most = kAny, .offer = Offer::kJobs},
          .flags = task_flag() +
                   Flags{{.name = "--address",
                          .value = "ADDRESS",
                          .help = "listen there (default: 127.0.0.1, for this machine alone)"}} +
                   whose_job_flag(),
          .example = "muster port-forward dist 8080:8888"};
}

}  // namespace

std::vector<Command> commands_on_files() {
  return {copy(), port_forward(), artifacts()};
}

}  // namespace muster::cli
