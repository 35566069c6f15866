#include "job/validate.h"

#include <string>

#include "base/text.h"
#include "job/array.h"
#include "job/checker.h"
#include "job/container.h"
#include "job/job.h"
#include "job/log_record.h"
#include "job/spec.h"
#include "job/spec_table.h"
#include "record/input.h"

namespace muster::job {

namespace {

// Linux host names have at most 64 bytes and DNS labels 63; "-launcher" or "-worker-999" must fit.
constexpr size_t kMaxJobName = 48;

// Jobs are kept in memory and sent as a whole, so the sum of their texts is bounded.
constexpr size_t kMostText = 256 << 10;

void check_job_names(const JobSpec& spec, Checker& check) {
  check.require(is_job_name(spec.name), "name",
                "'" + spec.name + "' is not a job name; use 1 to " + std::to_string(kMaxJobName) +
                    " of a-z, 0-9 and '-', with a letter or digit at both ends");
  check.require(is_dns_label(spec.project, 63), "project",
                "'" + spec.project + "' is not a project name; use a-z, 0-9 and '-'");
}

void check_size(const JobSpec& spec, Checker& check) {
  const size_t size = text_size(spec);
  check.require(size <= kMostText, "command",
                "is " + std::to_string(size) +
                    " bytes long together with the environment and the other texts; at most " +
                    std::to_string(kMostText) + " are allowed: put the rest in a file");
}

void check_places_and_times(const JobSpec& spec, Checker& check) {
  check.require(spec.folder.starts_with('/') && !has_nul(spec.folder), "folder",
                "'" + spec.folder + "' is not an absolute path");
  check.require(spec.start_timeout.count() > 0 && spec.start_timeout.count() <= kDayInMs,
                "start_timeout", "give a time between 1ms and 24h");
  constexpr int64_t kTenYears = 3650 * kDayInMs;
  check.require(
      !spec.keep_for || (spec.keep_for->count() >= 0 && spec.keep_for->count() <= kTenYears),
      "keep_for", "give a time between 0s and 3650d");
  check.require(spec.grace.count() >= 0 && spec.grace.count() <= kDayInMs, "grace",
                "give a time between 0s and 24h");
}

}  // namespace

bool is_job_name(std::string_view text) {
  return is_dns_label(text, kMaxJobName);
}

std::vector<Fault> validate(const JobSpec& spec) {
  Checker check;
  check_job_names(spec, check);
  check_programs(spec, check);
  check_shape(spec, check);
  check_container(spec, check);
  check_slurm(spec.slurm, check);
  check_kubernetes(spec.kubernetes, check);
  check_pod_containers(spec, check);
  check_scheduling(spec, check);
  check_dependencies(spec, check);
  check_environments(spec, check);
  check_size(spec, check);
  check_secrets(spec, check);
  check_volumes(spec, check);
  check_labels(spec, check);
  check_places_and_times(spec, check);
  check_array(spec, check);
  return check.take();
}

namespace {

struct DependentFields {
  std::string_view field;
  std::vector<std::string_view> dependents;
};

const std::vector<DependentFields>& dependent_fields() {
  static const std::vector<DependentFields> all{
      {"kind",
       {"command", "worker_command", "workers", "leader", "leader_slots", "parameter_servers",
        "parameter_server", "evaluators", "evaluator", "chief_is_worker", "allow_launcher_only",
        "launch", "success", "scheduling.min_workers", "scheduling.resize",
        "kubernetes.containers"}},
      {"command", {"leader.command", "parameter_server.command", "evaluator.command"}},
      {"image",
       {"user", "registry", "container", "replaces_entrypoint", "command", "leader.command",
        "parameter_server.command", "evaluator.command"}},
      {"leader.image",
       {"container", "replaces_entrypoint", "command", "leader.command", "leader.user",
        "leader.registry"}},
      {"parameter_server.image",
       {"container", "replaces_entrypoint", "parameter_server.command", "parameter_server.user",
        "parameter_server.registry"}},
      {"evaluator.image",
       {"container", "replaces_entrypoint", "evaluator.command", "evaluator.user",
        "evaluator.registry"}},
      {"workers", {"scheduling.min_workers"}},
      {"parameter_servers", {"scheduling.resize"}},
      {"scheduling.min_workers", {"scheduling.resize"}},
      {"volumes", {"kubernetes.containers"}},
      {"kubernetes.claims", {"kubernetes.containers"}},
  };
  return all;
}

}  // namespace

void add_dependents(std::vector<Fault>& unread, std::string_view prefix) {
  const size_t count = unread.size();
  for (size_t i = 0; i < count; ++i) {
    const std::string unread_field = unread[i].field;
    for (const auto& [field, dependents] : dependent_fields()) {
      const std::string read = std::string(prefix).append(field);
      const bool is_unread =
          record::is_within(unread_field, read) || record::is_within(read, unread_field);
      if (!is_unread) continue;
      for (const std::string_view dependent : dependents) {
        unread.push_back({.field = std::string(prefix).append(dependent)});
      }
    }
  }
}

namespace {

size_t size_of(const std::vector<std::string>& words) {
  size_t size = 0;
  for (const std::string& word : words) size += word.size() + 1;
  return size;
}

size_t size_of(const std::map<std::string, std::string>& pairs) {
  size_t size = 0;
  for (const auto& [name, value] : pairs) size += name.size() + value.size() + 2;
  return size;
}

size_t size_of(const RegistryLogin& login) {
  return login.server.size() + login.username.size() + login.secret.size();
}

size_t size_of(const SlurmSpec& slurm) {
  return slurm.partition.size() + slurm.account.size() + slurm.qos.size() +
         slurm.reservation.size() + slurm.constraint.size();
}

size_t size_of(const PodContainer& container) {
  return container.name.size() + container.image.size() + size_of(container.command) +
         size_of(container.arguments) + size_of(container.environment) + container.folder.size() +
         container.user.size() + size_of(container.mounts);
}

size_t size_of(const KubernetesSpec& options) {
  size_t containers = 0;
  for (const PodContainer& each : options.containers) containers += size_of(each);
  return containers + size_of(options.node_selector) + size_of(options.tolerations) +
         options.priority_class.size() + options.service_account.size() +
         options.runtime_class.size() + size_of(options.image_pull_secrets) +
         size_of(options.claims) + size_of(options.devices) + size_of(options.labels) +
         size_of(options.annotations);
}

size_t size_of(const RoleSpec& role) {
  return role.image.size() + role.user.size() + size_of(role.registry) + size_of(role.command) +
         size_of(role.arguments) + size_of(role.environment);
}

size_t size_of_roles(const JobSpec& spec) {
  size_t size = 0;
  for (const NamedRole& named : roles_of(spec)) size += size_of(named.role);
  return size;
}

size_t size_of(const std::vector<Volume>& volumes) {
  size_t size = 0;
  for (const Volume& volume : volumes) size += volume.source.size() + volume.target.size() + 2;
  return size;
}

}  // namespace

size_t text_size(const JobSpec& spec) {
  return spec.folder.size() + spec.image.size() + spec.user.size() + size_of(spec.registry) +
         size_of(spec.container.capabilities) + size_of(spec.slurm) + size_of(spec.kubernetes) +
         size_of(spec.command) + size_of(spec.arguments) + size_of(spec.worker_command) +
         size_of_roles(spec) + size_of(spec.volumes) + size_of(spec.labels) +
         size_of(spec.annotations) + size_of(spec.environment);
}

namespace {

constexpr size_t kLongestKey = 128;
constexpr size_t kLongestValue = 256;
constexpr size_t kMostAnnotations = 64 << 10;  // the sum over all annotations

bool is_key(std::string_view text) {
  return !text.empty() && text.size() <= kLongestKey && text.front() != ' ' && text.back() != ' ' &&
         is_shown(text);
}

void check_key(const std::string& key, const std::string& field, Checker& check) {
  check.require(is_key(key), field,
                in_quotes(key) + " is not a valid name; use 1 to " + std::to_string(kLongestKey) +
                    " bytes of text without control characters, and no blank at its ends");
}

}  // namespace

bool is_shown(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte < 0x20 || byte == 0x7F || (byte == 0xC2 && next >= 0x80 && next <= 0x9F)) return false;
  }
  return base::is_utf8(text);
}

