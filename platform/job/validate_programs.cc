// What each task runs: images, commands, arguments and variables, and the tasks of each kind of job.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "job/checker.h"
#include "job/container.h"
#include "job/spec.h"
#include "job/validate.h"

namespace muster::job {

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

/// A request may have a million words: the texts of faults are made for faulty words alone.
void check_words(const std::vector<std::string>& words, const std::string& field, Checker& check) {
  for (size_t i = 0; i < words.size() && !check.has_all_faults(); ++i) {
    if (!has_nul(words[i]) && words[i].size() <= kLongestWord) continue;
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

bool has_program(const JobSpec& spec, const RoleSpec& role) {
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
    if (!has_program(spec, {.image = role.image})) {
      return check.require(false, "command", std::string(kAdvice));
    }
  }
  if (every_task_leads) return;
  check.require(has_program(spec, spec.leader), "leader.command", std::string(kAdvice));
  check.require(spec.parameter_servers <= 0 || has_program(spec, spec.parameter_server),
                "parameter_server.command", std::string(kAdvice));
  check.require(spec.evaluators <= 0 || has_program(spec, spec.evaluator), "evaluator.command",
                std::string(kAdvice));
}

void check_environment(const std::map<std::string, std::string>& environment,
                       const std::string& field, Checker& check) {
  for (const auto& [name, value] : environment) {
    const size_t size = name.size() + 1 + value.size();
    if (is_variable_name(name) && !has_nul(value) && size <= kLongestWord) continue;
    if (check.has_all_faults()) return;
    check.require(is_variable_name(name), field,
                  "'" + name + "' is not a variable name; use letters, digits and '_'");
    check.require(!has_nul(value), field + "." + name, "its value contains a NUL byte");
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

}  // namespace muster::job
