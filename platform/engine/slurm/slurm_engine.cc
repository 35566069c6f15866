#include "engine/slurm/slurm_engine.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "engine/folder/task_folder.h"
#include "engine/folder/trees.h"
#include "engine/lent/lent_tasks.h"
#include "engine/slurm/allocations.h"
#include "engine/slurm/gang_table.h"
#include "engine/slurm/job_watch.h"
#include "engine/slurm/node_calls.h"
#include "engine/slurm/open_client.h"
#include "engine/slurm/queue.h"
#include "engine/slurm/submission.h"

namespace muster::engine {

namespace fs = std::filesystem;

using slurm::GangPointer;

namespace {

lent::LentOptions lent_options(const slurm::SlurmEngineOptions& options) {
  return {.folder = options.folder,
          .programs_on_nodes = options.node_programs(),
          .folder_on_nodes = options.folder_on_node(false),
          .sharing = options.sharing,
          .linger = options.linger,
          .fetch_silence = options.fetch_silence,
          .log_quota = options.log_quota,
          .limits = options.limits,
          .storage_folder = options.storage_folder,
          .hidden = options.hidden,
          .filter = options.filter,
          .unpack_tree = options.unpack_tree,
          .first_sample = options.first_sample,
          .sample_interval = options.sample_interval};
}

}  // namespace

/// The parts of the engine, each after those that it uses.
struct SlurmEngine::Impl {
  Impl(base::EventLoop& its_loop, slurm::SlurmEngineOptions its_options,
       std::unique_ptr<slurm::SlurmClient> its_client)
      : loop(its_loop), options(std::move(its_options)), client(std::move(its_client)) {
    tasks.lender = calls.lender();
    cluster.poll();
  }
  ~Impl() {
    client.reset();  // ends all answers
    callback.reset();
    tasks.gangs.clear();
  }

  /// Starts to listen for muster-nodes, and reads what an earlier server left. Not before the
  /// engine is first used: a server that does not lead must change nothing. If what is left cannot be
  /// listed, the engine has no part in the cluster, because it would cancel running jobs.
  void begin();

