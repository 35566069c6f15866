// A Job of Kubernetes: one task, or several that run the same program at once. Of an Indexed Job each
// run has a number, JOB_COMPLETION_INDEX. With fewer pods at once than completions, each task runs the
// program several times.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/units.h"
#include "dialects/kubernetes/kinds.h"

namespace muster::dialects::kubernetes {

namespace {

constexpr int64_t kMostPods = 1'000'000;
constexpr int kLastExitCode = 255;

// --- the number of tasks

constexpr int64_t kMostTasks = 1001;

struct Counts {
  int tasks = 1;
  int64_t runs = 1;  ///< completions; at least as many as tasks
  bool indexed = false;
  bool held = false;
};

Counts read_counts(Map& spec) {
  Counts counts;
  const auto mode = spec.take("completionMode");
  counts.indexed = mode && mode->word({"Indexed", "NonIndexed"}) == "Indexed";
  const auto completions_node = spec.take("completions");
  const auto parallelism_node = spec.take("parallelism");
  const auto completions =
      completions_node ? completions_node->integer(0, kMostPods) : std::nullopt;
  const auto parallelism =
      parallelism_node ? parallelism_node->integer(0, kMostPods) : std::nullopt;
  if (counts.indexed && !completions_node) {
    mode->fault("'Indexed' needs completions, the number of tasks");
  }
  if (completions == 0) {
    completions_node->fault("is 0: the job has nothing to do");
    return counts;
  }
  counts.held = parallelism == 0;
  const int64_t at_once = std::max<int64_t>(parallelism.value_or(1), 1);
  counts.runs = completions.value_or(at_once);
  // A suspended Job does not state how many pods will run at once.
  const int64_t tasks = counts.held ? counts.runs : std::min(at_once, counts.runs);
  const std::optional<Node>& node = parallelism_node ? parallelism_node : completions_node;
  if (tasks > kMostTasks) {
    node->fault("is more than the " + std::to_string(kMostTasks) + " tasks that a job may have");
    return counts;
  }
  counts.tasks = static_cast<int>(tasks);
  if (tasks < counts.runs) {
    node->warning("each of the " + std::to_string(tasks) + " tasks runs its share of the " +
                  std::to_string(counts.runs) + " completions, one after the other");
  }
  return counts;
}

/// Fewer tasks than completions: each task runs the program several times, with the indexes i, i +
/// tasks, i + 2 tasks ... The first failure ends it.
void repeat_program(const Counts& counts, const Place& container, Draft& draft,
                    Findings& findings) {
  job::JobSpec& spec = draft.spec;
  if (spec.command.empty()) {
    findings.faults.push_back(
        {.field = container.path,
         .what = "has no command, which a shell would run once for each completion of its task; "
                 "give it one, or set parallelism to completions",
         .line = container.line});
    return;
  }
  const std::string index = counts.indexed ? "JOB_COMPLETION_INDEX=$i " : "";
  std::vector<std::string> command{"sh", "-c",
                                   "i=${JOB_COMPLETION_INDEX:-0}; while [ \"$i\" -lt " +
                                       std::to_string(counts.runs) + " ]; do " + index +
                                       "\"$@\" || exit; i=$((i + " + std::to_string(counts.tasks) +
                                       ")); done",
                                   "sh"};
  command.insert(command.end(), spec.command.begin(), spec.command.end());
  spec.command = std::move(command);
}

// --- failures

/// The codes of a failure rule as ranges, from 1 to 255.
std::vector<std::pair<int, int>> ranges_of(std::set<int> codes, bool negated) {
  if (negated) {
    std::set<int> others;
    for (int code = 1; code <= kLastExitCode; ++code) {
      if (!codes.contains(code)) others.insert(code);
    }
    codes = std::move(others);
  }
  std::vector<std::pair<int, int>> ranges;
  for (const int code : codes) {
    if (!ranges.empty() && ranges.back().second == code - 1) {
      ranges.back().second = code;
    } else {
      ranges.emplace_back(code, code);
    }
  }
  return ranges;
}

void read_exit_codes(const Node& node, job::RetryRule::Action action, Draft& draft) {
  Map map(node);
  map.skip({"containerName"});
  const auto operation = map.require("operator");
  const auto values = map.require("values");
  map.end();
  const auto word = operation ? operation->word({"In", "NotIn"}) : std::nullopt;
  if (!word || !values) return;
  std::set<int> codes;
  for (const Node& value : values->elements()) {
    if (const auto code = value.integer(0, kLastExitCode)) codes.insert(static_cast<int>(*code));
  }
  codes.erase(0);
  for (const auto& [first, last] : ranges_of(codes, word == "NotIn")) {
    job::RetryRule rule{.exit_code = first, .log_pattern = "", .action = action};
    if (last > first) rule.last_exit_code = last;
    draft.spec.scheduling.retry_rules.push_back(rule);
  }
}

void read_failure_rule(const Node& node, Draft& draft) {
  Map map(node);
  const auto action_node = map.require("action");
  const auto codes = map.take("onExitCodes");
  const auto conditions = map.take("onPodConditions");
  map.end();
  const auto action =
      action_node ? action_node->word({"FailJob", "FailIndex", "Ignore", "Count"}) : std::nullopt;
  if (action == "FailIndex") {
    return action_node->fault("'FailIndex' is not supported: a failed task fails the whole job");
  }
  if (codes && action == "Ignore") {
    codes->warning("counts as a retry: Muster counts every failure of the program");
  }
  if (codes) {
    read_exit_codes(
        *codes,
        action == "FailJob" ? job::RetryRule::Action::kFail : job::RetryRule::Action::kRetry,
        draft);
  }
  // A lost or evicted pod never counts as a failure here.
  if (conditions && action != "Ignore" && action != "Count") {
    conditions->fault("cannot fail the job: a task that is lost or evicted starts again");
  }
}

void read_failure_policy(const std::optional<Node>& node, Draft& draft) {
  if (!node) return;
  draft.origins["scheduling.retry_rules"] = node->place();
  Map map(*node);
  if (const auto rules = map.require("rules")) {
    for (const Node& rule : rules->elements()) read_failure_rule(rule, draft);
  }
  map.end();
}

/// By default every task must succeed. One rule has a counterpart: that task 0 must.
void read_success_policy(const std::optional<Node>& node, Draft& draft) {
  if (!node) return;
  Map map(*node);
  const auto rules = map.require("rules");
  map.end();
  if (!rules) return;
  const std::vector<Node> list = rules->elements();
  std::optional<std::string> indexes;
  std::optional<int64_t> count;
  if (list.size() == 1) {
    Map rule(list.front());
    indexes = rule.text("succeededIndexes");
    count = rule.integer("succeededCount", 1, kMostPods);
    rule.end();
  }
  if (indexes == "0" && count.value_or(1) == 1) {
    draft.spec.success = job::Success::kLeader;
  } else {
    rules->fault("is not supported; a job succeeds when all tasks do, or when task 0 does");
  }
}

/// The pods of an Indexed Job have the names JOB-0, JOB-1 ... in the domain of their Service.
void rename_hosts(const Metadata& metadata, const std::string& subdomain, Draft& draft) {
  if (subdomain.empty() || draft.spec.kind == job::Kind::kSingle) return;
  std::map<std::string, std::string> hosts{
      {metadata.file_name + "-0", draft.spec.name + "-master"}};
  for (int i = 0; i < draft.spec.workers; ++i) {
    hosts[metadata.file_name + "-" + std::to_string(i + 1)] =
        draft.spec.name + "-worker-" + std::to_string(i);
  }
  replace_hosts(hosts, metadata, subdomain, true, draft.spec);
}

}  // namespace

Draft read_batch_job(Map& document, const Surroundings& surroundings,
                     const TranslationOptions& options) {
  const Metadata metadata = read_metadata(document, options);
  Draft draft = begin_draft(metadata, options, document.node());
  if (const auto spec = document.require("spec")) {
    read_batch_job_spec(*spec, metadata, surroundings, options, draft);
  }
  return draft;
}

void read_batch_job_spec(const Node& spec_node, const Metadata& metadata,
                         const Surroundings& surroundings, const TranslationOptions& options,
                         Draft& draft) {
  Map spec(spec_node);
  const Counts counts = read_counts(spec);
  draft.spec.held = spec.flag("suspend").value_or(false) || counts.held;
  constexpr int kUsualRetries = 6;
  use_retries(spec.take("backoffLimit"), kUsualRetries, draft);
  use_time_limit(spec.take("activeDeadlineSeconds"), draft);
  use_keep_for(spec.take("ttlSecondsAfterFinished"), draft);
  check_manager(spec.take("managedBy"), "kubernetes.io/job-controller");
  spec.refuse("backoffLimitPerIndex", ": a failed task fails the whole job; use backoffLimit");
  spec.refuse("maxFailedIndexes", ": a failed task fails the whole job");
  spec.skip({"selector", "manualSelector", "podReplacementPolicy"});
  job::JobSpec& job = draft.spec;
  job.kind = counts.tasks == 1 ? job::Kind::kSingle : job::Kind::kTorch;
  job.workers = counts.tasks - 1;
  if (counts.tasks > 1) job.success = job::Success::kAll;
  read_failure_policy(spec.take("podFailurePolicy"), draft);
  const auto success = spec.take("successPolicy");
  if (counts.tasks > 1) read_success_policy(success, draft);
  const auto pod_node = spec.require("template");
  spec.end();
  if (!pod_node) return;
  const PodContext context{.config_maps = surroundings.config_maps,
                           .on_kubernetes = options.on_kubernetes,
                           .container = ""};
  const Pod pod = read_pod_template(*pod_node, context);
  if (pod.restart_policy == "Always") {
    spec_node.findings().faults.push_back(
        {.field = pod.restart_place.path,
         .what = "'Always' is not for jobs, which end; use OnFailure or Never",
         .line = pod.restart_place.line});
  }
  if (pod.deadline_seconds && !job.scheduling.time_limit) {
    job.scheduling.time_limit = std::chrono::seconds(*pod.deadline_seconds);
  }
  add_roles({.base = &pod, .leader = &pod}, {"JOB_COMPLETION_INDEX"}, options, draft,
            spec_node.findings());
  if (counts.indexed && counts.tasks == 1) job.environment.emplace("JOB_COMPLETION_INDEX", "0");
  if (counts.runs > counts.tasks) {
    repeat_program(counts, pod.container_place, draft, spec_node.findings());
  }
  rename_hosts(metadata, counts.indexed ? pod.subdomain : "", draft);
}

}  // namespace muster::dialects::kubernetes