bool is_name_template(std::string_view text) {
  const size_t place = text.find(kNumberPlace);
  if (place == std::string_view::npos) return false;
  std::string name(text);
  return is_job_name(name.replace(place, kNumberPlace.size(), "1"));
}

bool is_label_name(std::string_view text) {
  return is_key(text) && text.find('=') == std::string_view::npos;
}

bool is_label_value(std::string_view text) {
  return text.size() <= kLongestValue && is_shown(text);
}

void check_labels(const JobSpec& spec, Checker& check) {
  check.require(
      spec.labels.size() <= static_cast<size_t>(kMaxLabels), "labels",
      "are " + std::to_string(spec.labels.size()) + "; give at most " + std::to_string(kMaxLabels));
  for (const auto& [key, value] : spec.labels) {
    check_key(key, "labels", check);
    check.require(key.find('=') == std::string::npos, "labels",
                  in_quotes(key) + " contains '=', which separates name and value");
    check.require(is_label_value(value), "labels." + base::as_utf8(key),
                  "its value is not text of at most " + std::to_string(kLongestValue) +
                      " bytes without control characters");
  }
  size_t size = 0;
  for (const auto& [key, value] : spec.annotations) {
    check_key(key, "annotations", check);
    size += key.size() + value.size();
  }
  check.require(size <= kMostAnnotations, "annotations",
                "are " + std::to_string(size) + " bytes together; at most " +
                    std::to_string(kMostAnnotations) + " are kept");
}

