#include "engine/container/container_engine.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "engine/container/container_engine_impl.h"
#include "engine/container/container_exec.h"
#include "engine/container/labels.h"
#include "engine/container/preparation.h"
#include "engine/exec_words.h"
#include "engine/folder/task_folder.h"
#include "engine/nvml_library.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// What is put into containers. They need nothing of the image.
constexpr std::array kPrograms{"muster-shim", "muster-helper", kRemoteShell};

Result<std::vector<workspace::ArchiveEntry>> read_programs(const fs::path& folder) {
  std::vector<workspace::ArchiveEntry> programs;
  for (const char* name : kPrograms) {
    auto content = base::read_file(folder / name, size_t{256} << 20);
    if (!content) {
      return Error{.code = ErrorCode::kNotFound,
                   .what = "cannot read " + (folder / name).string() +
                           ", which is put into containers: " + content.error().what,
                   .advice = "install it beside the muster program"};
    }
    programs.push_back({.path = name, .content = *std::move(content), .mode = 0755, .link = {}});
  }
  return programs;
}

/// Podman does not say; of this machine one can look. Elsewhere its administrator's word is taken.
bool gives_gpus(const HeldHost& host, const DockerInfo& info) {
  if (!info.is_podman) return info.has_nvidia_runtime || info.has_cdi;
  if (!host.is_this_machine()) return true;
  std::error_code ignored;
  return fs::exists("/etc/cdi/nvidia.yaml", ignored) ||
         fs::exists("/var/run/cdi/nvidia.yaml", ignored);
}

}  // namespace

// --- being made

ContainerEngine::Impl::Impl(base::EventLoop& its_loop, ContainerEngineOptions its_options)
    : loop(its_loop),
      options(std::move(its_options)),
      files(loop),
      trees(loop, options.folder, options.unpack_tree),
      fetch(loop),
      background(loop),
      removals(loop) {}

/// What follows tasks goes before the hosts that it speaks to.
ContainerEngine::Impl::~Impl() {
  alive.reset();
  for (const auto& [key, task] : tasks) {
    if (task->follower) task->follower->hang_up();
  }
  changes.clear();
  starting.clear();
  tasks.clear();
}

Result<void> ContainerEngine::Impl::meet_hosts() {
  for (const ContainerHostOptions& how : options.hosts) {
    if (hosts.count(how.name) > 0) {
      return Error{.code = ErrorCode::kInvalid,
                   .what = "there are two hosts '" + how.name + "'",
                   .advice = "give each a name of its own"};
    }
    connections.push_back(
        std::make_unique<ContainerHost>(loop, how, options.patience, [this] { host_changed(); }));
    hosts[how.name] = std::make_unique<HeldHost>(loop, *connections.back(), how, options.owner);
  }
  MUSTER_CHECK(meet(loop, connections));
  ask_what_they_have();
  return {};
}

void ContainerEngine::Impl::ask_what_they_have() {
  std::vector<Step> steps;
  for (const auto& [name, host] : hosts) {
    host->is_there = host->host.node().has_value();
    if (!host->is_there) continue;
    steps.emplace_back([this, &asked = *host](Then then) {
      take_inventory(asked, [then = std::move(then)] { then({}); });
    });
  }
  if (steps.empty()) return;
  bool done = false;
  all_at_once(steps, [this, &done](const Result<void>&) {
    done = true;
    loop.stop();
  });
  while (!done) loop.run();
}

Result<std::unique_ptr<ContainerEngine>> ContainerEngine::open(base::EventLoop& loop,
                                                               ContainerEngineOptions options) {
  MUSTER_CHECK(base::make_private_folder(options.folder));
  auto impl = std::make_unique<Impl>(loop, std::move(options));
  MUSTER_TRY(impl->programs, read_programs(impl->options.programs));
  MUSTER_CHECK(impl->meet_hosts());
  return std::unique_ptr<ContainerEngine>(new ContainerEngine(std::move(impl)));
}

ContainerEngine::ContainerEngine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ContainerEngine::~ContainerEngine() = default;

