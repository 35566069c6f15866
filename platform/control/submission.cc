#include "control/submission.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "base/text.h"
#include "control/unknown_name.h"
#include "job/array.h"
#include "job/checker.h"
#include "job/kubernetes.h"
#include "job/obstacle.h"
#include "job/project.h"
#include "job/spec.h"
#include "job/spec_table.h"
#include "job/validate.h"
#include "launch/plan.h"
#include "launch/plan_task.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::TaskRole;

namespace {

Error name_taken(const std::string& name) {
  return {.code = ErrorCode::kConflict,
          .what = "job " + name_in_quotes(name) + " exists already",
          .advice = "choose another name, add --name-suffix for the next free one (" + name +
                    "-2), or delete that job: muster delete " + name};
}

/// One task of each role of the job.
std::vector<job::Task> one_of_each_role(const job::JobSpec& spec) {
  std::vector<job::Task> tasks;
  for (job::Task& task : job::tasks_of(spec)) {
    const auto same = [&](const job::Task& known) { return known.role == task.role; };
    if (std::none_of(tasks.begin(), tasks.end(), same)) tasks.push_back(std::move(task));
  }
  return tasks;
}

/// Refuses a job that would be refused at its start, which may be a long time from now.
Result<void> check_srun(const job::JobSpec& spec, const job::ImageStandIns& images,
                        const engine::Engine& engine) {
  if (spec.launch != job::LaunchBy::kSrun) return {};
  launch::Site site;
  site.images = images;
  site.srun = engine.srun_in_tasks();
  MUSTER_TRY([[maybe_unused]] const job::LaunchFacts chosen,
             launch::choose_launch({.spec = spec}, site));
  return {};
}

/// Without them, a task would run without what they prepare.
Result<void> check_pod_containers(const job::JobSpec& spec, const engine::Engine& engine) {
  const auto& containers = spec.kubernetes.containers;
  if (containers.empty() || engine.runs_pods()) return {};
  return Error{.code = ErrorCode::kRefused,
               .what = "job '" + spec.name + "' has the init container or sidecar '" +
                       containers.front().name + "', and this server does not run pods",
               .advice =
                   "do its work in the command or the image, or submit the job to a server "
                   "with the engine kubernetes"};
}

/// The error names no other project: the caller may not see it.
Result<void> check_neighbours(const job::JobSpec& spec, const JobTable& jobs,
                              const SeparationGaps& gaps) {
  if (!gaps.any()) return {};
  const bool is_alone =
      std::all_of(jobs.entries().begin(), jobs.entries().end(), [&](const auto& entry) {
        const job::Job& job = entry.second->job;
        return job.spec.project == spec.project || is_final(job.phase);
      });
  if (is_alone) return {};
  return Error{
      .code = ErrorCode::kRefused,
      .what =
          "jobs of another project run or wait, and this server cannot isolate projects from "
          "each other: " +
          std::string(gaps.is_root ? "its tasks run as root"
                                   : "its tasks share the machine's network"),
      .advice =
          "try again later; an administrator can run the server as an ordinary "
          "account with a network for each job (docs/isolation.md), or set "
          "trust_each_other: true where all projects trust each other",
      .detail = std::make_shared<const job::RefusedForNow>()};
}

Result<void> check_secrets(const job::JobSpec& spec, const Accounts* accounts) {
  Error error{
      .code = ErrorCode::kNotFound,
      .what = "project " + name_in_quotes(spec.project) + " lacks secrets that the job uses",
      .advice = "muster secret set NAME --project " + spec.project + " adds one",
      .detail = job::obstacle(job::Obstacle::Kind::kNoSecret)};
  const auto look_for = [&](const std::string& name, std::string field) {
    if (accounts != nullptr && accounts->has_secret(spec.project, name)) return;
    error.faults.push_back(
        {.field = std::move(field), .what = "there is no secret " + name_in_quotes(name)});
  };
  for (size_t i = 0; i < spec.secrets.size(); ++i) {
    look_for(spec.secrets[i].name, "secrets[" + std::to_string(i) + "].name");
  }
  const auto look_for_login = [&](const job::RegistryLogin& login, const std::string& prefix) {
    if (!login.secret.empty()) look_for(login.secret, prefix + "registry.secret");
  };
  look_for_login(spec.registry, "");
  for (const auto& [field, role] : job::roles_of(spec)) {
    look_for_login(role.registry, std::string(field) + ".");
  }
  if (error.faults.empty()) return {};
  return error;
}

Result<void> check_trees(const job::JobSpec& spec, const SiteFacts& site) {
  for (const job::Volume& volume : spec.volumes) {
    if (volume.kind != job::Volume::Kind::kTree || volume.source.empty()) continue;
    if (site.has_tree && site.has_tree(spec.project, volume.source)) continue;
    return Error{.code = ErrorCode::kNotFound,
                 .what = "the files for " + volume.target + " are not on the server: project " +
                         name_in_quotes(spec.project) + " has no tree " + volume.source +
                         "; it was never uploaded, or is no longer kept",
                 .advice = "upload them again, as with --workspace FOLDER"};
  }
  return {};
}

Result<void> check_images(const job::JobSpec& spec) {
  for (const job::Task& task : one_of_each_role(spec)) {
    if (!launch::image_of(spec, task.role).empty()) continue;
    return Error{.code = ErrorCode::kInvalid,
                 .what = task.name + " of job " + name_in_quotes(spec.name) +
                         " has no image, and this server's tasks are containers",
                 .advice = "give an image: --image NAME"};
  }
  return {};
}

Result<void> check_programs(const job::JobSpec& spec, const engine::Engine& engine,
                            const SiteFacts& site) {
  if (engine.runs_images()) {
    MUSTER_CHECK(check_container_policy(spec, site.containers));
    return check_images(spec);
  }
  for (const job::Task& task : one_of_each_role(spec)) {
    const bool only_answers = spec.kind == job::Kind::kMpi && task.role == TaskRole::kWorker;
    if (only_answers || !launch::program_of(spec, task.role, site.images).empty()) continue;
    return Error{.code = ErrorCode::kInvalid,
                 .what = task.name + " of job " + name_in_quotes(spec.name) +
                         " has no command, and this server's engine does not run images, so the "
                         "program of image " +
                         name_in_quotes(launch::image_of(spec, task.role)) + " is unknown",
                 .advice =
                     "give a command, or ask the administrator to configure one for this image "
                     "(images in the server's configuration)"};
  }
  return {};
}

}  // namespace