  base::EventLoop& loop;
  const slurm::SlurmEngineOptions options;
  std::unique_ptr<slurm::SlurmClient> client;
  slurm::Callback callback;  ///< empty until begin()
  Result<void> loaded;       ///< whether begin() could list what an earlier server left
  lent::LentTasks tasks{loop, lent_options(options), slurm::table_options(options.folder)};
  slurm::GangTable gangs{tasks.gangs};
  slurm::SlurmQueue queue{loop, options, *client, tasks.reports};
  slurm::ClusterNodes cluster{loop, options, *client, tasks.reports, queue};
  slurm::Allocations allocations{loop,          options, *client, callback,    gangs,
                                 tasks.reports, queue,   cluster, tasks.tasks, tasks.starter};
  slurm::SlurmJobWatch jobs{loop,          options, *client,     callback,      gangs,
                            tasks.reports, queue,   tasks.tasks, tasks.starter, allocations};
  slurm::NodeCalls calls{gangs, queue, allocations, jobs};
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
  if (callback || !loaded) return;
  loaded = gangs.load(options.owner);
  if (!loaded) return;
  callback = node::open_callback_site(loop,
                                      {.folder = options.folder,
                                       .owner = options.owner,
                                       .bind = options.callback_bind,
                                       .port = options.callback_port,
                                       .hosts = options.callback_hosts,
                                       .flag = "--slurm-callback"},
                                      calls.hub_options(tasks.lines));
  if (!*callback) {
    base::Error error = callback->error();
    error.what = "Slurm's nodes cannot call this server back: " + error.what;
    base::log_error(error.what);
    callback.emplace(std::move(error));
  }
  allocations.listen([this](const GangPointer& gang, const slurm::ListedJob& listed) {
    jobs.update(gang, listed);
  });
  queue.begin({.has_gangs = [this] { return !gangs.is_empty(); },
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

Result<void> SlurmEngine::check_allocation_request(const AllocationRequest& request) const {
  const auto submission = slurm::submission_for(request, impl_->options);
  if (!submission) return submission.error();
  return {};
}

void SlurmEngine::set_allocation_listener(AllocationListener listener) {
  impl_->tasks.reports.listen_to_allocations(std::move(listener));
}

void SlurmEngine::request_allocation(const GangId& gang, AllocationRequest request) {
  impl_->begin();
  impl_->allocations.request(gang, std::move(request));
}

void SlurmEngine::release_allocation(const GangId& gang) {
  impl_->begin();
  impl_->allocations.give_back(gang);
}

// --- tasks

/// A caller that listens leads: no other server works in the folder.
void SlurmEngine::listen(Listener listener) {
  if (!impl_->tasks.reports.listen(std::move(listener))) return;
  impl_->tasks.trees.sweep();
  impl_->begin();
}

void SlurmEngine::start(const GangId& gang, std::vector<launch::TaskPlan> tasks, Done done) {
  impl_->begin();
  impl_->tasks.start(gang, std::move(tasks), std::move(done));
}

void SlurmEngine::change_files(const GangId& gang, std::vector<launch::FileChange> changes,
                               Done done) {
  impl_->tasks.orders.change_files(gang, std::move(changes), std::move(done));
}

void SlurmEngine::stop(const GangId& gang, const std::vector<std::string>& tasks, StopMode mode) {
  impl_->tasks.stop(gang, tasks, mode);
  // tasks.stop() has posted the failures of starts, which stop_unreachable() must see.
  impl_->tasks.reports.post([impl = impl_.get(), gang] {
    if (const GangPointer held = impl->gangs.find(gang)) impl->jobs.stop_unreachable(held);
  });
}

Result<std::unique_ptr<Exec>> SlurmEngine::exec(const GangId& gang, const std::string& task,
                                                const ExecPlan& plan, ExecHandlers handlers) {
  return impl_->tasks.orders.exec(gang, task, plan, std::move(handlers));
}

Result<std::unique_ptr<Exec>> SlurmEngine::attach(const GangId& gang, const std::string& task,
                                                  ExecHandlers handlers) {
  return impl_->tasks.orders.attach(gang, task, std::move(handlers));
}

Result<void> SlurmEngine::check_found_tasks() {
  impl_->begin();
  return impl_->loaded;
}

/// Muster-nodes reconnect by themselves.
AdoptionResult SlurmEngine::adopt(const GangId& gang, const std::string& task) {
  impl_->begin();
  return impl_->tasks.adopt(gang, task);
}

// --- folders: the tasks' own, or copies of them

std::string SlurmEngine::generated_folder(const GangId& gang, std::string_view task,
                                          job::Sandbox sandbox) const {
  if (sandbox != job::Sandbox::kNone) return "/generated";
  const auto held = impl_->tasks.gangs.find(gang, std::string(task));
  const bool is_shared = held == nullptr ? impl_->options.sharing == node::Sharing::kYes
                                         : impl_->gangs.find(gang)->seat_of(*held).shares_folder;
  const fs::path jobs = impl_->options.folder_on_node(is_shared);
  return TaskFolder{jobs / gang.job_id / std::to_string(gang.attempt) / task}.generated().string();
}

void SlurmEngine::scrub(const GangId& gang) {
  impl_->tasks.scrub(gang);
}

Result<void> SlurmEngine::remove(const std::string& job_id) {
  return impl_->tasks.trees.remove(job_id);
}

void SlurmEngine::measure(const std::string& job_id, Measured done) {
  impl_->tasks.trees.measure(job_id, std::move(done));
}

Result<std::unique_ptr<LogCursor>> SlurmEngine::open_log(const GangId& gang,
                                                         const std::string& task) {
  return impl_->tasks.open_log(gang, task);
}

std::shared_ptr<void> SlurmEngine::watch_log(const GangId& gang, const std::string& task,
                                             std::function<void()> grown) {
  return impl_->tasks.watch_log(gang, task, std::move(grown));
}

MetricReader SlurmEngine::open_metrics(const GangId& gang, const std::string& task) {
  return impl_->tasks.open_metrics(gang, task);
}

std::optional<fs::path> SlurmEngine::artifacts_folder(const std::string& job_id) const {
  return impl_->tasks.artifacts_folder(job_id);
}

std::string SlurmEngine::mpi_of(const GangId& gang, const std::string& task) const {
  return impl_->tasks.mpi_of(gang, task);
}

std::vector<RankPlace> SlurmEngine::ranks(const GangId& gang,
                                          const std::vector<std::string>& tasks) const {
  return impl_->tasks.ranks(gang, tasks);
}

}  // namespace muster::engine