namespace {

constexpr size_t kLongestImage = 512;

/// An image that begins with '-' would be read as an option by the program that runs it.
bool is_image_text(std::string_view text) {
  return text.size() <= kLongestImage && !text.starts_with('-') &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

void check_image(const std::string& image, const std::string& field, Checker& check) {
  if (image.empty()) return;
  const std::string no_image = in_quotes(image) + " is not the name of an image";
  if (!is_image_text(image)) {
    return check.require(false, field,
                         no_image + "; use at most " + std::to_string(kLongestImage) +
                             " letters, digits and signs, as in nvcr.io/nvidia/pytorch:24.01-py3");
  }
  const std::string fault = fault_of_image_name(image);
  check.require(fault.empty(), field, no_image + ": it " + fault);
}

void check_words(const std::vector<std::string>& words, const std::string& field, Checker& check) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string place = field + "[" + std::to_string(i) + "]";
    check.require(!has_nul(words[i]), place, "contains a NUL byte");
    check.require(words[i].size() <= kLongestWord, place,
                  "is " + std::to_string(words[i].size()) +
                      " bytes long; an argument of a program has at most " +
                      std::to_string(kLongestWord) + ": put the rest in a file");
  }
}

/// The command is optional, but if present it must name a program.
void check_command(const std::vector<std::string>& command, const std::string& field,
                   Checker& check) {
  check.require(command.empty() || !command.front().empty(), field, "names no program to run");
  check_words(command, field, check);
}

void check_program(const RoleSpec& role, const std::string& field, Checker& check) {
  check_image(role.image, field + ".image", check);
  check_command(role.command, field + ".command", check);
  check_words(role.arguments, field + ".arguments", check);
}

bool says_what_to_run(const JobSpec& spec, const RoleSpec& role) {
  return !role.command.empty() || !spec.command.empty() || !role.image.empty() ||
         !spec.image.empty();
}

/// If a task has neither a command nor an image. One fault is enough if `command` solves all.
void check_that_something_runs(const JobSpec& spec, Checker& check) {
  constexpr std::string_view kAdvice = "is empty; give a command, as in: -- python3 train.py";
  const bool every_task_leads = spec.kind == Kind::kSingle || spec.kind == Kind::kMpi;
  if (!spec.command.empty() && spec.command.front().empty()) {
    return check.require(false, "command", std::string(kAdvice));
  }
  if (every_task_leads || spec.workers > 0) {
    const RoleSpec& role = spec.kind == Kind::kMpi ? spec.leader : RoleSpec();
    if (!says_what_to_run(spec, {.image = role.image})) {
      return check.require(false, "command", std::string(kAdvice));
    }
  }
  if (every_task_leads) return;
  check.require(says_what_to_run(spec, spec.leader), "leader.command", std::string(kAdvice));
  check.require(spec.parameter_servers <= 0 || says_what_to_run(spec, spec.parameter_server),
                "parameter_server.command", std::string(kAdvice));
  check.require(spec.evaluators <= 0 || says_what_to_run(spec, spec.evaluator), "evaluator.command",
                std::string(kAdvice));
}

