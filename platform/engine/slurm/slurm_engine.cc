#include "engine/slurm/slurm_engine.h"

#include <algorithm>

#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "engine/slurm/open_client.h"
#include "engine/slurm/slurm_engine_impl.h"
#include "engine/slurm/submission.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using slurm::HeldGang;

Result<std::unique_ptr<SlurmEngine>> SlurmEngine::open(base::EventLoop& loop,
                                                       slurm::SlurmEngineOptions options) {
  MUSTER_TRY(auto client, slurm::open_client(loop, options));
  return std::make_unique<SlurmEngine>(loop, std::move(options), std::move(client));
}

SlurmEngine::SlurmEngine(base::EventLoop& loop, slurm::SlurmEngineOptions options,
                         std::unique_ptr<slurm::SlurmClient> client)
    : impl_(std::make_unique<Impl>(loop, std::move(options), std::move(client))) {}

SlurmEngine::~SlurmEngine() = default;

SlurmEngine::Impl::Impl(base::EventLoop& its_loop, slurm::SlurmEngineOptions its_options,
                        std::unique_ptr<slurm::SlurmClient> its_client)
    : loop(its_loop),
      options(std::move(its_options)),
      trees(loop, options.folder, options.unpack_tree),
      keeper(loop),
      folder_receiver(loop),
      client(std::move(its_client)) {
  poll_nodes();
}

SlurmEngine::Impl::~Impl() {
  client.reset();
  site.hub.reset();
  gangs.clear();
}

void SlurmEngine::Impl::begin() {
  if (std::exchange(has_begun, true)) return;
  const node::CallbackOptions callback{.folder = options.folder,
                                       .owner = options.owner,
                                       .bind = options.callback_bind,
                                       .port = options.callback_port,
                                       .hosts = options.callback_hosts,
                                       .flag = "--slurm-callback"};
  auto opened = node::open_callback_site(
      loop, callback,
      {.key_of = [this](const Gang& caller) { return key_of(caller); },
       .on_connection =
           [this](std::shared_ptr<node::NodeConnection> line) { connected(std::move(line)); }});
  if (opened) {
    site = *std::move(opened);
  } else {
    site_fault = std::move(opened).error();
    site_fault->what = "Slurm's nodes cannot call this server back: " + site_fault->what;
    base::log_error(site_fault->what);
  }
  load_records();
  something_changed();
  schedule_poll();
}

// --- what is said of it as a whole

launch::Reach SlurmEngine::reach(const std::vector<std::string>& nodes) const {
  const bool one = std::all_of(nodes.begin(), nodes.end(),
                               [&](const std::string& node) { return node == nodes.front(); });
  return one ? launch::Reach::kLoopback : launch::Reach::kHosts;
}

Engine::ProgramsInTasks SlurmEngine::programs_in_tasks() const {
  const std::string folder = impl_->programs_on_nodes();
  return {.shim = folder + "/muster-shim",
          .remote_shell = folder + "/muster-rsh",
          .joiner = folder + "/muster-node"};
}

std::string SlurmEngine::srun_in_tasks() const {
  const auto srun = base::find_program("srun", base::current_environment());
  return srun ? *srun : "";
}

Result<void> SlurmEngine::check_room(const RoomWish& wish) const {
  const auto submission = slurm::submission_for(wish, impl_->options);
  if (!submission) return submission.error();
  return {};
}

std::vector<Node> SlurmEngine::nodes() {
  return impl_->node_list;
}

std::shared_ptr<void> SlurmEngine::watch_nodes(std::function<void()> changed) {
  auto watcher = std::make_shared<std::function<void()>>(std::move(changed));
  impl_->node_watchers.push_back(watcher);
  return watcher;
}

/// Whoever listens leads: no other server is at work here.
void SlurmEngine::listen(Listener listener) {
  if (impl_->listener == nullptr && listener != nullptr) {
    impl_->trees.sweep();
    impl_->begin();
  }
  impl_->listener = std::move(listener);
}

void SlurmEngine::hear_of_rooms(RoomListener listener) {
  impl_->room_listener = std::move(listener);
}

