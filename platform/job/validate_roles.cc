#include "job/validate_roles.h"

#include <string>

#include "job/image_name.h"
#include "job/role_specs.h"
#include "job/validate.h"
#include "job/validate_scheduling.h"

namespace muster::job {

namespace {

constexpr size_t kLongestImage = 512;

/// One that begins with '-' would be an option to whoever starts it.
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
    check.require(!has_nul(words[i]), field + "[" + std::to_string(i) + "]", "holds a NUL byte");
  }
}

/// A command that there need not be, but which then has a program.
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

/// Where a task has neither a command nor an image. One fault is enough where `command` mends all.
void check_that_something_runs(const JobSpec& spec, Checker& check) {
  constexpr std::string_view kAdvice = "is empty; say what to run, as in: -- python3 train.py";
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
    check.require(!has_nul(value), field + "." + name, "its value holds a NUL byte");
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
                         "a single job has one task alone; say it of the job itself");
  }
  check_resources(spec.leader.resources, "leader.resources", check);
  if (spec.kind != Kind::kMpi) return;
  check.require(spec.leader.command.empty(), "leader.command",
                "the launcher runs the job's command; say it there");
  check.require(spec.leader.arguments.empty(), "leader.arguments",
                "the launcher has the job's arguments; say them there");
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
                "is of the workers of an mpi job, which answer ssh; say it in 'command'");
}

void check_parameter_servers(const JobSpec& spec, Checker& check) {
  if (spec.kind != Kind::kGrpc) {
    check.require(spec.parameter_servers == 0, "parameter_servers",
                  "only a grpc job has them; leave it out");
    return check.require(spec.parameter_server == RoleSpec(), "parameter_server",
                         "only a grpc job has parameter servers; leave it out");
  }
  check.require_range(spec.parameter_servers, 0, kMaxWorkers, "parameter_servers");
  check_resources(spec.parameter_server.resources, "parameter_server.resources", check);
  const int64_t together = int64_t{spec.workers} + spec.parameter_servers;
  const bool each_is_in_range =
      spec.workers <= kMaxWorkers && spec.parameter_servers <= kMaxWorkers;
  check.require(!each_is_in_range || together <= kMaxWorkers, "parameter_servers",
                "are " + std::to_string(together) + " tasks together with the workers; at most " +
                    std::to_string(kMaxWorkers) + " can be");
}

void check_evaluators(const JobSpec& spec, Checker& check) {
  if (spec.kind != Kind::kGrpc) {
    check.require(spec.evaluators == 0, "evaluators", "only a grpc job has one; leave it out");
    return check.require(spec.evaluator == RoleSpec(), "evaluator",
                         "only a grpc job has an evaluator; leave it out");
  }
  // TensorFlow takes no cluster with two: each would evaluate every checkpoint.
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

}  // namespace muster::job
