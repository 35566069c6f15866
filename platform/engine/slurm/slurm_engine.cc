#include "engine/slurm/slurm_engine.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "engine/folder/task_folder.h"
#include "engine/folder/trees.h"
#include "engine/slurm/allocations.h"
#include "engine/slurm/gang_start.h"
#include "engine/slurm/gang_table.h"
#include "engine/slurm/job_watch.h"
#include "engine/slurm/node_lines.h"
#include "engine/slurm/open_client.h"
#include "engine/slurm/queue.h"
#include "engine/slurm/reports.h"
#include "engine/slurm/submission.h"
#include "engine/slurm/task_life.h"
#include "engine/slurm/task_orders.h"

namespace muster::engine {

namespace fs = std::filesystem;

using slurm::GangPointer;
using slurm::TaskPointer;

/// The parts of the engine, each after those that it uses.
struct SlurmEngine::Impl {
  Impl(base::EventLoop& its_loop, slurm::SlurmEngineOptions its_options,
       std::unique_ptr<slurm::SlurmClient> its_client)
      : loop(its_loop), options(std::move(its_options)), client(std::move(its_client)) {
    cluster.poll();
  }
  ~Impl() {
    client.reset();  // ends all answers
    callback.reset();
    gangs.clear();
  }

  /// Starts to listen for muster-nodes, and reads what an earlier server left. Not before the
  /// engine is first used: a server that does not lead must change nothing.
  void begin();
  AdoptionResult adopt(const GangId& gang, const std::string& name);
  AdoptionResult adopt_started(const GangPointer& gang, const TaskPointer& task);