namespace {

/// "/data/" is "/data", and "/data/../etc" is "/etc".
std::string plain_path(const std::string& path) {
  std::string plain = std::filesystem::path(path).lexically_normal().string();
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  return plain;
}

bool is_allowed_path(const ContainerPolicy& policy, const std::string& path) {
  return std::any_of(policy.host_paths.begin(), policy.host_paths.end(),
                     [&](const auto& allowed) { return plain_path(allowed) == plain_path(path); });
}

}  // namespace

base::Result<void> check_container_policy(const job::JobSpec& spec, const ContainerPolicy& policy) {
  if (!policy.is_shared) return {};
  Error error{.code = base::ErrorCode::kRefused,
              .what = "the job uses host paths or capabilities that this server does not allow",
              .advice =
                  "an administrator can allow it: host_paths and capabilities in the "
                  "server's configuration"};
  for (size_t i = 0; i < spec.volumes.size(); ++i) {
    const job::Volume& volume = spec.volumes[i];
    if (volume.kind != job::Volume::Kind::kHostPath) continue;
    if (is_allowed_path(policy, volume.source)) continue;
    error.faults.push_back({.field = "volumes[" + std::to_string(i) + "].source",
                            .what = "'" + volume.source + "' of the hosts is not allowed"});
  }
  for (size_t i = 0; i < spec.container.capabilities.size(); ++i) {
    const std::string& name = spec.container.capabilities[i];
    if (is_one_of(name, policy.capabilities)) continue;
    error.faults.push_back({.field = "container.capabilities[" + std::to_string(i) + "]",
                            .what = "'" + name + "' is not allowed"});
  }
  if (error.faults.empty()) return {};
  return error;
}

