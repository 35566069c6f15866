// cp, port-forward, artifacts: what goes into tasks and comes out of them.

#include "cli/command_parts.h"

namespace muster::cli {

namespace {

constexpr const char* kWhichTask = "of this task; else of the one that decides how the job ends";

Command copy() {
  return {.name = "cp",
          .help = "copy files out of a task of a running job, or into it",
          .positionals = {.name = "FROM... TO", .most = kAnyNumber, .offer = Offer::kFiles},
          .flags = task_flag(kWhichTask) + whose_job_flag(),
          .example = "muster cp dist:/data/model.pt . && muster cp config.yaml dist/worker-1:"};
}

Command port_forward() {
  return {
      .name = "port-forward",
      .help = "reach ports of a task as if they were of this machine",
      .positionals = {.name = "NAME [LOCAL:]PORT...", .most = kAnyNumber, .offer = Offer::kJobs},
      .flags = task_flag(kWhichTask) +
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
