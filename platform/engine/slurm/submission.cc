#include "engine/slurm/submission.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json_text.h"
#include "base/text.h"
#include "engine/slurm/slurm_words.h"
#include "job/checker.h"
#include "job/project.h"
#include "job/validate.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Fault;
using base::Result;

namespace {

constexpr int64_t kMilli = 1000;
/// For Slurm's own work before a task starts and after it has ended.
constexpr std::chrono::minutes kSpareTime{1};

std::string account_for(const AllocationRequest& request, const SlurmEngineOptions& options) {
  if (!request.slurm.account.empty()) return request.slurm.account;
  return job::slurm_account_of(request.project, options.accounts, options.default_account);
}

/// A job's pools and models may have characters that Slurm's names may not: a comma or a colon
/// would request another partition, or more GPUs.
void find_strange_names(const AllocationRequest& request, std::vector<Fault>& faults) {
  const auto look = [&](const std::vector<std::string>& names, const char* field,
                        const char* noun) {
    for (const std::string& name : names) {
      const bool is_plain = job::is_slurm_name(name) && name.find(':') == std::string::npos;
      if (is_plain) continue;
      faults.push_back({.field = field,
                        .what = base::in_quotes(name) + " is not a valid name of a " + noun +
                                " in Slurm: use letters, digits and _-.+@"});
    }
  };
  if (request.slurm.partition.empty()) look(request.node_pools, "node pools", "partition");
  look(request.gpu_models, "gpu models", "type of GPUs");
}

void find_faults(const TaskRequest& task, std::vector<Fault>& faults) {
  const job::Resources& needs = task.resources;
  if (needs.gpu_share_milli == 0 && needs.gpu_memory_bytes == 0) return;
  faults.push_back(
      {.field = task.task,
       .what = "requests a part of a GPU, but Slurm allocates whole GPUs: use --gpus 1"});
}

/// A task that requests nothing while others do; or, if no task requests anything, a mere launcher.
bool is_guest(const AllocationRequest& request, const TaskRequest& task) {
  const job::Resources nothing;
  if (task.resources != nothing) return false;
  return std::any_of(request.tasks.begin(), request.tasks.end(), [&](const TaskRequest& other) {
    return other.resources != nothing || (task.only_launches && !other.only_launches);
  });
}

Component component_of(const job::Resources& needs, int tasks_per_node, const std::string& model) {
  Component component{.tasks_per_node = std::max(tasks_per_node, 1), .gpu_type = {}};
  component.cpus_per_task = static_cast<int>((needs.cpu_milli + kMilli - 1) / kMilli);
  component.gpus_per_node = needs.gpus;
  component.memory_bytes_per_node = needs.memory_bytes;
  if (needs.gpus > 0) component.gpu_type = model;
  return component;
}

/// A node's memory and GPUs are those of its tasks, which may be fewer than fit on it.
void settle(Component& component) {
  component.tasks_per_node = std::min(component.tasks_per_node, component.tasks);
  component.gpus_per_node *= component.tasks_per_node;
  component.memory_bytes_per_node *= component.tasks_per_node;
}

std::vector<Component> components_for(const AllocationRequest& request, int tasks_per_node) {
  const std::string model = request.gpu_models.empty() ? "" : request.gpu_models.front();
  std::vector<Component> components;
  const std::vector<Seat> seats = seats_for(request);
  for (size_t i = 0; i < seats.size(); ++i) {
    if (is_guest(request, request.tasks[i])) continue;
    if (static_cast<size_t>(seats[i].component) == components.size()) {
      components.push_back(component_of(request.tasks[i].resources, tasks_per_node, model));
    }
    ++components.back().tasks;
    if (!request.tasks[i].may_be_missing) ++components.back().least_tasks;
  }
  for (Component& component : components) {
    if (component.least_tasks == component.tasks) component.least_tasks = 0;
    settle(component);
  }
  return components;
}

}  // namespace

