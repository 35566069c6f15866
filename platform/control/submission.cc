// What a new job must be before it is taken: whole, in a project that takes jobs, with everything
// at hand that it names.
#include <algorithm>

#include "control/controller.h"
#include "control/unknown_name.h"
#include "job/spec.h"
#include "job/validate.h"
#include "launch/plan.h"
#include "launch/plan_task.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Role;

namespace {

Error name_taken(const std::string& name) {
  return {.code = ErrorCode::kConflict,
          .what = "there is a job " + name_in_quotes(name) + " already",
          .advice = "choose another name, or remove it: muster delete " + name};
}

/// One task of each role that there is.
std::vector<job::Task> one_of_each_role(const job::JobSpec& spec) {
  std::vector<job::Task> tasks;
  for (job::Task& task : job::tasks_of(spec)) {
    const auto same = [&](const job::Task& known) { return known.role == task.role; };
    if (std::none_of(tasks.begin(), tasks.end(), same)) tasks.push_back(std::move(task));
  }
  return tasks;
}

/// What would be refused when it starts, which may be a long time from now.
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

}  // namespace

Result<void> Controller::check_submission(const job::JobSpec& spec) const {
  if (auto faults = job::validate(spec); !faults.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the job cannot be run as it is",
                 .faults = std::move(faults)};
  }
  MUSTER_CHECK(projects_.find(spec.project));
  if (projects_.has_children(spec.project)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "project " + name_in_quotes(spec.project) +
                         " has projects below it, and jobs "
                         "belong to those",
                 .advice = "muster project list shows them"};
  }
  MUSTER_CHECK(check_programs(spec));
  MUSTER_CHECK(check_slurm_policy(spec, site_.slurm));
  MUSTER_CHECK(check_srun(spec, site_.images, parts_.engine));
  MUSTER_CHECK(check_secrets(spec));
  MUSTER_CHECK(check_trees(spec));
  if (by_name(name_of(spec)) != nullptr) return name_taken(spec.name);
  return {};
}

Result<void> Controller::check_secrets(const job::JobSpec& spec) const {
  Error error{
      .code = ErrorCode::kNotFound,
      .what = "project " + name_in_quotes(spec.project) + " has not all of the job's secrets",
      .advice = "muster secret set NAME --project " + spec.project + " adds one"};
  const auto look_for = [&](const std::string& name, std::string field) {
    if (parts_.accounts != nullptr && parts_.accounts->has_secret(spec.project, name)) return;
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

Result<void> Controller::check_trees(const job::JobSpec& spec) const {
  for (const job::Volume& volume : spec.volumes) {
    if (volume.kind != job::Volume::Kind::kTree || volume.source.empty()) continue;
    if (site_.has_tree && site_.has_tree(spec.project, volume.source)) continue;
    return Error{.code = ErrorCode::kNotFound,
                 .what = "the files for " + volume.target + " are not in project " +
                         name_in_quotes(spec.project) + ": there is no tree " + volume.source,
                 .advice = "send them again"};
  }
  return {};
}

/// Where tasks are containers, there is nothing but an image that they could be made of.
Result<void> Controller::check_images(const job::JobSpec& spec) const {
  for (const job::Task& task : one_of_each_role(spec)) {
    if (!launch::image_of(spec, task.role).empty()) continue;
    return Error{.code = ErrorCode::kInvalid,
                 .what = "nothing says which image " + task.name + " of job " +
                         name_in_quotes(spec.name) +
                         " runs in, and this server's tasks are containers",
                 .advice = "name one: --image NAME"};
  }
  return {};
}

/// An engine that runs images finds out from them what they run. Where it runs none, somebody has
/// to say it.
Result<void> Controller::check_programs(const job::JobSpec& spec) const {
  if (parts_.engine.runs_images()) {
    MUSTER_CHECK(check_container_policy(spec, site_.containers));
    return check_images(spec);
  }
  for (const job::Task& task : one_of_each_role(spec)) {
    const bool only_answers = spec.kind == job::Kind::kMpi && task.role == Role::kWorker;
    if (only_answers || !launch::program_of(spec, task.role, site_.images).empty()) continue;
    return Error{.code = ErrorCode::kInvalid,
                 .what = "nothing says what " + task.name + " of job " + name_in_quotes(spec.name) +
                         " runs: there is no command, and this server's engine runs no images, so "
                         "it cannot look into " +
                         name_in_quotes(launch::image_of(spec, task.role)),
                 .advice =
                     "say a command, or have the administrator name what stands in for that "
                     "image (images in the server's configuration)"};
  }
  return {};
}

}  // namespace muster::control
