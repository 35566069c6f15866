// The notation, from the outside in: lines, fields of a line, entries of a field, words of an
// entry. Each level has one function, which answers with the sentence that a person needs when the
// text is something else.

#include "simulate/scenarios.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "job/spec.h"

namespace muster::simulate {

using base::Error;
using base::ErrorCode;
using base::Result;
using job::kFirstNonPreemptiblePriority;
using schedule::kUnlimited;
using namespace notation;  // NOLINT: it is this file's language

namespace {

struct StateName {
  TaskState state;
  std::string_view name;
};

constexpr std::array<StateName, 6> kStates{{{TaskState::kPending, "Pending"},
                                            {TaskState::kRunning, "Running"},
                                            {TaskState::kBinding, "Binding"},
                                            {TaskState::kPipelined, "Pipelined"},
                                            {TaskState::kReleasing, "Releasing"},
                                            {TaskState::kFailed, "Failed"}}};

// The amount of a node for which the scenario names none: too large to matter for any task, and too
// small for an overflow of the sum over a million nodes.
constexpr int64_t kUnstatedCpuMilli = 1'000'000'000;
constexpr int64_t kUnstatedMemoryBytes = 1'000'000'000'000;
/// The claim of a task without a CPU number where nodes count their CPUs: upstream's default.
constexpr int64_t kCpuMilliOfASilentTask = 1000;
constexpr int kMostScenarioTasks = 10'000;

// --- nodes ---

/// "node0:4G", "node0:4G+CPUMillis=5000", "node-1".
Result<schedule::Node> parse_node(std::string_view text) {
  schedule::Node node{.cpu_milli = kUnstatedCpuMilli, .memory_bytes = kUnstatedMemoryBytes};
  const auto named = cut(text, ":");
  node.name = named ? named->first : text;
  if (node.name.empty()) return fault("a node has no name");
  if (!named) return node;
  for (std::string_view part : parts_of(named->second, "+")) {
    if (take_prefix(part, "CPUMillis=")) {
      MUSTER_TRY(node.cpu_milli, whole(part, kUnstatedCpuMilli));
    } else if (take_prefix(part, "CPUMemory=")) {
      MUSTER_TRY(node.memory_bytes, whole(part, kUnstatedMemoryBytes));
    } else if (take_suffix(part, "G")) {
      MUSTER_TRY(const int64_t gpus, whole(part, schedule::kMaxGpusPerNode));
      node.gpus = static_cast<int>(gpus);
    } else {
      return fault("node " + single_quoted(node.name) + " has " + single_quoted(part) +
                   ", which has none of the forms 4G, CPUMillis=4000, CPUMemory=1000000");
    }
  }
  return node;
}

// --- queues ---

/// A quota or limit: -1 is no bound.
Result<int64_t> bound(std::string_view text, int64_t factor) {
  if (text == "-1") return kUnlimited;
  MUSTER_TRY(const int64_t milli, thousandths(text));
  return milli * factor / 1000;
}

Result<void> set_trait(schedule::Project& project, std::string_view key, std::string_view value,
                       bool& weighed) {
  schedule::Quota& quota = project.quota;
  if (key == "des") {
    MUSTER_TRY(quota.deserved.gpu_milli, bound(value, schedule::kWholeGpu));
  } else if (key == "max") {
    MUSTER_TRY(quota.limit.gpu_milli, bound(value, schedule::kWholeGpu));
  } else if (key == "desCPU") {
    MUSTER_TRY(quota.deserved.cpu_milli, bound(value, 1));
  } else if (key == "maxCPU") {
    MUSTER_TRY(quota.limit.cpu_milli, bound(value, 1));
  } else if (key == "w") {
    MUSTER_TRY(const int64_t milli, thousandths(value));
    quota.weight = static_cast<double>(milli) / 1000;
    weighed = true;
  } else if (key == "prio") {
    MUSTER_TRY(project.priority, sum(value));
  } else if (key == "parent") {
    project.parent = value;
  } else {
    return fault("queue " + single_quoted(project.name) + " has " + single_quoted(key) +
                 ", which is not one of des, w, max, prio, parent, desCPU, maxCPU");
  }
  return {};
}

/// "queue0(des=2,w=1,parent=dep)".
Result<schedule::Project> parse_queue(std::string_view text, bool department) {
  schedule::Project project;
  project.quota.weight = 0;
  const auto named = cut(text, "(");
  project.name = named ? named->first : text;
  if (project.name.empty()) return fault("a queue has no name");
  bool weighed = false;
  if (named) {
    std::string_view traits = named->second;
    if (!take_suffix(traits, ")"))
      return fault("queue " + single_quoted(project.name) + " has no closing bracket");
    for (std::string_view trait : parts_of(traits, ",")) {
      const auto pair = cut(trait, "=");
      if (!pair)
        return fault("queue " + single_quoted(project.name) + " has " + single_quoted(trait));
      MUSTER_CHECK(set_trait(project, pair->first, pair->second, weighed));
    }
  }
  const int64_t deserved = project.quota.deserved.gpu_milli;
  if (department && !weighed && deserved != kUnlimited)
    project.quota.weight = static_cast<double>(deserved) / schedule::kWholeGpu;
  return project;
}

// --- jobs ---

struct PriorityName {
  std::string_view name;
  int value;
};

// If one name is the beginning of another, the longer name comes first.
constexpr std::array<PriorityName, 4> kPriorities{
    {{"train", 50}, {"build-preempt", 75}, {"build", 100}, {"inference", 125}}};

/// "train", "build-preempt", "train-1".
Result<int> parse_priority(std::string_view text) {
  for (const PriorityName& priority : kPriorities) {
    std::string_view rest = text;
    if (!take_prefix(rest, priority.name)) continue;
    if (rest.empty()) return priority.value;
    if (rest[0] == '-' || rest[0] == '+')
      return sum(std::to_string(priority.value) + std::string(rest));
  }
  return fault(single_quoted(text) +
               " is not one of the priorities train, build-preempt, build, inference");
}

/// "1G+2000mCPU", "0G+2mCPU+50000000B mem", "0.5G".
Result<schedule::Claim> parse_claim(std::string_view text) {
  schedule::Claim claim;
  for (std::string_view part : parts_of(text, "+")) {
    if (take_suffix(part, "mCPU")) {
      MUSTER_TRY(claim.cpu_milli, whole(part, kUnstatedCpuMilli));
    } else if (take_suffix(part, "B mem")) {
      MUSTER_TRY(claim.memory_bytes, whole(part, kUnstatedMemoryBytes));
    } else if (take_suffix(part, "G")) {
      MUSTER_TRY(const int64_t milli, thousandths(part));
      if (milli > schedule::kWholeGpu && milli % schedule::kWholeGpu != 0)
        return fault(single_quoted(part) + " GPUs: give a whole number or a fraction of one GPU");
      const auto& [whole_ones, part_of_one] = std::div(milli, int64_t{schedule::kWholeGpu});
      claim.gpus = static_cast<int>(std::min<int64_t>(whole_ones, schedule::kMaxGpusPerNode + 1));
      claim.gpu_share_milli = static_cast<int>(part_of_one);
    } else {
      return fault(single_quoted(part) + " has none of the forms 1G, 500mCPU, 1000B mem");
    }
  }
  return claim;
}

/// "1G x3 min=1".
Result<schedule::TaskGroup> parse_size(std::string_view text) {
  schedule::TaskGroup group;
  std::string_view count = text;
  std::string_view minimum;
  if (const auto parts = cut(text, "min=")) std::tie(count, minimum) = *parts;
  const size_t times = count.rfind(" x");
  if (times == std::string_view::npos)
    return fault(single_quoted(text) + " has no number of tasks");
  MUSTER_TRY(group.claim, parse_claim(trimmed(count.substr(0, times))));
  MUSTER_TRY(const int64_t tasks, whole(trimmed(count.substr(times + 2)), kMostScenarioTasks));
  if (tasks == 0) return fault(single_quoted(text) + " has no tasks");
  group.count = static_cast<int>(tasks);
  group.minimum = group.count;
  if (!minimum.empty()) {
    MUSTER_TRY(const int64_t least, whole(minimum, tasks));
    group.minimum = static_cast<int>(least);
  }
  return group;
}

/// "Running@node0", "Pending", "Pending@".
Result<TaskView> parse_view(std::string_view text) {
  TaskView view;
  std::string_view name = text;
  std::string_view node;
  if (const auto parts = cut(text, "@")) std::tie(name, node) = *parts;
  const auto state = task_state_of(name);
  if (!state) return fault(single_quoted(name) + " is not a task state");
  view.state = *state;
  // Upstream's tests name a node even for tasks that do not run.
  if (*state != TaskState::kPending) view.node = node;
  return view;
}

/// "2xRunning@node0 1xPending".
Result<std::vector<TaskView>> parse_states(std::string_view text) {
  std::vector<TaskView> tasks;
  for (std::string_view part : parts_of(text, " ")) {
    const auto pair = cut(part, "x");
    if (!pair) return fault(single_quoted(part) + " is not written 1xPending");
    MUSTER_TRY(const int64_t count, whole(pair->first, kMostScenarioTasks));
    MUSTER_TRY(const TaskView view, parse_view(pair->second));
    tasks.insert(tasks.end(), static_cast<size_t>(count), view);
  }
  return tasks;
}

/// "name[queue,train,1G x2]{2xPending}".
Result<ScenarioJob> parse_job(std::string_view text) {
  const auto named = cut(text, "[");
  const auto inner = named ? cut(named->second, "]{") : std::nullopt;
  if (!inner || !inner->second.ends_with('}'))
    return fault("job " + single_quoted(text) +
                 " is not written name[queue,priority,1G x1]{1xPending}");
  ScenarioJob job;
  job.gang.id = job.gang.name = named->first;
  const auto traits = parts_of(inner->first, ",");
  if (traits.size() != 3)
    return fault("job " + single_quoted(named->first) + " has not three entries in its brackets");
  job.gang.project = traits[0];
  MUSTER_TRY(job.gang.priority, parse_priority(traits[1]));
  job.gang.preemptible = job.gang.priority < kFirstNonPreemptiblePriority;
  MUSTER_TRY(const schedule::TaskGroup group, parse_size(traits[2]));
  job.gang.groups = {group};
  MUSTER_TRY(job.tasks, parse_states(inner->second.substr(0, inner->second.size() - 1)));
  if (job.tasks.size() != static_cast<size_t>(group.count))
    return fault("job " + single_quoted(named->first) + " has " + std::to_string(group.count) +
                 " tasks and the states of " + std::to_string(job.tasks.size()));
  return job;
}

// --- expectations ---

const ScenarioJob* find_job(const Scenario& scenario, std::string_view name) {
  const auto found = std::find_if(scenario.jobs.begin(), scenario.jobs.end(),
                                  [&](const ScenarioJob& job) { return job.gang.name == name; });
  return found == scenario.jobs.end() ? nullptr : &*found;
}

/// "job=Running@node0", or "job-1=Running" for its second task. The name of a job takes precedence:
/// 'job-1' is a job if a job has that name.
Result<Expectation> parse_expectation(const Scenario& scenario, std::string_view text) {
  const auto pair = cut(text, "=");
  if (!pair) return fault(single_quoted(text) + " is not written job=Running@node0");
  Expectation expectation;
  MUSTER_TRY(expectation.view, parse_view(pair->second));
  std::string_view name = pair->first;
  if (!find_job(scenario, name)) {
    const size_t dash = name.rfind('-');
    const ScenarioJob* job =
        dash == std::string_view::npos ? nullptr : find_job(scenario, name.substr(0, dash));
    if (!job)
      return fault("the scenario expects a result of " + single_quoted(name) +
                   ", which is not a job");
    MUSTER_TRY(const int64_t task, whole(name.substr(dash + 1), kMostScenarioTasks));
    if (task >= static_cast<int64_t>(job->tasks.size()))
      return fault("the scenario expects a result of " + single_quoted(name) +
                   ", but its job has " + std::to_string(job->tasks.size()) + " tasks");
    expectation.task = static_cast<int>(task);
    name = name.substr(0, dash);
  }
  expectation.job = name;
  return expectation;
}

// --- fields and lines ---

Result<void> read_nodes(Scenario& scenario, std::string_view text) {
  for (std::string_view part : parts_of(text, ";")) {
    MUSTER_TRY(schedule::Node node, parse_node(part));
    scenario.nodes.push_back(std::move(node));
  }
  return {};
}

Result<void> read_queues(Scenario& scenario, std::string_view text, bool departments) {
  for (std::string_view part : outer_parts_of(text, ';')) {
    MUSTER_TRY(schedule::Project project, parse_queue(part, departments));
    project.sequence = scenario.projects.size();
    scenario.projects.push_back(std::move(project));
  }
  return {};
}

Result<void> read_jobs(Scenario& scenario, std::string_view text) {
  const bool counts_cpus =
      std::any_of(scenario.nodes.begin(), scenario.nodes.end(),
                  [](const schedule::Node& node) { return node.cpu_milli != kUnstatedCpuMilli; });
  for (std::string_view part : outer_parts_of(text, '|')) {
    MUSTER_TRY(ScenarioJob job, parse_job(part));
    job.gang.sequence = scenario.jobs.size();
    schedule::Claim& claim = job.gang.groups[0].claim;
    if (counts_cpus && claim.cpu_milli == 0) claim.cpu_milli = kCpuMilliOfASilentTask;
    scenario.jobs.push_back(std::move(job));
  }
  return {};
}

Result<void> read_expectations(Scenario& scenario, std::string_view text) {
  for (std::string_view part : parts_of(text, ",")) {
    MUSTER_TRY(Expectation expectation, parse_expectation(scenario, part));
    scenario.expected.push_back(std::move(expectation));
  }
  return {};
}

/// One "key: value" of a line.
Result<void> read_field(Scenario& scenario, std::string_view field) {
  const auto pair = cut(field, ":");
  if (!pair) return fault(single_quoted(field) + " is not written key: value");
  const auto& [key, value] = *pair;
  if (key == "nodes") return read_nodes(scenario, value);
  if (key == "queues") return read_queues(scenario, value, false);
  if (key == "depts") return read_queues(scenario, value, true);
  if (key == "jobs") return read_jobs(scenario, value);
  if (key == "expect") return read_expectations(scenario, value);
  return fault(single_quoted(key) + " is not one of nodes, queues, depts, jobs, expect");
}

/// The conditions between the fields of one scenario.
Result<void> check_names(const Scenario& scenario) {
  const auto contains = [](const auto& all, std::string_view name) {
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  };
  for (const schedule::Project& project : scenario.projects)
    if (!project.parent.empty() && !contains(scenario.projects, project.parent))
      return fault("queue " + single_quoted(project.name) + " has the parent " +
                   single_quoted(project.parent) + ", which is not a queue");
  for (const ScenarioJob& job : scenario.jobs) {
    if (!contains(scenario.projects, job.gang.project))
      return fault("job " + single_quoted(job.gang.name) + " is in " +
                   single_quoted(job.gang.project) + ", which is not a queue");
    for (const TaskView& task : job.tasks)
      if (!task.node.empty() && !contains(scenario.nodes, task.node))
        return fault("job " + single_quoted(job.gang.name) + " runs on " +
                     single_quoted(task.node) + ", which is not a node");
  }
  return {};
}

void note(Scenario& scenario, const Result<void>& read) {
  if (!read && scenario.fault.empty()) scenario.fault = read.error().what;
}

constexpr std::string_view kItem = "- **";
constexpr std::string_view kItemEnd = "**";
constexpr std::string_view kFieldSeparator = "\u00b7";

}  // namespace

std::string_view to_string(TaskState state) {
  for (const StateName& entry : kStates)
    if (entry.state == state) return entry.name;
  return "?";
}

std::optional<TaskState> task_state_of(std::string_view name) {
  for (const StateName& entry : kStates)
    if (entry.name == name) return entry.state;
  return std::nullopt;
}

std::string to_string(const TaskView& view) {
  std::string text(to_string(view.state));
  if (!view.node.empty()) text += "@" + view.node;
  return text;
}

Result<std::vector<Scenario>> parse_scenarios(std::string_view text) {
  std::vector<Scenario> scenarios;
  std::string section;
  bool open = false;  // within a scenario; other lines are prose
  int line_number = 0;
  for (const std::string& line : base::split(text, '\n')) {
    ++line_number;
    const std::string_view content = trimmed(line);
    if (line.starts_with("#")) {
      section = trimmed(content.substr(content.find_first_not_of('#')));
      open = false;
    } else if (line.starts_with(kItem) && content.ends_with(kItemEnd)) {
      std::string_view name = content.substr(kItem.size());
      name.remove_suffix(kItemEnd.size());
      scenarios.push_back(
          {.section = section, .name = std::string(trimmed(name)), .line = line_number});
      open = true;
    } else if (!line.starts_with(" ")) {
      open = false;
    } else if (open) {
      for (std::string_view field : parts_of(content, kFieldSeparator))
        note(scenarios.back(), read_field(scenarios.back(), field));
    }
  }
  if (scenarios.empty())
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the file contains no scenario",
                 .advice =
                     "a scenario begins with a line '- **its name**'; "
                     "docs/scheduler.md has the notation"};
  for (Scenario& scenario : scenarios) note(scenario, check_names(scenario));
  return scenarios;
}

}  // namespace muster::simulate