void check_environment(const std::map<std::string, std::string>& environment,
                       const std::string& field, Checker& check) {
  for (const auto& [name, value] : environment) {
    check.require(is_variable_name(name), field,
                  "'" + name + "' is not a variable name; use letters, digits and '_'");
    check.require(!has_nul(value), field + "." + name, "its value contains a NUL byte");
    const size_t size = name.size() + 1 + value.size();
    check.require(size <= kLongestWord, field + "." + base::as_utf8(name.substr(0, 100)),
                  "is " + std::to_string(size) +
                      " bytes long with its name; a variable has at most " +
                      std::to_string(kLongestWord) + ": put the value in a file");
  }
}

void check_workers(const JobSpec& spec, Checker& check) {
  switch (spec.kind) {
    case Kind::kSingle:
      return check.require(spec.workers == 0, "workers",
                           "a single job has no workers; leave it out or use kind mpi");
    case Kind::kMpi:
      return check.require_range(spec.workers, 1, kMaxWorkers, "workers");
    case Kind::kGrpc:
    case Kind::kTorch:
      return check.require_range(spec.workers, 0, kMaxWorkers, "workers");
  }
}

void check_leader(const JobSpec& spec, Checker& check) {
  if (spec.kind == Kind::kSingle) {
    return check.require(spec.leader == RoleSpec(), "leader",
                         "a single job has only one task; set this on the job itself");
  }
  check_resources(spec.leader.resources, "leader.resources", check);
  if (spec.kind != Kind::kMpi) return;
  check.require(spec.leader.command.empty(), "leader.command",
                "the launcher runs the job's command; set 'command'");
  check.require(spec.leader.arguments.empty(), "leader.arguments",
                "the launcher gets the job's arguments; set 'arguments'");
}

void check_what_only_mpi_has(const JobSpec& spec, Checker& check) {
  check.require_range(spec.slots_per_worker, 1, kMaxSlotsPerWorker, "slots_per_worker");
  if (spec.kind == Kind::kMpi) {
    return check.require_range(spec.leader_slots, 0, kMaxSlotsPerWorker, "leader_slots");
  }
  check.require(spec.leader_slots == 0, "leader_slots", "only an mpi job has slots; leave it out");
  check.require(!spec.allow_launcher_only, "allow_launcher_only",
                "only an mpi job has a launcher; leave it out");
  check.require(spec.worker_command.empty(), "worker_command",
                "is only for the workers of an mpi job; set 'command'");
}

void check_parameter_servers(const JobSpec& spec, Checker& check) {
  if (spec.kind != Kind::kGrpc) {
    check.require(spec.parameter_servers == 0, "parameter_servers",
                  "only a grpc job has parameter servers; leave it out");
    return check.require(spec.parameter_server == RoleSpec(), "parameter_server",
                         "only a grpc job has parameter servers; leave it out");
  }
  check.require_range(spec.parameter_servers, 0, kMaxWorkers, "parameter_servers");
  check_resources(spec.parameter_server.resources, "parameter_server.resources", check);
  const int64_t together = int64_t{spec.workers} + spec.parameter_servers;
  const bool each_is_in_range =
      spec.workers <= kMaxWorkers && spec.parameter_servers <= kMaxWorkers;
  check.require(!each_is_in_range || together <= kMaxWorkers, "parameter_servers",
                "are " + std::to_string(together) +
                    " tasks together with the workers; the maximum is " +
                    std::to_string(kMaxWorkers));
}

void check_evaluators(const JobSpec& spec, Checker& check) {
  check.require(!spec.chief_is_worker || spec.kind == Kind::kGrpc, "chief_is_worker",
                "only a grpc job has a chief; leave it out");
  if (spec.kind != Kind::kGrpc) {
    check.require(spec.evaluators == 0, "evaluators",
                  "only a grpc job has an evaluator; leave it out");
    return check.require(spec.evaluator == RoleSpec(), "evaluator",
                         "only a grpc job has an evaluator; leave it out");
  }
  // TensorFlow allows one evaluator: two would evaluate every checkpoint twice.
  check.require_range(spec.evaluators, 0, 1, "evaluators");
  check_resources(spec.evaluator.resources, "evaluator.resources", check);
}

}  // namespace

void check_programs(const JobSpec& spec, Checker& check) {
  check_image(spec.image, "image", check);
  check_that_something_runs(spec, check);
  check_words(spec.command, "command", check);
  check_words(spec.arguments, "arguments", check);
  check_command(spec.worker_command, "worker_command", check);
  for (const auto& [field, role] : roles_of(spec)) check_program(role, field, check);
}