void SlurmEngine::ask_for_room(const Gang& gang, RoomWish wish) {
  impl_->ask(gang, std::move(wish));
}

void SlurmEngine::give_back_room(const Gang& gang) {
  impl_->give_back(gang);
}

void SlurmEngine::start(const Gang& gang, std::vector<launch::TaskPlan> tasks, Done done) {
  impl_->start(gang, std::move(tasks), std::move(done));
}

void SlurmEngine::stop(const Gang& gang, const std::vector<std::string>& tasks, StopMode mode) {
  impl_->stop(gang, tasks, mode);
}

Found SlurmEngine::adopt(const Gang& gang, const std::string& task) {
  return impl_->adopt(gang, task);
}

// --- small things

fs::path SlurmEngine::Impl::job_folder(const std::string& job_id) const {
  return options.folder / job_id;
}

fs::path SlurmEngine::Impl::attempt_folder(const Gang& gang) const {
  return job_folder(gang.job_id) / std::to_string(gang.attempt);
}

TaskFolder SlurmEngine::Impl::folder_of(const Gang& gang, std::string_view task) const {
  return {attempt_folder(gang) / task};
}

std::string SlurmEngine::Impl::folder_on_node(bool is_shared) const {
  if (is_shared) return options.folder.string();
  return options.node_folder.empty() ? "/tmp/muster-" + options.owner : options.node_folder;
}

std::string SlurmEngine::Impl::programs_on_nodes() const {
  return options.programs_on_nodes.empty() ? options.programs.string() : options.programs_on_nodes;
}

SlurmEngine::Impl::GangPointer SlurmEngine::Impl::find(const Gang& gang) const {
  const auto found = gangs.find(gang);
  return found == gangs.end() ? nullptr : found->second;
}

SlurmEngine::Impl::TaskPointer SlurmEngine::Impl::find(const Gang& gang,
                                                       const std::string& task) const {
  const GangPointer held = find(gang);
  if (held == nullptr) return nullptr;
  const auto found = held->tasks.find(task);
  return found == held->tasks.end() ? nullptr : found->second;
}

void SlurmEngine::Impl::save(const GangPointer& gang) {
  gang->is_saved = true;
  const fs::path folder = attempt_folder(gang->gang);
  if (gang->stage == slurm::Stage::kToKeep || find(gang->gang) != gang) return;
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) return;  // its job was removed
  const auto written = base::write_file(slurm::gang_record_in(folder), encode(gang->record));
  if (!written) base::log_error(written.error().what);
}

/// With the other changes of this turn.
void SlurmEngine::Impl::save_soon(const GangPointer& gang) {
  if (!std::exchange(gang->is_saved, false)) return;
  soon([this, gang] {
    if (!gang->is_saved) save(gang);
  });
}

void SlurmEngine::Impl::soon(std::function<void()> action) {
  loop.post([weak = std::weak_ptr(alive), action = std::move(action)] {
    if (weak.lock()) action();
  });
}

void SlurmEngine::Impl::tell(const GangPointer& gang, RoomNews news) {
  soon([this, name = gang->gang, news = std::move(news)] {
    if (room_listener) room_listener(name, news);
  });
}

void SlurmEngine::Impl::tell_waits(const GangPointer& gang, RoomWaits waits) {
  if (gang->record.given_back && !gang->again) return;
  if (gang->waits == waits) return;
  gang->waits = waits;
  tell(gang, std::move(waits));
}

void SlurmEngine::Impl::tell_says(const GangPointer& gang, std::optional<job::SlurmState> state) {
  if (gang->stage != slurm::Stage::kThere || gang->record.given_back || gang->record.taken) return;
  if (gang->says == state) return;
  gang->says = state;
  tell(gang, RoomSays{std::move(state)});
}

void SlurmEngine::Impl::report(const Gang& gang, const std::string& task, TaskNews what) {
  soon([this, gang, task, what = std::move(what)] {
    if (listener) listener({.gang = gang, .task = task, .what = what});
  });
}

}  // namespace muster::engine
