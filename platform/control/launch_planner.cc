#include "control/launch_planner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "control/gang_tasks.h"
#include "launch/plan_task.h"
#include "launch/task_environment.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Job;
using job::Task;
using launch::Reach;

namespace {

constexpr std::array<std::pair<Reach, std::string_view>, 3> kReaches{
    {{Reach::kLoopback, "loopback"}, {Reach::kNames, "names"}, {Reach::kHosts, "hosts"}}};

/// As launch::Site::gpus_of: a single empty name stands for GPUs without names, of which a node may
/// have many.
std::vector<std::string> gpu_names(const engine::Node& node) {
  if (!node.gpu_names.empty() || node.gpus == 0) return node.gpu_names;
  return {std::string()};
}

/// The values of the secrets that a job uses. They existed when it was submitted; since then a
/// secret may have been removed, or the server started with another key.
Result<std::map<std::string, std::string>> secrets_of(const Job& job, const Accounts* accounts) {
  std::map<std::string, std::string> values;
  if (accounts == nullptr) return values;
  for (const job::SecretUse& use : job.spec.secrets) {
    MUSTER_TRY(values[use.name], accounts->open_secret(job.spec.project, use.name));
  }
  return values;
}

bool needs_a_shell(const launch::TaskPlan& plan) {
  return !plan.argv.empty() && (plan.argv.front() == "sh" || plan.argv.front() == "/bin/sh");
}

/// Without this check a missing shell would be reported as a missing file.
Result<void> check_shells(const std::vector<launch::TaskPlan>& tasks, const ImagesByTask& images) {
  for (const launch::TaskPlan& task : tasks) {
    const auto found = images.find(task.task);
    if (found == images.end() || found->second.has_shell || !needs_a_shell(task)) continue;
    return Error{
        .code = ErrorCode::kRefused,
        .what = task.task + " runs a shell command line, but image '" + found->second.image +
                "' has no shell (/bin/sh)",
        .advice =
            "give the program and its arguments as separate words, or use an image with a shell"};
  }
  return {};
}

/// The image of a role, its user, and the login of its registry. A role with an image of its own
/// has its own user and login.
struct RoleImage {
  const std::string& image;
  const std::string& user;
  const job::RegistryLogin& registry;
};

RoleImage role_image(const job::JobSpec& spec, job::TaskRole role) {
  const job::RoleSpec* const own = launch::role_spec(spec, role);
  if (own == nullptr || own->image.empty()) return {spec.image, spec.user, spec.registry};
  return {own->image, own->user, own->registry};
}

Result<std::string> password_of(const job::RegistryLogin& login, const std::string& project,
                                const Accounts* accounts) {
  if (login.secret.empty()) return std::string();
  if (accounts == nullptr) {
    return Error{
        .code = ErrorCode::kNotFound,
        .what = "the login to a registry needs a secret, but this server keeps no secrets"};
  }
  return accounts->open_secret(project, login.secret);
}

}  // namespace

std::string to_text(const KeptSeed& kept) {
  const auto reach = std::find_if(kReaches.begin(), kReaches.end(),
                                  [&](const auto& known) { return known.first == kept.reach; });
  return std::string(reach->second) + " " + launch::to_text(kept.seed);
}

std::optional<KeptSeed> kept_seed_of(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto reach = std::find_if(kReaches.begin(), kReaches.end(), [&](const auto& known) {
    return known.second == text.substr(0, space);
  });
  const auto seed = launch::seed_of(text.substr(space + 1));
  if (reach == kReaches.end() || !seed) return std::nullopt;
  return KeptSeed{.seed = *seed, .reach = reach->first};
}

std::string seal_name(const Job& job) {
  return "gang " + job.id + "/" + std::to_string(job.attempt);
}

std::string LaunchPlanner::unix_account_of(const Job& job) const {
  if (!site_.runs_as_accounts || accounts_ == nullptr) return "";
  return accounts_->unix_account_of(job.owner);
}

launch::Site LaunchPlanner::site_of(const Job& job, std::optional<Reach> reach,
                                    const ImagesByTask& images) const {
  const engine::Engine::ProgramsInTasks programs = engine_.programs_in_tasks();
  const auto seen = [](const std::string& by_tasks, const std::string& here) {
    return by_tasks.empty() ? here : by_tasks;
  };
  const std::string account = unix_account_of(job);
  launch::Site site{.sshd = site_.sshd,
                    .user = account.empty() ? site_.user : account,
                    .programs = site_.programs,
                    .rank_agent = seen(programs.shim, site_.rank_agent),
                    .images = site_.images,
                    .reach = reach ? *reach : engine_.reach(nodes_of(job)),
                    .image_facts = images,
                    .remote_shell = seen(programs.remote_shell, site_.remote_shell),
                    .srun = engine_.srun_in_tasks(),
                    .joiner = programs.joiner,
                    .launch = job.launch ? job.launch->by : job::LaunchBy::kSsh};
  site.generated_folder = [this, &job](std::string_view task) {
    return engine_.generated_folder({job.id, job.attempt}, task, job.spec.sandbox);
  };
  site.gpus_of = [this](const std::string& name) {
    const engine::Node* const node = nodes_.find(name);
    return node ? gpu_names(*node) : std::vector<std::string>();
  };
  site.address_of = [this](const std::string& name) {
    const engine::Node* const node = nodes_.find(name);
    return node ? node->address : std::string();
  };
  return site;
}