  base::EventLoop& loop;
  const slurm::SlurmEngineOptions options;
  std::unique_ptr<slurm::SlurmClient> client;
  slurm::Callback callback;  ///< empty until begin()
  JobTrees trees{loop, options.folder, options.unpack_tree};
  slurm::Reports reports{loop};
  slurm::GangTable gangs{loop, options.folder};
  slurm::SlurmQueue queue{loop, options, *client, reports};
  slurm::ClusterNodes cluster{loop, options, *client, reports, queue};
  slurm::TaskOrders orders{loop, gangs, reports};
  slurm::TaskLife tasks{loop, options, gangs, reports, queue, orders};
  slurm::GangStarter starter{options, trees, gangs, reports, orders, tasks};
  slurm::Allocations allocations{loop,    options, *client, callback, gangs,
                                 reports, queue,   tasks,   starter};
  slurm::SlurmJobWatch jobs{loop,    options, *client, callback, gangs,
                            reports, queue,   tasks,   starter,  allocations};
  slurm::NodeLines lines{loop, options, gangs, queue, orders, tasks, starter, allocations, jobs};
};

Result<std::unique_ptr<SlurmEngine>> SlurmEngine::open(base::EventLoop& loop,
                                                       slurm::SlurmEngineOptions options) {
  MUSTER_TRY(auto client, slurm::open_client(loop, options));
  return std::make_unique<SlurmEngine>(loop, std::move(options), std::move(client));
}

SlurmEngine::SlurmEngine(base::EventLoop& loop, slurm::SlurmEngineOptions options,
                         std::unique_ptr<slurm::SlurmClient> client)
    : impl_(std::make_unique<Impl>(loop, std::move(options), std::move(client))) {}

SlurmEngine::~SlurmEngine() = default;

void SlurmEngine::Impl::begin() {
  if (callback) return;
  callback = node::open_callback_site(loop,
                                      {.folder = options.folder,
                                       .owner = options.owner,
                                       .bind = options.callback_bind,
                                       .port = options.callback_port,
                                       .hosts = options.callback_hosts,
                                       .flag = "--slurm-callback"},
                                      lines.hub_options());
  if (!*callback) {
    base::Error error = callback->error();
    error.what = "Slurm's nodes cannot call this server back: " + error.what;
    base::log_error(error.what);
    callback.emplace(std::move(error));
  }
  allocations.listen([this](const GangPointer& gang, const slurm::ListedJob& listed) {
    jobs.update(gang, listed);
  });
  gangs.load();
  queue.begin({.has_gangs = [this] { return !gangs.all().empty(); },
               .on_jobs =
                   [this](uint64_t poll, const std::vector<slurm::ListedJob>& all) {
                     jobs.take_listing(poll, all);
                   },
               .on_away = [this] { jobs.controller_away(); },
               .on_back = [this] { jobs.controller_back(); },
               .on_cancelled = [this](const std::set<uint64_t>& ids) { jobs.cancelled(ids); }});
}

// --- the cluster

launch::Reach SlurmEngine::reach(const std::vector<std::string>& nodes) const {
  const bool one = std::all_of(nodes.begin(), nodes.end(),
                               [&](const std::string& node) { return node == nodes.front(); });
  return one ? launch::Reach::kLoopback : launch::Reach::kHosts;
}

Engine::ProgramsInTasks SlurmEngine::programs_in_tasks() const {
  const std::string folder = impl_->options.node_programs();
  return {.shim = folder + "/muster-shim",
          .remote_shell = folder + "/muster-rsh",
          .joiner = folder + "/muster-node"};
}

std::string SlurmEngine::srun_in_tasks() const {
  const auto srun = base::find_program("srun", base::current_environment());
  return srun ? *srun : "";
}

std::vector<Node> SlurmEngine::nodes() {
  return impl_->cluster.list();
}

std::shared_ptr<void> SlurmEngine::watch_nodes(std::function<void()> changed) {
  return impl_->cluster.watch(std::move(changed));
}

// --- allocations

Result<void> SlurmEngine::check_allocation_request(const AllocationRequest& wish) const {
  const auto submission = slurm::submission_for(wish, impl_->options);
  if (!submission) return submission.error();
  return {};
}

void SlurmEngine::set_allocation_listener(AllocationListener listener) {
  impl_->reports.listen_to_allocations(std::move(listener));
}

void SlurmEngine::request_allocation(const GangId& gang, AllocationRequest wish) {
  impl_->begin();
  impl_->allocations.request(gang, std::move(wish));
}

void SlurmEngine::release_allocation(const GangId& gang) {
  impl_->begin();
  impl_->allocations.give_back(gang);
}

// --- tasks

/// A caller that listens leads: no other server works in the folder.
void SlurmEngine::listen(Listener listener) {
  if (!impl_->reports.listen(std::move(listener))) return;
  impl_->trees.sweep();
  impl_->begin();
}

void SlurmEngine::start(const GangId& gang, std::vector<launch::TaskPlan> tasks, Done done) {
  impl_->begin();
  impl_->starter.start(gang, std::move(tasks), std::move(done));
}

void SlurmEngine::change_files(const GangId& gang, std::vector<launch::FileChange> changes,
                               Done done) {
  impl_->orders.change_files(gang, std::move(changes), std::move(done));
}

void SlurmEngine::stop(const GangId& gang, const std::vector<std::string>& tasks, StopMode mode) {
  impl_->starter.stop(gang, tasks);
  const GangPointer held = impl_->gangs.find(gang);
  for (const std::string& name : tasks) {
    const TaskPointer task = impl_->gangs.find(gang, name);
    if (task != nullptr) impl_->tasks.stop(held, task, mode);
  }
}

Result<std::unique_ptr<Exec>> SlurmEngine::exec(const GangId& gang, const std::string& task,
                                                const ExecPlan& plan, ExecHandlers handlers) {
  return impl_->orders.exec(gang, task, plan, std::move(handlers));
}

Result<std::unique_ptr<Exec>> SlurmEngine::attach(const GangId& gang, const std::string& task,
                                                  ExecHandlers handlers) {
  return impl_->orders.attach(gang, task, std::move(handlers));
}

// --- adoption: muster-nodes reconnect by themselves; a task whose start was ordered runs as long
// as Slurm does not list its job as over

AdoptionResult SlurmEngine::adopt(const GangId& gang, const std::string& task) {
  impl_->begin();
  return impl_->adopt(gang, task);
}

AdoptionResult SlurmEngine::Impl::adopt(const GangId& name, const std::string& task_name) {
  const TaskFolder folder = gangs.folder_of(name, task_name);
  const GangPointer gang = gangs.find(name);
  const TaskPointer task = gangs.find(name, task_name);
  // The caller may have crashed before it handled the report.
  if (gang != nullptr && gang->record.taken && !gang->record.given_back && !gang->is_announced) {
    gang->is_announced = true;
    reports.announce(name, *gang->record.taken);
  }
  if (task != nullptr && !gang->record.taken) {
    gang->is_awaited = true;
    gang->is_announced = true;
    if (!gang->seat_of(*task).started) return AdoptionResult::kNothing;
    return adopt_started(gang, task);
  }
  std::error_code ignored;
  const bool was_started = fs::exists(folder.running(), ignored) ||
                           fs::exists(folder.exit(), ignored) ||
                           (task != nullptr && gang->seat_of(*task).started);
  if (!was_started) return AdoptionResult::kNothing;
  reports.post(
      [this, name, task_name, folder] { reports.task(name, task_name, end_left_in(folder)); });
  return AdoptionResult::kEnded;
}

AdoptionResult SlurmEngine::Impl::adopt_started(const GangPointer& gang, const TaskPointer& task) {
  const TaskFolder folder = gangs.folder_of(gang->gang, task->name);
  const slurm::Seat& seat = gang->seat_of(*task);
  if (task->is_reported || task->end) return AdoptionResult::kEnded;
  task->up = task->answered = task->is_answer_reported = true;  // by the earlier server
  if (!seat.shares_folder) {
    auto mirror = Mirror::open(folder, options.log_quota);
    if (!mirror) {
      base::log_error("cannot take over task " + task->name + ": " + mirror.error().what);
      return AdoptionResult::kNothing;
    }
    task->mirror.emplace(*std::move(mirror));
  }
  TaskEnded end = end_left_in(folder);
  // Slurm may have sent the signal that ended a task: the state of the job is determined first.
  const bool by_itself = !end.status.lost && !end.status.stopped && end.status.signal == 0;
  if (by_itself) {
    // Otherwise its muster-node waits for the order to send the artifacts.
    const bool may_have_more = seat.has_artifacts && !seat.shares_folder && !seat.left;
    if (!may_have_more) {
      reports.post([this, gang, task, end = std::move(end)] { tasks.ended(gang, task, end); });
    }
    return AdoptionResult::kEnded;
  }
  if (task->line == nullptr) lines.watch_silence(gang, task);
  queue.poll_soon();
  return AdoptionResult::kRunning;
}

// --- folders: the tasks' own, or copies of them

std::string SlurmEngine::generated_folder(const GangId& gang, std::string_view task,
                                          job::Sandbox sandbox) const {
  if (sandbox != job::Sandbox::kNone) return "/generated";
  const auto held = impl_->gangs.find(gang, std::string(task));
  const bool is_shared = held == nullptr ? impl_->options.sharing == node::Sharing::kYes
                                         : impl_->gangs.find(gang)->seat_of(*held).shares_folder;
  const fs::path jobs = impl_->options.folder_on_node(is_shared);
  return TaskFolder{jobs / gang.job_id / std::to_string(gang.attempt) / task}.generated().string();
}

void SlurmEngine::scrub(const GangId& gang) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(impl_->gangs.attempt_folder(gang), error)) {
    if (!entry.is_directory(error)) continue;
    const TaskFolder folder{entry.path()};
    fs::rename(folder.generated() / "ranks", folder.path / "ranks", error);
    // A killed shim leaves its socket "attach" behind.
    for (const fs::path& gone : {folder.generated(), folder.plan(), folder.hosts(), folder.passwd(),
                                 folder.shadow(), folder.attach()}) {
      if (const auto removed = base::remove_tree(gone); !removed) {
        base::log_error(removed.error().what);
      }
    }
  }
}