namespace {

using base::in_quotes;

std::string instead_of_own(const std::string& project, const std::string& own) {
  if (own.empty()) return "project " + in_quotes(project) + " has no account; leave it out";
  return "leave it out to use the account of project " + in_quotes(project) + ", " + in_quotes(own);
}

}  // namespace

base::Result<void> check_slurm_policy(const job::JobSpec& spec, const SlurmPolicy& policy) {
  if (!policy.is_shared) return {};
  Error error{
      .code = base::ErrorCode::kRefused,
      .what = "the job names Slurm accounts or reservations that this server does not allow",
      .advice =
          "an administrator can allow it: slurm.job_accounts and slurm.job_reservations "
          "in the server's configuration"};
  const std::string& account = spec.slurm.account;
  const std::string own =
      job::slurm_account_of(spec.project, policy.accounts, policy.default_account);
  if (!account.empty() && account != own && !is_one_of(account, policy.job_accounts)) {
    error.faults.push_back({.field = "slurm.account",
                            .what = "the account " + in_quotes(account) + " is not allowed; " +
                                    instead_of_own(spec.project, own)});
  }
  if (!spec.slurm.reservation.empty()) {
    for (const std::string& name : base::split(spec.slurm.reservation, ',')) {
      if (is_one_of(name, policy.job_reservations)) continue;
      error.faults.push_back(
          {.field = "slurm.reservation",
           .what = "the reservation " + in_quotes(name) + " is not allowed; leave it out"});
    }
  }
  if (error.faults.empty()) return {};
  return error;
}

base::Result<void> check_kubernetes_policy(const job::JobSpec& spec,
                                           const KubernetesPolicy& policy) {
  if (!policy.is_shared) return {};
  Error error{
      .code = base::ErrorCode::kRefused,
      .what = "the job names objects or devices of Kubernetes that this server does not allow",
      .advice =
          "an administrator can allow them: kubernetes.job_service_accounts and the like "
          "in the server's configuration"};
  const auto check = [&](const std::string& name, const std::vector<std::string>& allowed,
                         const std::string& field, const std::string& kind) {
    if (name.empty() || is_one_of(name, allowed)) return;
    error.faults.push_back({.field = "kubernetes." + field,
                            .what = "the " + kind + " " + in_quotes(name) + " is not allowed"});
  };
  const job::KubernetesSpec& names = spec.kubernetes;
  check(names.service_account, policy.service_accounts, "service_account", "service account");
  check(names.priority_class, policy.priority_classes, "priority_class", "priority class");
  for (const std::string& name : names.image_pull_secrets) {
    check(name, policy.pull_secrets, "image_pull_secrets", "secret");
  }
  for (const std::string& text : names.claims) {
    const auto claim = job::claim_of(text);
    const bool is_claim = !claim || claim->kind == job::KubernetesClaim::Kind::kClaim;
    check(claim ? claim->object() : text, policy.claims, "claims",
          is_claim ? "volume claim" : "object");
  }
  for (const auto& [name, count] : names.devices) {
    check(name, policy.devices, "devices." + name, "device");
  }
  if (error.faults.empty()) return {};
  return error;
}

namespace {

/// job::validate() also checks specs to which the command line has yet to add their array.
std::vector<base::Fault> faults_of_whole(const job::JobSpec& spec) {
  std::vector<base::Fault> faults = job::validate(spec);
  for (size_t i = 0; i < spec.after.size(); ++i) {
    if (!spec.after[i].by_member || !spec.array.is_none()) continue;
    faults.push_back({.field = "after[" + std::to_string(i) + "].by_member",
                      .what = "is for the members of an array; this job is not an array"});
  }
  return faults;
}

}  // namespace