namespace muster::simulate::notation {

Error fault(std::string what) {
  return {.code = ErrorCode::kInvalid, .what = std::move(what)};
}

std::vector<std::string_view> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  if (trimmed(text).empty()) return parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

std::vector<std::string_view> outer_parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '(' || text[at] == '[' || text[at] == '{') ++depth;
    if (text[at] == ')' || text[at] == ']' || text[at] == '}') --depth;
    if (depth != 0 || text[at] != separator) continue;
    parts.push_back(trimmed(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  if (!trimmed(text).empty()) parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

std::optional<std::pair<std::string_view, std::string_view>> cut(std::string_view text,
                                                                 std::string_view separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  return std::pair{trimmed(text.substr(0, at)), trimmed(text.substr(at + separator.size()))};
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

namespace {

template <class Number>
Result<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    return fault(single_quoted(text) + " is not a number");
  return value;
}

}  // namespace

Result<int64_t> whole(std::string_view text, int64_t most) {
  MUSTER_TRY(const int64_t value, number<int64_t>(text));
  if (value < 0 || value > most)
    return fault(single_quoted(text) + " is not between 0 and " + std::to_string(most));
  return value;
}

Result<int64_t> thousandths(std::string_view text) {
  MUSTER_TRY(const double value, number<double>(text));
  if (!(value >= 0 && value <= 1e9)) return fault(single_quoted(text) + " is not an amount");
  return std::llround(value * 1000);
}

Result<int> sum(std::string_view text) {
  constexpr int64_t kMost = 1'000'000;
  const size_t sign = text.find_first_of("+-", 1);
  MUSTER_TRY(const int64_t base, whole(text.substr(0, sign), kMost));
  if (sign == std::string_view::npos) return static_cast<int>(base);
  MUSTER_TRY(const int64_t step, whole(text.substr(sign + 1), kMost));
  return static_cast<int>(text[sign] == '+' ? base + step : base - step);
}

}  // namespace muster::simulate::notation