std::vector<Seat> seats_for(const AllocationRequest& request) {
  std::vector<Seat> seats;
  const job::Resources* before = nullptr;
  int component = -1;
  int index = 0;
  for (const TaskRequest& task : request.tasks) {
    const bool guest = is_guest(request, task);
    if (!guest && (before == nullptr || task.resources != *before)) {
      before = &task.resources;
      ++component;
      index = 0;
    }
    seats.push_back({.task = task.task,
                     .component = guest ? -1 : component,
                     .index = guest ? 0 : index++,
                     .gpus = task.resources.gpus,
                     .may_be_missing = task.may_be_missing,
                     .node = {},
                     .address = {}});
  }
  int guests = 0;
  for (Seat& seat : seats) {
    if (seat.component >= 0) continue;
    seat.component = component + 1;
    seat.index = guests++;
  }
  return seats;
}

int guests_of(const AllocationRequest& request) {
  return static_cast<int>(
      std::count_if(request.tasks.begin(), request.tasks.end(),
                    [&](const TaskRequest& task) { return is_guest(request, task); }));
}

Result<Submission> submission_for(const AllocationRequest& request,
                                  const SlurmEngineOptions& options) {
  std::vector<Fault> faults;
  find_strange_names(request, faults);
  bool needs_gpus = false;
  for (const TaskRequest& task : request.tasks) {
    find_faults(task, faults);
    needs_gpus = needs_gpus || task.resources.gpus > 0;
  }
  if (needs_gpus && request.gpu_models.size() > 1) {
    faults.push_back({.field = "gpu models",
                      .what = "a Slurm job can request one model of GPUs, not any of " +
                              base::joined(request.gpu_models, ",") +
                              ": name one, or the nodes' features by --slurm-constraint"});
  }
  if (!faults.empty()) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "Slurm cannot provide what the job requests",
                 .faults = std::move(faults)};
  }
  Submission submission{.name = request.job,
                        .comment = {},
                        .script = {},
                        .components = components_for(request, options.tasks_per_node)};
  submission.partition = request.slurm.partition.empty() ? base::joined(request.node_pools, ",")
                                                         : request.slurm.partition;
  submission.account = account_for(request, options);
  submission.qos = request.slurm.qos.empty() ? options.qos : request.slurm.qos;
  submission.reservation = request.slurm.reservation;
  submission.constraint = request.slurm.constraint;
  submission.excluded_nodes = request.avoided_nodes;
  submission.options = options.sbatch_options;
  if (request.time_limit) {
    submission.time_limit =
        std::chrono::ceil<std::chrono::minutes>(*request.time_limit + request.grace) + kSpareTime;
  }
  return submission;
}

std::string shape_of(const Submission& submission) {
  nlohmann::json components = nlohmann::json::array();
  for (const Component& each : submission.components) {
    components.push_back({each.tasks, each.least_tasks, each.tasks_per_node, each.cpus_per_task,
                          each.memory_bytes_per_node, each.gpus_per_node, each.gpu_type});
  }
  return base::json_text(
      nlohmann::json{components, submission.partition, submission.account, submission.qos,
                     submission.reservation, submission.constraint, submission.excluded_nodes,
                     submission.time_limit.value_or(std::chrono::minutes(0)).count()});
}

std::string comment_for(const std::string& owner, const GangId& gang) {
  return "muster:" + owner + ":" + gang.job_id + ":" + std::to_string(gang.attempt);
}

bool is_comment_of(const std::string& owner, const std::string& comment) {
  return comment.starts_with("muster:" + owner + ":");
}

bool is_comment_of(const std::string& owner, const std::string& job_id,
                   const std::string& comment) {
  return comment.starts_with("muster:" + owner + ":" + job_id + ":");
}