// --- hosts

void ContainerEngine::Impl::host_changed() {
  for (const auto& [name, host] : hosts) {
    const bool is_there = host->host.node().has_value();
    if (std::exchange(host->is_there, is_there) == is_there) continue;
    if (is_there && !host->inventory) {
      take_inventory(*host, [this, &changed = *host] {
        if (swept && changed.inventory) sweep(changed);
      });
    }
    if (!is_there) soon([this, &lost = *host] { abandon(lost); });
  }
  const auto all = watchers;  // a callback may take or drop an interest
  for (const auto& watcher : all) {
    if (const auto changed = watcher.lock()) (*changed)();
  }
  std::erase_if(watchers, [](const auto& watcher) { return watcher.expired(); });
}

HeldHost* ContainerEngine::Impl::host_of(const std::string& node) const {
  const auto found = hosts.find(node);
  return found == hosts.end() ? nullptr : found->second.get();
}

std::vector<Node> ContainerEngine::nodes() {
  std::vector<Node> nodes;
  for (const auto& [name, host] : impl_->hosts) {
    if (auto node = host->host.node()) nodes.push_back(*std::move(node));
  }
  return nodes;
}

std::shared_ptr<void> ContainerEngine::watch_nodes(std::function<void()> changed) {
  auto watcher = std::make_shared<std::function<void()>>(std::move(changed));
  impl_->watchers.emplace_back(watcher);
  return watcher;
}

/// A host's own network knows each of its tasks by name. Past one host there is none.
launch::Reach ContainerEngine::reach(const std::vector<std::string>& nodes) const {
  const bool is_one = std::all_of(nodes.begin(), nodes.end(),
                                  [&](const std::string& node) { return node == nodes.front(); });
  return is_one ? launch::Reach::kNames : launch::Reach::kHosts;
}

std::shared_ptr<void> ContainerEngine::prepare(
    const Gang&, std::vector<ImageWish> images,
    std::function<void(const job::FetchesImage&)> progress, Prepared done) {
  return prepare_images(
      impl_->loop, [impl = impl_.get()](const std::string& node) { return impl->host_of(node); },
      std::move(images), std::move(progress), std::move(done));
}

Engine::ProgramsInTasks ContainerEngine::programs_in_tasks() const {
  const std::string folder = kProgramsFolder;
  return {.shim = folder + "/muster-shim", .remote_shell = folder + "/" + kRemoteShell};
}

// --- tasks

/// Whoever listens leads: no other server is at work here. By when it has taken up what it knows,
/// what is left on the hosts is nobody's.
void ContainerEngine::listen(Listener listener) {
  const bool begins = impl_->listener == nullptr && listener != nullptr && !impl_->swept;
  impl_->listener = std::move(listener);
  if (begins) impl_->soon([impl = impl_.get()] { impl->sweep(); });
}

std::string ContainerEngine::generated_folder(const Gang&, std::string_view, job::Sandbox) const {
  return kGeneratedFolder;
}

Found ContainerEngine::adopt(const Gang& gang, const std::string& task) {
  return impl_->adopt(gang, task);
}

void ContainerEngine::scrub(const Gang& gang) {
  for (const auto& [name, host] : impl_->hosts) {
    const auto network = impl_->networks.extract({gang, host.get()});
    if (network.empty()) continue;
    impl_->removals.add(*host, Removals::Kind::kNetwork, network.mapped());
  }
}

Result<void> ContainerEngine::remove(const std::string& job_id) {
  const fs::path volumes = impl_->job_folder(job_id) / "volumes";
  std::error_code ignored;
  for (const auto& [name, host] : impl_->hosts) {
    if (!fs::exists(volumes / name, ignored)) continue;
    impl_->remove_volumes(*host, job_id);
  }
  return impl_->trees.remove(job_id);
}

void ContainerEngine::measure(const std::string& job_id, Measured done) {
  impl_->trees.measure(job_id, std::move(done));
}

