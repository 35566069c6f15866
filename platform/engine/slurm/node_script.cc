#include "engine/slurm/node_script.h"

#include <array>

#include "base/text.h"

namespace muster::engine::slurm {

namespace {

/// Ends what a here-document holds; a brief is one line that begins with a brace.
constexpr const char* kHereDocumentEnd = "MUSTER";

/// The end of one task is not the end of the others, however it ended and however long ago; ranks
/// have a step of their own where Slurm starts them.
constexpr const char* kStep =
    "srun --kill-on-bad-exit=0 --wait=0 --mpi=none --export=ALL --input=all";

/// srun's own words for a program that is not there do not say where.
constexpr const char* kRun =
    R"(/bin/sh -c 'test -x "$0" || { echo "$0 is not on $SLURMD_NODENAME, or cannot be executed" >&2; exit 127; }; exec "$0" "$@"')";

/// Slurm's SIGTERM is for the tasks: the script stays until they have gone.
constexpr const char* kAwait =
    "await() { while :; do wait \"$1\"; code=$?; kill -0 \"$1\" 2>/dev/null || return \"$code\"; "
    "done; }\nlast=0\n";

std::string step_options(const Component& component) {
  std::string options;
  // Where there may be fewer tasks than wished for, there is one for each of the nodes that came.
  if (component.least_tasks == 0) options += " --ntasks=" + std::to_string(component.tasks);
  // srun does not take it over from the batch job.
  if (component.cpus_per_task > 0) {
    options += " --cpus-per-task=" + std::to_string(component.cpus_per_task);
  }
  return options;
}

/// By these srun asks for the GPUs that the job has on each node, and then refuses to do without.
constexpr const char* kForget = "env -u SLURM_GPUS_PER_NODE -u SLURM_TRES_PER_NODE ";

std::string guest_options(int guests) {
  return " --overlap --nodes=1 --relative=0 --ntasks=" + std::to_string(guests) +
         " --ntasks-per-node=" + std::to_string(guests) + " --cpus-per-task=1 --mem=0 --gres=none";
}

}  // namespace

std::string node_script(const NodeBrief& brief, const std::vector<Component>& components,
                        int guests, const std::string& programs, const std::string& folder) {
  std::string script =
      "#!/bin/sh\n# An attempt of a job of Muster: each task of these steps calls its server "
      "back.\numask 077\n";
  if (!folder.empty()) {
    script += "if [ -w " + base::shell_quoted(folder) + " ]; then exec >>" +
              base::shell_quoted(folder + "/" + kScriptOutput) + " 2>&1; fi\n";
  }
  script += "trap : TERM\n";
  script += kAwait;
  std::vector<std::string> steps;
  for (const Component& component : components) steps.push_back(step_options(component));
  if (guests > 0) steps.push_back(guest_options(guests));
  std::string waits;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string number = std::to_string(i);
    if (i >= components.size()) script += kForget;
    script += kStep + steps[i];
    const size_t group = i < components.size() ? i : 0;
    if (components.size() > 1) script += " --het-group=" + std::to_string(group);
    script += std::string(" ") + kRun + " " + base::shell_quoted(programs + "/muster-node") +
              " --component " + number + " <<'" + kHereDocumentEnd + "' &\n" + encode(brief) +
              kHereDocumentEnd + "\n";
    script += "step" + number + "=$!\n";
    waits += "await \"$step" + number + "\" || last=$?\n";
  }
  return script + waits + "exit \"$last\"\n";
}

std::map<std::string, std::string> script_environment(const std::vector<std::string>& own) {
  static constexpr std::array kNames{"PATH", "HOME",  "USER", "LOGNAME",
                                     "LANG", "SHELL", "TZ",   "SLURM_CONF"};
  std::map<std::string, std::string> environment{{"PATH", "/usr/local/bin:/usr/bin:/bin"}};
  for (const std::string& variable : own) {
    const size_t sign = variable.find('=');
    for (const char* const name : kNames) {
      if (variable.substr(0, sign) == name) environment[name] = variable.substr(sign + 1);
    }
  }
  return environment;
}

}  // namespace muster::engine::slurm