namespace {

/// Ends a here-document. A brief never contains it: it is one line that begins with a brace.
constexpr const char* kHereDocumentEnd = "MUSTER";

/// The end of one task, however it ended, must not end the others. Ranks that srun starts are in a
/// step of their own.
constexpr const char* kStep =
    "srun --kill-on-bad-exit=0 --wait=0 --mpi=none --export=ALL --input=all";

/// srun's own message for a missing program does not name the node.
constexpr const char* kRun =
    R"(/bin/sh -c 'test -x "$0" || { echo "$0 is not on $SLURMD_NODENAME, or cannot be executed" >&2; exit 127; }; exec "$0" "$@"')";

/// Slurm's SIGTERM is for the tasks: the script waits until they have ended.
constexpr const char* kAwait =
    "await() { while :; do wait \"$1\"; code=$?; kill -0 \"$1\" 2>/dev/null || return \"$code\"; "
    "done; }\nlast=0\n";

std::string step_options(const Component& component) {
  std::string options;
  // A component with a minimum has as many tasks as the allocated nodes hold.
  if (component.least_tasks == 0) options += " --ntasks=" + std::to_string(component.tasks);
  // srun does not inherit this from the batch job.
  if (component.cpus_per_task > 0) {
    options += " --cpus-per-task=" + std::to_string(component.cpus_per_task);
  }
  return options;
}

/// With these variables, srun would request the job's GPUs, and reject a step without GPUs.
constexpr const char* kForget = "env -u SLURM_GPUS_PER_NODE -u SLURM_TRES_PER_NODE ";

std::string guest_options(int guests) {
  return " --overlap --nodes=1 --relative=0 --ntasks=" + std::to_string(guests) +
         " --ntasks-per-node=" + std::to_string(guests) + " --cpus-per-task=1 --mem=0 --gres=none";
}

}  // namespace

std::string node_script(const node::NodeBrief& brief, const std::vector<Component>& components,
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

namespace {

int nodes_for(int tasks, const Component& component) {
  const int on_each = std::max(component.tasks_per_node, 1);
  return (tasks + on_each - 1) / on_each;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; });
}

/// Quotes a value for sbatch: in double quotes, a backslash escapes the next character.
std::string quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

/// Slurm replaces patterns that begin with a per cent sign.
std::string plain_path(std::string_view path) {
  std::string text;
  for (const char c : path) text += c == '%' ? "%%" : std::string(1, c);
  return text;
}