Result<std::unique_ptr<LogCursor>> ContainerEngine::open_log(const Gang& gang,
                                                             const std::string& task) {
  return open_log_in(impl_->folder_of(gang, task), task);
}

std::shared_ptr<void> ContainerEngine::watch_log(const Gang& gang, const std::string& task,
                                                 std::function<void()> grown) {
  return impl_->files.watch(impl_->folder_of(gang, task).log(), std::move(grown));
}

Result<std::unique_ptr<Exec>> ContainerEngine::exec(const Gang& gang, const std::string& name,
                                                    const ExecPlan& plan, ExecHandlers handlers) {
  const auto task = impl_->find({gang, name});
  if (task == nullptr || task->start || task->end) return not_running(name);
  return run_in_container(impl_->loop, task->host->client(), task->container, plan,
                          std::move(handlers));
}

Result<std::unique_ptr<Exec>> ContainerEngine::attach(const Gang& gang, const std::string& name,
                                                      ExecHandlers handlers) {
  const auto task = impl_->find({gang, name});
  if (task == nullptr || task->start || task->end) return not_running(name);
  const TaskEnd end{
      .status = [task] { return task->end ? std::optional(task->end->status) : std::nullopt; },
      .wait =
          [impl = impl_.get(), task](std::function<void()> over) {
            if (task->end) return impl->soon(std::move(over));
            task->when_over.push_back(std::move(over));
          }};
  return attach_to_container(impl_->loop, task->host->client(), task->container, end,
                             std::move(handlers));
}

MetricReader ContainerEngine::open_metrics(const Gang& gang, const std::string& task) {
  return MetricReader(impl_->folder_of(gang, task).metrics());
}

std::optional<fs::path> ContainerEngine::artifacts_folder(const std::string& job_id) const {
  const fs::path folder = impl_->job_folder(job_id) / "artifacts";
  std::error_code error;
  return fs::is_directory(folder, error) ? std::optional(folder) : std::nullopt;
}

std::vector<RankPlace> ContainerEngine::ranks(const Gang& gang,
                                              const std::vector<std::string>& tasks) const {
  std::vector<RankPlace> places;
  for (const std::string& task : tasks) {
    const auto found = ranks_in(impl_->folder_of(gang, task), task);
    places.insert(places.end(), found.begin(), found.end());
  }
  return places;
}

std::string ContainerEngine::mpi_of(const Gang& gang, const std::string& task) const {
  return mpi_in(impl_->folder_of(gang, task));
}

// --- small things

TaskFolder ContainerEngine::Impl::folder_of(const Gang& gang, std::string_view task) const {
  return {job_folder(gang.job_id) / std::to_string(gang.attempt) / task};
}

fs::path ContainerEngine::Impl::job_folder(const std::string& job_id) const {
  return options.folder / job_id;
}

std::shared_ptr<HeldTask> ContainerEngine::Impl::find(const TaskKey& key) const {
  const auto found = tasks.find(key);
  return found == tasks.end() ? nullptr : found->second;
}

bool ContainerEngine::Impl::has_tasks(const Gang& gang) const {
  const auto is_of = [&](const auto& held) { return held.first.first == gang; };
  return std::any_of(tasks.begin(), tasks.end(), is_of);
}

ContainerSite ContainerEngine::Impl::site_for(const GangStart& start,
                                              const launch::TaskPlan& plan) const {
  HeldHost* const host = host_of(plan.node);
  const auto network = networks.find({start.gang, host});
  const auto info = host->host.info();
  return {.owner = options.owner,
          .network = network == networks.end() ? "host" : network->second,
          .log_quota = options.log_quota,
          .sampling = {.first = options.first_sample,
                       .interval = options.sample_interval,
                       .nvml = kNvml,
                       .gpus = {}},
          .gives_gpus = info && gives_gpus(*host, *info)};
}

void ContainerEngine::Impl::soon(std::function<void()> action) {
  loop.post([still = std::weak_ptr<bool>(alive), action = std::move(action)] {
    if (!still.expired()) action();
  });
}

}  // namespace muster::engine