Result<void> check_content(const job::JobSpec& spec, const JobTable& jobs, const Projects& projects,
                           const engine::Engine& engine, const SiteFacts& site,
                           const Accounts* accounts) {
  if (auto faults = faults_of_whole(spec); !faults.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the specification of the job is invalid",
                 .faults = std::move(faults)};
  }
  MUSTER_CHECK(projects.find(spec.project));
  if (projects.has_children(spec.project)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "project " + name_in_quotes(spec.project) +
                         " has projects below it, so it takes no jobs",
                 .advice = "submit the job to one of these: muster project list"};
  }
  MUSTER_CHECK(check_programs(spec, engine, site));
  MUSTER_CHECK(check_pod_containers(spec, engine));
  MUSTER_CHECK(engine.check_spec(spec));
  MUSTER_CHECK(check_kubernetes_policy(spec, site.kubernetes));
  MUSTER_CHECK(check_slurm_policy(spec, site.slurm));
  MUSTER_CHECK(check_srun(spec, site.images, engine));
  MUSTER_CHECK(check_neighbours(spec, jobs, site.gaps));
  MUSTER_CHECK(check_secrets(spec, accounts));
  return check_trees(spec, site);
}

namespace {

/// Without indexes, an array has one for each of its lines.
bool has_same_indexes(const job::ArraySpec& left, const job::ArraySpec& right) {
  if (left.is_none() || right.is_none()) return left.is_none() && right.is_none();
  const auto of_left = job::indexes_of(left);
  const auto of_right = job::indexes_of(right);
  return of_left && of_right && *of_left == *of_right;
}

}  // namespace

Result<void> check_repetition(const job::JobSpec& given, const job::JobSpec& stored,
                              bool is_renamed) {
  if (given.project != stored.project) {
    // Its user may no longer see what is in that project.
    return Error{.code = ErrorCode::kConflict,
                 .what = "the idempotency key of job " + name_in_quotes(given.name) +
                         " was used for a submission to another project",
                 .advice = "submit the job with another key",
                 .faults = {{.field = "project", .what = "differs"}}};
  }
  job::JobSpec comparable = given;
  comparable.labels = stored.labels;
  comparable.annotations = stored.annotations;
  if (is_renamed) comparable.name = stored.name;
  // Where a container or pod has these of its own, the program does not see those of the shell.
  const std::set<std::string> inherited = job::inherited_variables(stored);
  for (const std::string& name : job::inherited_variables(given)) {
    const auto known = stored.environment.find(name);
    if (!inherited.contains(name) || known == stored.environment.end()) continue;
    comparable.environment[name] = known->second;
  }
  if (job::inherits_folder(given) && job::inherits_folder(stored)) {
    comparable.folder = stored.folder;
  }
  if (has_same_indexes(given.array, stored.array)) {
    comparable.array = stored.array;
    comparable.array.lines = given.array.lines;
  }
  // An array waits for the ids of jobs: Controller::resolved_array().
  if (!stored.array.is_none()) comparable.after = stored.after;
  std::vector<base::Fault> faults;
  for (std::string& field : job::differing_fields(stored, comparable)) {
    faults.push_back({.field = std::move(field), .what = "differs"});
  }
  if (faults.empty()) return {};
  return Error{
      .code = ErrorCode::kConflict,
      .what = "the idempotency key of job " + name_in_quotes(given.name) +
              " was used for another submission, " + name_in_quotes(stored.name),
      .advice = "submit the job with another key; " + name_in_quotes(stored.name) + " is unchanged",
      .faults = std::move(faults)};
}

Result<void> check_submission(const job::JobSpec& spec, const JobTable& jobs,
                              const Projects& projects, const engine::Engine& engine,
                              const SiteFacts& site, const Accounts* accounts) {
  MUSTER_CHECK(check_content(spec, jobs, projects, engine, site, accounts));
  if (jobs.is_taken(spec)) return name_taken(spec.name);
  return {};
}

}  // namespace muster::control