void check_shape(const JobSpec& spec, Checker& check) {
  check_workers(spec, check);
  check_resources(spec.resources, "resources", check);
  check_leader(spec, check);
  check_what_only_mpi_has(spec, check);
  check_parameter_servers(spec, check);
  check_evaluators(spec, check);
}

void check_environments(const JobSpec& spec, Checker& check) {
  check_environment(spec.environment, "environment", check);
  for (const auto& [field, role] : roles_of(spec)) {
    check_environment(role.environment, std::string(field) + ".environment", check);
  }
}

namespace {

constexpr int kMaxGpus = 1024;
constexpr int kMaxJobPriority = 1000;
constexpr int kMaxRetries = 1000;
constexpr size_t kMaxRetryRules = 100;
/// Of the patterns of all rules together. When a job fails, the server's loop searches 64 KiB of
/// output for each of them: see kMaxPatternStates.
constexpr size_t kMaxRuleStates = 1000;
constexpr size_t kMaxNames = 100;

std::string element(const std::string& field, size_t index) {
  return field + "[" + std::to_string(index) + "]";
}

void check_tokens(const std::vector<std::string>& names, const std::string& field,
                  const std::string& noun, Checker& check) {
  check.require(names.size() <= kMaxNames, field,
                "has more than " + std::to_string(kMaxNames) + " entries");
  for (size_t i = 0; i < names.size(); ++i) {
    check.require(is_token(names[i]), element(field, i),
                  "'" + names[i] + "' is not a " + noun + " name");
  }
}

void check_topology(const std::string& level, const std::string& field, Checker& check) {
  if (level.empty()) return;
  check.require(is_token(level), field, "'" + level + "' is not a topology level such as rack");
}

void check_min_workers(const JobSpec& spec, Checker& check) {
  const std::optional<int> minimum = spec.scheduling.min_workers;
  if (!minimum) return;
  const std::string field = "scheduling.min_workers";
  if (spec.kind == Kind::kSingle) {
    return check.require(false, field, "a single job has no workers; leave it out");
  }
  const int least = fewest_workers(spec.kind);
  if (spec.workers < least) return;  // the fault about the workers suffices
  check.require(*minimum >= least && *minimum <= spec.workers, field,
                std::to_string(*minimum) + " is out of range; give " + std::to_string(least) +
                    " to " + std::to_string(spec.workers) + ", the number of workers");
}

void check_resize(const JobSpec& spec, Checker& check) {
  const Resize resize = spec.scheduling.resize;
  if (resize == Resize::kAuto) return;
  const std::string field = "scheduling.resize";
  const std::string name(to_string(resize));
  if (!spec.scheduling.min_workers) {
    return check.require(
        false, field,
        "'" + name + "' is for elastic jobs, and " +
            (spec.kind == Kind::kSingle ? "a single job has no workers; leave it out"
                                        : "this job has a fixed number of workers; also give "
                                          "min_workers (--min-workers)"));
  }
  check.require(resize != Resize::kLive || spec.kind != Kind::kGrpc || spec.parameter_servers > 0,
                field,
                "without parameter servers each worker of a grpc job waits for all others, so the "
                "job cannot continue when workers change; give parameter_servers, or 'restart'");
}

void check_success(const JobSpec& spec, Checker& check) {
  if (spec.success == Success::kLeader) return;
  const bool has_peers = spec.kind == Kind::kGrpc || spec.kind == Kind::kTorch;
  check.require(has_peers, "success", "only grpc and torch jobs have tasks of their own program");
  check.require(!has_peers || !spec.scheduling.min_workers, "success",
                "an elastic job, whose workers come and go, succeeds with its leader");
}

/// Returns the states of the rule's pattern.
size_t check_rule(const RetryRule& rule, const std::string& field, Checker& check) {
  check.require(rule.exit_code || !rule.log_pattern.empty(), field,
                "matches no failure; give an exit_code, a log_pattern or both");
  if (rule.exit_code) check.require_range(*rule.exit_code, 1, 255, field + ".exit_code");
  if (rule.last_exit_code) {
    check.require(rule.exit_code.has_value(), field + ".last_exit_code",
                  "has no first code; give an exit_code, too");
    check.require_range(*rule.last_exit_code, rule.exit_code.value_or(1), 255,
                        field + ".last_exit_code");
  }
  if (rule.log_pattern.empty()) return 0;
  const auto pattern = LogPattern::compile(rule.log_pattern);
  if (pattern) return pattern->states();
  check.require(false, field + ".log_pattern", pattern.error().what);
  return 0;
}

bool is_singleton(std::string_view text) {
  constexpr ptrdiff_t kLongest = 100;
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; };
  return is_shown(text) && text.front() != ' ' && text.back() != ' ' &&
         std::count_if(text.begin(), text.end(), begins_character) <= kLongest;
}