Result<launch::Site> LaunchPlanner::site_with_secrets(const Job& job, std::optional<Reach> reach,
                                                      const ImagesByTask& images) const {
  launch::Site site = site_of(job, reach, images);
  MUSTER_TRY(site.secrets, secrets_of(job, accounts_));
  return site;
}

Result<LaunchPlanner::Planned> LaunchPlanner::plan(Job& job, std::optional<Reach> reach,
                                                   const ImagesByTask& images) const {
  MUSTER_TRY(launch::Site site, site_with_secrets(job, reach, images));
  if (job.spec.kind == job::Kind::kMpi) {
    MUSTER_TRY(job.launch, launch::choose_launch(job, site));
    site.launch = job.launch->by;
  }
  const launch::GangSeed seed = launch::make_seed(random_);
  MUSTER_TRY(launch::GangPlan plan, launch::plan_gang(job, seed, site));
  for (auto* stage : {&plan.first, &plan.then}) {
    MUSTER_CHECK(check_shells(*stage, images));
    for (launch::TaskPlan& task : *stage) task.unix_account = unix_account_of(job);
  }
  return Planned{.plan = std::move(plan), .seed = seed};
}

Result<launch::Growth> LaunchPlanner::plan_growth(const Job& job,
                                                  const std::set<std::string>& joining,
                                                  const KeptSeed& kept,
                                                  const ImagesByTask& images) const {
  std::vector<std::string> nodes;
  for (const Task& task : job.tasks) {
    if (!task.node.empty() && !task.left) nodes.push_back(task.node);
  }
  const Reach needed = engine_.reach(nodes);
  if (!joining.empty() && needed == Reach::kHosts && kept.reach != needed) {
    return Error{
        .code = ErrorCode::kRefused,
        .what =
            "the other tasks are on a network of a single machine, and this worker is on another "
            "machine, which was added after their start"};
  }
  MUSTER_TRY(const launch::Site site, site_with_secrets(job, kept.reach, images));
  MUSTER_TRY(launch::Growth growth, launch::plan_growth(job, joining, kept.seed, site));
  MUSTER_CHECK(check_shells(growth.joining, images));
  for (launch::TaskPlan& task : growth.joining) task.unix_account = unix_account_of(job);
  return growth;
}

Result<std::vector<engine::ImageRequest>> LaunchPlanner::images_of(
    const Job& job, const std::vector<const Task*>& tasks) const {
  std::vector<engine::ImageRequest> images;
  const auto shared = engine_.runs_pods() ? std::make_shared<const Job>(job) : nullptr;
  for (const Task* const task : tasks) {
    const RoleImage of = role_image(job.spec, task->role);
    MUSTER_TRY(std::string password, password_of(of.registry, job.spec.project, accounts_));
    images.push_back({.task = task->name,
                      .node = task->node,
                      .image = of.image,
                      .user = of.user,
                      .pull = job.spec.container.pull,
                      .registry = of.registry.server,
                      .username = of.registry.username,
                      .password = std::move(password),
                      .job = shared});
  }
  return images;
}

std::vector<job::Fact> LaunchPlanner::notes_on_first_start(const Job& job) const {
  std::vector<job::Fact> notes;
  if (job.attempt > 1) return notes;
  if (!job.spec.image.empty() && !engine_.runs_images()) {
    const job::ImageStandIn* const image = job::find_stand_in(site_.images, job.spec.image);
    const bool has_stand_in =
        image != nullptr && !image->command.empty() && job.spec.command.empty();
    notes.emplace_back(job::ImageNotRun{.image = job.spec.image, .has_stand_in = has_stand_in});
  }
  if (engine_.runs_pods() && !job.spec.replaces_entrypoint) {
    notes.emplace_back(job::Remark{
        "the entry point of an image cannot be read through Kubernetes: the command runs "
        "without it"});
  }
  for (std::string& text :
       launch::notes_on_own_variables(job.spec, site_.images, engine_.runs_images())) {
    notes.emplace_back(job::Remark{std::move(text)});
  }
  return notes;
}

void LaunchPlanner::keep(Job& job, const KeptSeed& kept) const {
  if (accounts_ == nullptr) return;
  job.sealed_seed = accounts_->seal(to_text(kept), job.spec.project, seal_name(job));
}

Result<KeptSeed> LaunchPlanner::kept_seed(const Job& job) const {
  Result<std::string> text =
      Error{.code = ErrorCode::kNotFound,
            .what = "the earlier server had no secret key to store them with"};
  if (accounts_ != nullptr && !job.sealed_seed.empty()) {
    text = accounts_->open(job.sealed_seed, job.spec.project, seal_name(job));
  }
  if (!text) return text.error();
  if (auto kept = kept_seed_of(*text)) return *std::move(kept);
  return Error{.code = ErrorCode::kInternal, .what = "the stored keys are damaged"};
}

}  // namespace muster::control