Result<void> SlurmEngine::remove(const std::string& job_id) {
  return impl_->trees.remove(job_id);
}

void SlurmEngine::measure(const std::string& job_id, Measured done) {
  impl_->trees.measure(job_id, std::move(done));
}

Result<std::unique_ptr<LogCursor>> SlurmEngine::open_log(const GangId& gang,
                                                         const std::string& task) {
  return open_log_in(impl_->gangs.folder_of(gang, task), task);
}

/// A log on a shared file system that another machine writes cannot be watched here: its
/// muster-node reports that it has grown.
std::shared_ptr<void> SlurmEngine::watch_log(const GangId& gang, const std::string& task,
                                             std::function<void()> grown) {
  auto watcher = std::make_shared<std::function<void()>>(std::move(grown));
  const auto held = impl_->gangs.find(gang, task);
  if (held != nullptr) held->log_watchers.push_back(watcher);
  return watcher;
}

MetricReader SlurmEngine::open_metrics(const GangId& gang, const std::string& task) {
  return MetricReader(impl_->gangs.folder_of(gang, task).metrics());
}

std::optional<fs::path> SlurmEngine::artifacts_folder(const std::string& job_id) const {
  return artifacts_in(impl_->gangs.job_folder(job_id));
}

std::string SlurmEngine::mpi_of(const GangId& gang, const std::string& task) const {
  return mpi_in(impl_->gangs.folder_of(gang, task));
}

std::vector<RankPlace> SlurmEngine::ranks(const GangId& gang,
                                          const std::vector<std::string>& tasks) const {
  return ranks_in(impl_->gangs.attempt_folder(gang), tasks);
}

}  // namespace muster::engine