void check_retries(const Scheduling& scheduling, Checker& check) {
  check.require_range(scheduling.retries, 0, kMaxRetries, "scheduling.retries");
  // After a restart, no user would be attached to an interactive job.
  check.require(scheduling.purpose != Purpose::kBuild || scheduling.retries <= 0,
                "scheduling.retries",
                "an interactive job is never retried; leave it out, or leave out --interactive "
                "(purpose: build)");
  const std::vector<RetryRule>& rules = scheduling.retry_rules;
  const std::string field = "scheduling.retry_rules";
  if (rules.size() > kMaxRetryRules) {
    return check.require(false, field,
                         "has more than " + std::to_string(kMaxRetryRules) + " rules");
  }
  size_t states = 0;
  for (size_t i = 0; i < rules.size(); ++i) {
    states += check_rule(rules[i], element(field, i), check);
  }
  check.require(states <= kMaxRuleStates, field,
                "have patterns of " + std::to_string(states) +
                    " parts when their counts are written out, more than " +
                    std::to_string(kMaxRuleStates) +
                    "; use plain words, or * or + instead of counts");
}

}  // namespace

void check_resources(const Resources& resources, const std::string& field, Checker& check) {
  check.require_range(resources.gpus, 0, kMaxGpus, field + ".gpus");
  const bool has_share = resources.gpu_share_milli != 0;
  const bool has_memory = resources.gpu_memory_bytes != 0;
  if (has_share) check.require_milli(resources.gpu_share_milli, 1, 999, field + ".gpu_share");
  check.require_memory(resources.gpu_memory_bytes, field + ".gpu_memory");
  check.require(!has_share || resources.gpus == 0, field + ".gpu_share",
                "is a part of one GPU, and cannot be used with whole GPUs");
  check.require(!has_memory || resources.gpus == 0, field + ".gpu_memory",
                "is a part of one GPU, and cannot be used with whole GPUs");
  check.require(!has_memory || !has_share, field + ".gpu_memory",
                "cannot be used with gpu_share; give only one");
  check.require_milli(resources.cpu_milli, 0, kMaxCpuMilli, field + ".cpus");
  check.require_memory(resources.memory_bytes, field + ".memory");
}

void check_scheduling(const JobSpec& spec, Checker& check) {
  const Scheduling& scheduling = spec.scheduling;
  if (scheduling.priority) {
    check.require_range(*scheduling.priority, 0, kMaxJobPriority, "scheduling.priority");
  }
  check_min_workers(spec, check);
  check_resize(spec, check);
  check_success(spec, check);
  check_tokens(scheduling.node_pools, "scheduling.node_pools", "node pool", check);
  check_tokens(scheduling.gpu_models, "scheduling.gpu_models", "GPU model", check);
  check_topology(scheduling.required_topology, "scheduling.required_topology", check);
  check_topology(scheduling.preferred_topology, "scheduling.preferred_topology", check);
  if (scheduling.time_limit) {
    const int64_t limit = scheduling.time_limit->count();
    check.require(limit > 0 && limit <= kYearMilliseconds, "scheduling.time_limit",
                  "give a time between 1ms and 365d");
  }
  check_retries(scheduling, check);
}

void check_dependencies(const JobSpec& spec, Checker& check) {
  constexpr size_t kMostDependencies = 100;
  check.require(spec.after.size() <= kMostDependencies, "after",
                "has more than " + std::to_string(kMostDependencies) + " entries");
  for (size_t i = 0; i < spec.after.size(); ++i) {
    const std::string& other = spec.after[i].job;
    const std::string field = element("after", i) + ".job";
    check.require(is_token(other), field, in_quotes(other) + " is not the name or id of a job");
    check.require(other != spec.name, field, "a job cannot wait for itself");
  }
  const std::string& singleton = spec.scheduling.singleton;
  check.require(singleton.empty() || is_singleton(singleton), "scheduling.singleton",
                in_quotes(singleton) +
                    " has a control character, begins or ends with a space, or has more than 100 "
                    "characters");
}

}  // namespace muster::job
