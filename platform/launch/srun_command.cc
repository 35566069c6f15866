#include "launch/srun_command.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.h"
#include "launch/mpirun_command.h"

namespace muster::launch {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// The step's name, by which it is found among the steps of the Slurm job.
constexpr const char* kStepName = "muster-ranks";

int ranks_of(const std::vector<SrunHost>& hosts) {
  int ranks = 0;
  for (const SrunHost& host : hosts) ranks += host.slots;
  return ranks;
}

size_t nodes_of(const std::vector<SrunHost>& hosts) {
  std::set<std::string_view> nodes;
  for (const SrunHost& host : hosts) nodes.insert(host.node);
  return nodes.size();
}

/// "worker-0=2,worker-1=2".
std::string tasks_of(const std::vector<SrunHost>& hosts) {
  std::string text;
  for (const SrunHost& host : hosts) {
    text += (text.empty() ? "" : ",") + host.task + "=" + std::to_string(host.slots);
  }
  return text;
}

}  // namespace

bool is_own_srun(const std::vector<std::string>& program) {
  return !program.empty() && is_file_named(program.front(), "srun");
}

Result<void> check_srun_program(const std::vector<std::string>& program) {
  if (program.empty()) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "--launch srun requires a command, which each rank runs"};
  }
  const auto launcher = launcher_of(program);
  if (!launcher || is_own_srun(program)) return {};
  return Error{.code = ErrorCode::kRefused,
               .what = "with --launch srun the command is what each rank runs, and '" +
                       base::shell_joined(program) + "' calls " + *launcher +
                       ", which starts ranks itself",
               .advice = "leave " + *launcher +
                         " and its options out (--workers and --slots-per-worker set the number of "
                         "ranks), or use --launch agent"};
}

std::vector<std::string> srun_command(const SrunSite& site, const std::vector<SrunHost>& hosts,
                                      const std::vector<std::string>& program) {
  std::vector<std::string> command{
      site.folder + "/" + kSrunScript, site.srun, "--mpi=pmix",
      "--job-name=" + std::string(kStepName),
      // The step shares the resources of the step in which the tasks run.
      "--overlap",
      // The number of ranks is limited by slots, not by Slurm's count of CPUs.
      "--overcommit", "--nodes=" + std::to_string(nodes_of(hosts)),
      "--ntasks=" + std::to_string(ranks_of(hosts)), "--distribution=arbitrary",
      "--nodelist=" + site.folder + "/" + kSrunNodesFile,
      // As with mpirun: a rank that fails ends all ranks, a rank that has ended waits for the
      // others, and rank 0 reads standard input.
      "--kill-on-bad-exit=1", "--wait=0", "--input=0",
      // A rank uses the folder and variables of its task, not of the launcher.
      "--chdir=/", "--export=" + std::string(kAttemptFolder), site.joiner, "--join",
      tasks_of(hosts)};
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

PlannedFile srun_script() {
  std::string script =
      "#!/bin/sh\n"
      "# A signal would make srun end its step at once. Signalling the ranks instead leaves them "
      "their grace period.\n"
      "slurm=${1%/*}\n"
      "tell() {\n"
      "  \"$slurm/squeue\" --noheader --steps --jobs=\"$SLURM_JOB_ID\" --format='%i %j' |\n"
      "    while read -r step name; do\n"
      "      [ \"$name\" != ";
  script += kStepName;
  script +=
      " ] || \"$slurm/scancel\" --signal=TERM \"$step\"\n"
      "    done\n"
      "}\n"
      "trap tell TERM\n"
      "setsid \"$@\" <&0 &\n"
      "srun=$!\n"
      "while :; do\n"
      "  wait \"$srun\"\n"
      "  code=$?\n"
      "  kill -0 \"$srun\" 2>/dev/null || exit \"$code\"\n"
      "done\n";
  return {.path = kSrunScript, .content = std::move(script), .mode = 0700};
}

PlannedFile srun_nodes_file(const std::vector<SrunHost>& hosts) {
  std::string lines;
  for (const SrunHost& host : hosts) {
    for (int slot = 0; slot < host.slots; ++slot) lines += host.node + "\n";
  }
  return {.path = kSrunNodesFile, .content = std::move(lines)};
}

}  // namespace muster::launch