class Lines {
 public:
  void flag(std::string_view option) { (text_ += "#SBATCH --").append(option) += '\n'; }
  void number(std::string_view option, int64_t value) {
    flag(std::string(option) + "=" + std::to_string(value));
  }
  /// Adds nothing if the value is empty: Slurm's default applies.
  void value(std::string_view option, std::string_view value) {
    if (!value.empty()) flag(std::string(option) + "=" + quoted(value));
  }
  void raw(std::string_view line) { (text_ += line) += '\n'; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_size(const Component& component, Lines& lines) {
  const int most = most_nodes(component);
  const int least = least_nodes(component);
  lines.flag("nodes=" + (least == most ? "" : std::to_string(least) + "-") + std::to_string(most));
  // With a number of tasks, Slurm would require all of the nodes.
  if (least == most) lines.number("ntasks", component.tasks);
  lines.number("ntasks-per-node", component.tasks_per_node);
  if (component.cpus_per_task > 0) lines.number("cpus-per-task", component.cpus_per_task);
  if (component.memory_bytes_per_node > 0) {
    lines.flag("mem=" +
               std::to_string((component.memory_bytes_per_node + kMebibyte - 1) / kMebibyte) + "M");
  }
  if (component.gpus_per_node > 0) {
    const std::string type = component.gpu_type.empty() ? "" : component.gpu_type + ":";
    lines.value("gpus-per-node", type + std::to_string(component.gpus_per_node));
  }
}

/// Options that every component of a heterogeneous job repeats.
void add_place(const Submission& submission, Lines& lines) {
  lines.value("job-name", submission.name);
  lines.value("comment", submission.comment);
  lines.value("partition", submission.partition);
  lines.value("account", submission.account);
  lines.value("qos", submission.qos);
  lines.value("reservation", submission.reservation);
  lines.value("constraint", submission.constraint);
  lines.value("exclude", base::joined(submission.excluded_nodes, ","));
  if (submission.time_limit) lines.number("time", submission.time_limit->count());
  // If Slurm takes the nodes away, the job is queued again and keeps its place in the queue.
  lines.flag("requeue");
  for (const std::string& option : submission.options) lines.raw("#SBATCH " + option);
}

void add_script(const Submission& submission, Lines& lines) {
  lines.value("chdir", submission.folder);
  lines.value("output", plain_path(submission.output));
  lines.flag("open-mode=append");
  // With any other value, Slurm runs a login shell on the node for its variables.
  lines.flag("export=ALL");
}

class Checker {
 public:
  void text(const std::string& field, std::string_view value) {
    if (has_control(value)) fault(field, "contains a line break or another control character");
  }
  void at_least(const std::string& field, int64_t value, int64_t least) {
    if (value < least) {
      fault(field, "is " + std::to_string(value) + ", and is at least " + std::to_string(least));
    }
  }
  void fault(const std::string& field, std::string what) {
    faults_.push_back({.field = field, .what = std::move(what)});
  }
  std::vector<Fault> take() { return std::move(faults_); }

 private:
  std::vector<Fault> faults_;
};

bool is_variable(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

void check_component(const Component& component, size_t number, Checker& check) {
  const std::string field = "components[" + std::to_string(number) + "].";
  check.at_least(field + "tasks", component.tasks, 1);
  check.at_least(field + "tasks_per_node", component.tasks_per_node, 1);
  check.at_least(field + "cpus_per_task", component.cpus_per_task, 0);
  check.at_least(field + "gpus_per_node", component.gpus_per_node, 0);
  check.at_least(field + "memory_bytes_per_node", component.memory_bytes_per_node, 0);
  check.text(field + "gpu_type", component.gpu_type);
  if (component.least_tasks < 0 || component.least_tasks > component.tasks) {
    check.fault(field + "least_tasks", "is not between 0 and the number of tasks");
  }
}

void check_script(const Submission& submission, Checker& check) {
  if (!submission.script.starts_with("#!") || submission.script.find('\n') == std::string::npos) {
    check.fault("script", "does not begin with a line such as #!/bin/sh");
  }
  if (submission.script.find('\0') != std::string::npos)
    check.fault("script", "contains a NUL byte");
  check.text("folder", submission.folder);
  check.text("output", submission.output);
  // A backslash would escape the next character of the path.
  if (submission.output.find('\\') != std::string::npos) {
    check.fault("output", "contains a backslash, which Slurm does not accept in such a path");
  }
  for (const auto& [name, value] : submission.environment) {
    if (!is_variable(name))
      check.fault("environment", "'" + name + "' is not the name of a variable");
    if (value.find('\0') != std::string::npos)
      check.fault("environment", name + " contains a NUL byte");
  }
}

std::vector<Fault> faults_of(const Submission& submission) {
  Checker check;
  check.text("name", submission.name);
  check.text("comment", submission.comment);
  check.text("partition", submission.partition);
  check.text("account", submission.account);
  check.text("qos", submission.qos);
  check.text("reservation", submission.reservation);
  check.text("constraint", submission.constraint);
  for (const std::string& node : submission.excluded_nodes) check.text("excluded_nodes", node);
  for (const std::string& option : submission.options) {
    check.text("options", option);
    if (!option.starts_with('-')) {
      check.fault("options",
                  "'" + option + "' is not an option of sbatch: it does not begin with '-'");
    }
  }
  if (submission.components.empty()) check.fault("components", "are missing");
  for (size_t i = 0; i < submission.components.size(); ++i) {
    check_component(submission.components[i], i, check);
  }
  check_script(submission, check);
  return check.take();
}

}  // namespace

int most_nodes(const Component& component) {
  return nodes_for(component.tasks, component);
}

int least_nodes(const Component& component) {
  return component.least_tasks == 0 ? most_nodes(component)
                                    : nodes_for(component.least_tasks, component);
}

Result<std::string> batch_script(const Submission& submission) {
  if (std::vector<Fault> faults = faults_of(submission); !faults.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the job cannot be submitted to Slurm",
                 .faults = std::move(faults)};
  }
  Lines lines;
  add_script(submission, lines);
  for (size_t i = 0; i < submission.components.size(); ++i) {
    if (i > 0) lines.raw("#SBATCH hetjob");
    add_place(submission, lines);
    add_size(submission.components[i], lines);
  }
  const size_t first_line = submission.script.find('\n') + 1;
  return submission.script.substr(0, first_line) + lines.take() +
         submission.script.substr(first_line);
}

}  // namespace muster::engine::slurm
