#include "engine/kubernetes/kubernetes_engine.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "engine/engine_errors.h"
#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/cluster_view.h"
#include "engine/kubernetes/gangs.h"
#include "engine/kubernetes/losses.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/pod_allocations.h"
#include "engine/kubernetes/pod_lines.h"
#include "engine/kubernetes/pod_requests.h"
#include "engine/kubernetes/pod_starts.h"
#include "engine/kubernetes/preparations.h"
#include "engine/lent/lent_tasks.h"
#include "engine/node/brief.h"
#include "engine/node/pod.h"
#include "job/kubernetes.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using kubernetes::HeldPod;
using kubernetes::KubernetesOptions;
using kubernetes::OwnPod;
using kubernetes::pod_job_of;
using kubernetes::pod_task_of;
using kubernetes::PodGangPointer;
using kubernetes::PodJob;
using kubernetes::PodQueue;
using kubernetes::PodTask;
using kubernetes::Preparations;
using launch::TaskPlan;
using lent::TaskPointer;

namespace {

lent::LentOptions lent_options_of(const KubernetesOptions& options) {
  lent::LentOptions lent;
  lent.folder = options.folder;
  lent.programs_on_nodes = node::kPodPrograms;
  lent.folder_on_nodes = node::kPodJobs;
  lent.sharing = node::Sharing::kNo;
  lent.has_own_folders = true;
  lent.mounts_storage = true;
  lent.linger = options.linger;
  lent.log_quota = options.log_quota;
  lent.limits = options.limits;
  lent.unpack_tree = options.unpack_tree;
  lent.first_sample = options.first_sample;
  lent.sample_interval = options.sample_interval;
  return lent;
}

KubernetesOptions completed(KubernetesOptions options, const kubernetes::AccessFacts& facts) {
  if (options.pods.space.empty()) options.pods.space = facts.space;
  if (options.pods.space.empty()) options.pods.space = "default";
  options.pods.port = options.are_called() ? 0 : options.pod_port;
  options.nodes.owner = options.pods.owner;
  options.nodes.space = options.pods.space;
  options.nodes.tolerations = options.pods.tolerations;
  options.nodes.gpu_resources = options.pods.gpu_resources;
  options.pods.pool_label = options.nodes.pool_label;
  return options;
}

}  // namespace

/// The parts of the engine, each after those that it uses.
struct KubernetesEngine::Impl {
  Impl(base::EventLoop& its_loop, KubernetesOptions its_options,
       std::unique_ptr<kubernetes::Access> access)
      : loop(its_loop),
        options(completed(std::move(its_options), access->facts())),
        client(its_loop, std::move(access), {.version = options.version}) {
    tasks.lender = lender();
  }

  lent::Lender lender();
  /// Reads what an earlier server left, and begins to watch the cluster. Not before the engine is
  /// first used: a server that does not lead must change nothing.
  void begin();
  void open_callback();
  std::string brief_of(const kubernetes::PodGang& gang) const;

  // Pods.
  std::shared_ptr<void> prepare(const PodJob& job, std::vector<PodTask> pods,
                                Preparations::Progress progress, Preparations::Done done,
                                Preparations::Since since = Preparations::Since::kBegin);
  std::shared_ptr<void> prepare_later(const PodGangPointer& leaving, const PodJob& job,
                                      std::vector<PodTask> pods, Preparations::Progress progress,
                                      Preparations::Done done, Preparations::Since since);
  void give_up(const PodGangPointer& gang, const std::vector<std::string>& names);
  std::string gpu_model_on(const std::string& node) const;
  bool mounts_programs_on(const std::string& node) const;
  std::vector<launch::ImageFacts> facts_of(const GangId& gang,
                                           const std::vector<ImageRequest>& images);

  // News of the cluster.
  void pod_changed(const OwnPod& own);
  void pod_gone(const OwnPod& own);
  void warned(const kubernetes::PodEvent& event);
  std::function<void(const OwnPod&)> on_container();
  std::function<void(const std::string&, const std::string&)> on_workload();
  kubernetes::PodLosses::Preempted on_preempted();
  void synced();

  base::EventLoop& loop;
  const KubernetesOptions options;
  kubernetes::ApiClient client;
  base::SystemRandom random;
  bool has_begun = false;
  std::optional<Result<node::CallbackSite>> callback;
  lent::LentTasks tasks{loop, lent_options_of(options),
                        kubernetes::pod_table_options(options.folder)};
  kubernetes::PodGangTable gangs{tasks.gangs, options.pods.owner};
  kubernetes::ClusterView view{
      loop,
      client,
      options.nodes,
      {.on_pod = [this](const OwnPod& own) { pod_changed(own); },
       .on_pod_gone = [this](const OwnPod& own) { pod_gone(own); },
       .on_warning = [this](const kubernetes::PodEvent& event) { warned(event); },
       .on_container = on_container(),
       .on_workload = on_workload(),
       .on_synced = [this] { synced(); },
       .on_reach = [this] { preparations.look_at_all(); }}};
  kubernetes::PodLines lines{
      loop, client, options.pods.space, options.pods.owner, options.pods.port, tasks};
  kubernetes::PodAllocations allocations{
      gangs, tasks.reports,
      [this](const PodJob& job, std::vector<PodTask> pods, Preparations::Progress progress,
             Preparations::Done done) {
        return prepare(job, std::move(pods), std::move(progress), std::move(done),
                       Preparations::Since::kNode);
      }};
  kubernetes::PodLosses losses{loop, gangs, tasks, on_preempted()};
  Preparations preparations{
      loop,
      options.pod_timeout,
      {.outage = [this] { return view.outage(); },
       .given_up = [this](const PodGangPointer& gang,
                          const std::vector<std::string>& names) { give_up(gang, names); }}};
  kubernetes::GangObjects objects{
      loop,
      client,
      options.pods,
      gangs,
      {.brief_of = [this](const kubernetes::PodGang& gang) { return brief_of(gang); },
       .changed = [this](const PodGangPointer& gang) { preparations.look(gang); }}};
  kubernetes::PodStarts starts{
      tasks,
      gangs,
      objects,
      {.prepare =
           [this](const PodJob& job, std::vector<PodTask> pods, Preparations::Done done) {
             return prepare(job, std::move(pods), nullptr, std::move(done));
           },
       .give_up = [this](const PodGangPointer& gang,
                         const std::vector<std::string>& names) { give_up(gang, names); },
       .gpu_model_on = [this](const std::string& node) { return gpu_model_on(node); }}};
  std::set<std::string> unknown;  ///< names of gangs whose pods no record explains
};

Result<std::unique_ptr<KubernetesEngine>> KubernetesEngine::open(base::EventLoop& loop,
                                                                 KubernetesOptions options) {
  MUSTER_TRY(auto access, kubernetes::open_access(loop, options.access));
  return std::unique_ptr<KubernetesEngine>(
      new KubernetesEngine(std::make_unique<Impl>(loop, std::move(options), std::move(access))));
}

KubernetesEngine::KubernetesEngine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

KubernetesEngine::~KubernetesEngine() = default;

lent::Lender KubernetesEngine::Impl::lender() {
  using lent::GangPointer;
  return {
      .cluster = "Kubernetes",
      .gang_of = [this](const node::NodeConnection& line) -> GangPointer {
        PodGangPointer gang = gangs.find(line.gang());
        return gang == nullptr || gang->is_releasing ? nullptr : gang;
      },
      .has_allocation = [](const GangPointer& gang) { return gang->record.given; },
      .on_ready =
          [this](const GangPointer& gang) { preparations.look(kubernetes::in_kubernetes(gang)); },
      .on_lost =
          [this](const GangPointer& gang, const TaskPointer& task) {
            lines.keep(kubernetes::in_kubernetes(gang), task->name);
            losses.examine(kubernetes::in_kubernetes(gang), task->name);
          },
      // The pod object tells whether the task may still run; until then it is waited for.
      .on_silence = [](const GangPointer&, const TaskPointer&) { return true; },
      .connect_stream =
          [this](const GangPointer& gang, const TaskPointer& task, uint64_t stream) {
            lines.connect_stream(kubernetes::in_kubernetes(gang), task->name, stream);
          },
      .on_change = [] {},
      .look_soon = [this] { losses.look_soon(); },
      .looks = [this] { return losses.looks(); },
      .may_explain = [this](const GangPointer&,
                            const TaskPointer&) { return view.outage().has_value(); }};
}

void KubernetesEngine::Impl::begin() {
  if (std::exchange(has_begun, true)) return;
  if (options.are_called()) open_callback();
  gangs.load();
  for (const PodGangPointer& gang : gangs.all()) {
    // The server that waited for these pods is gone, and its caller begins another attempt.
    // A gang that waits in a queue of the cluster keeps its place: it is requested again.
    const bool is_useless = !gang->has_started_tasks() && !options.has_queue();
    if (gang->record.given_back || is_useless) objects.release(gang);
  }
  view.begin();
}

void KubernetesEngine::Impl::open_callback() {
  callback = node::open_callback_site(
      loop,
      {.folder = options.folder,
       .owner = options.pods.owner,
       .bind = "0.0.0.0",
       .port = options.callback_port,
       .hosts = options.callback_hosts,
       .flag = "--kubernetes-callback"},
      {.key_of = [this](const GangId& caller) -> std::optional<rsh::Key> {
         const PodGangPointer gang = gangs.find(caller);
         if (gang == nullptr) return std::nullopt;
         return gang->record.key;
       },
       .on_connection =
           [this](lent::NodeLines::Line line) { tasks.lines.connected(std::move(line)); }});
  if (!*callback) {
    base::log_error("pods cannot call this server: " + callback->error().what);
  }
}

std::string KubernetesEngine::Impl::brief_of(const kubernetes::PodGang& gang) const {
  node::NodeBrief brief{.caller = {gang.gang},
                        .key = gang.record.key,
                        .hosts = {},
                        .port = options.pods.port,
                        .sharing = node::Sharing::kNo,
                        .folder = node::kPodJobs,
                        .mark = "",
                        .nonce = "",
                        .linger = options.linger};
  if (callback && *callback) {
    brief.hosts = (*callback)->hosts;
    brief.port = (*callback)->hub->port();
    brief.mark = (*callback)->mark;
    brief.nonce = (*callback)->nonce;
  }
  return node::encode(brief);
}

// --- pods

std::string KubernetesEngine::Impl::gpu_model_on(const std::string& node) const {
  for (const Node& each : view.nodes()) {
    if (each.name == node) return each.gpu_model;
  }
  return "";
}

bool KubernetesEngine::Impl::mounts_programs_on(const std::string& node) const {
  switch (options.pods.programs) {
    case kubernetes::ProgramsBy::kImageVolume:
      return true;
    case kubernetes::ProgramsBy::kInitContainer:
      return false;
    case kubernetes::ProgramsBy::kNode:
      break;
  }
  return view.mounts_images(node);
}

std::shared_ptr<void> KubernetesEngine::Impl::prepare(const PodJob& job, std::vector<PodTask> pods,
                                                      Preparations::Progress progress,
                                                      Preparations::Done done,
                                                      Preparations::Since since) {
  begin();
  PodGangPointer gang = gangs.find(job.gang);
  if (gang != nullptr && gang->is_releasing) {
    return prepare_later(gang, job, std::move(pods), std::move(progress), std::move(done), since);
  }
  const bool is_new = gang == nullptr;
  if (is_new) gang = gangs.add(job.gang, random.bytes<std::tuple_size_v<rsh::Key>>());
  gang->job = job;
  std::vector<std::string> names;
  for (PodTask& task : pods) {
    names.push_back(task.task);
    HeldPod& pod = gangs.add_task(gang, task.task);
    const lent::Seat& seat = gang->seat_of(*gang->tasks.at(task.task));
    if (seat.started || pod.is_wanted) continue;
    task.index = seat.index;
    task.mounts_programs = mounts_programs_on(task.node);
    pod.is_wanted = true;
    pod.plan = std::move(task);
  }
  if (is_new) {
    tasks.gangs.save_durably(gang, [this, weak = std::weak_ptr(gang)](const Result<void>& saved) {
      const PodGangPointer still = weak.lock();
      if (still == nullptr) return;
      if (!saved) still->fault = saved.error();
      objects.create(still);
      preparations.look(still);
    });
  } else {
    gangs.save(gang);
    objects.create(gang);
  }
  return preparations.add(gang, std::move(names), std::move(progress), std::move(done), since);
}

/// Objects of the same names are being deleted.
std::shared_ptr<void> KubernetesEngine::Impl::prepare_later(
    const PodGangPointer& leaving, const PodJob& job, std::vector<PodTask> pods,
    Preparations::Progress progress, Preparations::Done done, Preparations::Since since) {
  const auto handle = std::make_shared<std::shared_ptr<void>>();
  leaving->when_released.push_back([this, weak = std::weak_ptr(handle), job, pods = std::move(pods),
                                    progress = std::move(progress), done = std::move(done),
                                    since]() mutable {
    const auto still = weak.lock();
    if (!still) return;
    *still = prepare(job, std::move(pods), std::move(progress), std::move(done), since);
  });
  return handle;
}

void KubernetesEngine::Impl::give_up(const PodGangPointer& gang,
                                     const std::vector<std::string>& names) {
  const bool is_needed =
      std::any_of(gang->tasks.begin(), gang->tasks.end(), [&](const auto& named) {
        return gang->seat_of(*named.second).started ||
               preparations.is_waited_for(gang, named.first);
      });
  if (!is_needed) return objects.release(gang);
  for (const std::string& name : names) {
    const TaskPointer task = gang->task(name);
    if (task == nullptr || gang->seat_of(*task).started) continue;
    if (preparations.is_waited_for(gang, name)) continue;
    objects.remove_pod(gang, name, std::chrono::seconds(1));
    HeldPod& pod = gang->pods.at(name);
    kubernetes::Call removal = std::move(pod.removal);
    pod = HeldPod{};
    pod.removal = std::move(removal);
  }
}

std::vector<launch::ImageFacts> KubernetesEngine::Impl::facts_of(
    const GangId& name, const std::vector<ImageRequest>& images) {
  std::vector<launch::ImageFacts> all;
  const PodGangPointer gang = gangs.find(name);
  for (const ImageRequest& image : images) {
    launch::ImageFacts facts;
    const TaskPointer task = gang == nullptr ? nullptr : gang->task(image.task);
    if (task != nullptr && task->line != nullptr && task->line->hello().image) {
      facts = *task->line->hello().image;
    }
    facts.image = image.image;
    facts.id = image.image;
    if (gang != nullptr && gang->pods.count(image.task) > 0) {
      const auto& pod = gang->pods.at(image.task);
      if (pod.facts && !pod.facts->task.image_id.empty()) facts.id = pod.facts->task.image_id;
    }
    all.push_back(std::move(facts));
  }
  return all;
}

// --- news of the cluster

void KubernetesEngine::Impl::pod_changed(const OwnPod& own) {
  const PodGangPointer gang = gangs.find_by_name(own.gang);
  if (gang == nullptr) {
    if (!view.is_synced() && !own.gang.empty()) unknown.insert(own.gang);
    return;
  }
  const auto found = gang->pods.find(own.task);
  if (found == gang->pods.end() || gang->is_releasing) return;
  HeldPod& pod = found->second;
  // A pod of an earlier owner, or one that was given up, has the same name.
  const bool is_old =
      own.facts.owner != gang->uid || (own.facts.is_being_deleted && pod.is_wanted && !pod.facts);
  if (is_old) return;
  pod.facts = own.facts;
  pod.is_created = true;
  lines.keep(gang, own.task);
  preparations.look(gang);
  losses.examine(gang, own.task);
}

void KubernetesEngine::Impl::pod_gone(const OwnPod& own) {
  const PodGangPointer gang = gangs.find_by_name(own.gang);
  if (gang == nullptr || gang->is_releasing) return;
  const auto found = gang->pods.find(own.task);
  if (found == gang->pods.end()) return;
  HeldPod& pod = found->second;
  if (!pod.facts || pod.facts->uid != own.facts.uid) return;
  pod.facts = own.facts;
  pod.is_gone = true;
  lines.keep(gang, own.task);
  preparations.look(gang);
  losses.examine(gang, own.task);
}

void KubernetesEngine::Impl::warned(const kubernetes::PodEvent& event) {
  for (const PodGangPointer& gang : gangs.all()) {
    if (!event.pod.starts_with(kubernetes::gang_name(options.pods.owner, gang->gang))) continue;
    for (auto& [task, pod] : gang->pods) {
      if (!pod.facts || pod.facts->name != event.pod) continue;
      pod.event = event;
      return preparations.look(gang);
    }
  }
}

/// A server that connects to its pods does so at once.
std::function<void(const OwnPod&)> KubernetesEngine::Impl::on_container() {
  if (options.are_called()) return nullptr;
  return [this](const OwnPod& own) {
    const PodGangPointer gang = gangs.find_by_name(own.gang);
    if (gang == nullptr || gang->is_releasing) return;
    const auto found = gang->pods.find(own.task);
    if (found == gang->pods.end() || !found->second.facts) return;
    HeldPod& pod = found->second;
    if (pod.facts->uid != own.facts.uid) return;
    pod.is_started = true;
    lines.keep(gang, own.task);
  };
}

std::function<void(const std::string&, const std::string&)> KubernetesEngine::Impl::on_workload() {
  if (options.pods.queue != PodQueue::kKueue) return nullptr;
  return [this](const std::string& group, const std::string& why) {
    const PodGangPointer gang = gangs.find_by_name(group);
    if (gang == nullptr || gang->queue_text == why) return;
    gang->queue_text = why;
    preparations.look(gang);
  };
}

/// A gang that waits in a queue of the cluster goes back there if it is preempted.
kubernetes::PodLosses::Preempted KubernetesEngine::Impl::on_preempted() {
  if (!options.has_queue()) return nullptr;
  return
      [this](const PodGangPointer& gang, const job::PodEnd& end) { allocations.revoke(gang, end); };
}

/// Pods that should be there and are not were deleted while no server watched; pods without a record
/// are leftovers of a server that died.
void KubernetesEngine::Impl::synced() {
  for (const std::string& name : std::exchange(unknown, {})) {
    base::log_warning("pods of " + name + " belong to no job that this server knows; deletes them");
    objects.remove_orphan(name);
  }
  for (const PodGangPointer& gang : gangs.all()) {
    if (gang->is_releasing) continue;
    for (auto& [task, pod] : gang->pods) {
      if (pod.facts || pod.is_wanted) continue;
      pod.facts.emplace();
      pod.facts->name = kubernetes::pod_name(options.pods.owner, gang->gang, task);
      pod.is_gone = true;
    }
    const auto held = gang->tasks;
    for (const auto& [name, task] : held) losses.examine(gang, name);
  }
}

// --- the interface

Result<void> KubernetesEngine::check_spec(const job::JobSpec& spec) const {
  return kubernetes::check_pods(spec, impl_->options.pods);
}

std::shared_ptr<void> KubernetesEngine::prepare(const GangId& gang,
                                                std::vector<ImageRequest> images,
                                                std::function<void(const job::Fact&)> progress,
                                                Prepared done) {
  if (images.empty() || images.front().job == nullptr) {
    impl_->tasks.reports.post([done = std::move(done)] {
      done(Error{.code = ErrorCode::kInternal, .what = "no task was given whose pod to make"});
    });
    return nullptr;
  }
  std::vector<PodTask> pods;
  for (const ImageRequest& image : images) {
    pods.push_back(pod_task_of(image, impl_->gpu_model_on(image.node)));
  }
  const PodJob job = pod_job_of(gang, images);
  return impl_->prepare(
      job, std::move(pods), std::move(progress),
      [this, gang, images = std::move(images), done = std::move(done)](Result<void> how) {
        if (!how) return done(std::move(how).error());
        done(impl_->facts_of(gang, images));
      });
}

bool KubernetesEngine::has_cluster_queue() const {
  return impl_->options.has_queue();
}

void KubernetesEngine::set_allocation_listener(AllocationListener listener) {
  impl_->tasks.reports.listen_to_allocations(std::move(listener));
}

void KubernetesEngine::request_allocation(const GangId& gang, AllocationRequest request) {
  impl_->begin();
  impl_->allocations.request(gang, request);
}

void KubernetesEngine::release_allocation(const GangId& gang) {
  impl_->begin();
  impl_->allocations.forget(gang);
  if (const PodGangPointer held = impl_->gangs.find(gang)) impl_->objects.release(held);
}

/// On the network of the cluster, which resolves the host names of pods.
launch::Reach KubernetesEngine::reach(const std::vector<std::string>&) const {
  return launch::Reach::kNames;
}

Engine::ProgramsInTasks KubernetesEngine::programs_in_tasks() const {
  const std::string folder = node::kPodPrograms;
  return {.shim = folder + "/muster-shim", .remote_shell = folder + "/muster-rsh"};
}

std::vector<Node> KubernetesEngine::nodes() {
  return impl_->view.nodes();
}

std::shared_ptr<void> KubernetesEngine::watch_nodes(std::function<void()> changed) {
  return impl_->view.watch_nodes(std::move(changed));
}

/// A caller that listens leads: no other server works in the folder.
void KubernetesEngine::listen(Listener listener) {
  if (!impl_->tasks.reports.listen(std::move(listener))) return;
  impl_->tasks.trees.sweep();
  impl_->begin();
}

std::string KubernetesEngine::generated_folder(const GangId&, std::string_view,
                                               job::Sandbox) const {
  return node::kPodGenerated;
}

void KubernetesEngine::start(const GangId& gang, std::vector<TaskPlan> plans, Done done) {
  impl_->begin();
  impl_->starts.start(gang, std::move(plans), std::move(done));
}

/// Host names are given with the addresses of their pods.
void KubernetesEngine::change_files(const GangId& gang, std::vector<launch::FileChange> changes,
                                    Done done) {
  std::optional<Error> error;
  const PodGangPointer held = impl_->gangs.find(gang);
  std::erase_if(changes, [&](launch::FileChange& change) {
    if (held && !change.hosts.empty()) change.hosts = kubernetes::hosts_of(*held);
    const bool is_pending = impl_->starts.is_pending(gang, change.task);
    if (is_pending) error = change_error(change.task, not_started_yet());
    return is_pending;
  });
  if (error) {
    done = [error, done = std::move(done)](const Result<void>&) { done(*error); };
  }
  impl_->tasks.orders.change_files(gang, std::move(changes), std::move(done));
}

/// A muster-node that cannot be reached gets no order: its pod is deleted.
void KubernetesEngine::stop(const GangId& gang, const std::vector<std::string>& names,
                            StopMode mode) {
  impl_->starts.stop(gang, names);
  impl_->tasks.stop(gang, names, mode);
  const PodGangPointer held = impl_->gangs.find(gang);
  if (held == nullptr || mode != StopMode::kNow) return;
  for (const std::string& name : names) {
    const TaskPointer task = held->task(name);
    if (task == nullptr || task->line != nullptr || task->end) continue;
    const bool is_started = held->seat_of(*task).started && !task->start;
    if (is_started) impl_->objects.remove_pod(held, name, std::chrono::seconds(1));
  }
}

Result<std::unique_ptr<Exec>> KubernetesEngine::exec(const GangId& gang, const std::string& task,
                                                     const ExecPlan& plan, ExecHandlers handlers) {
  return impl_->tasks.orders.exec(gang, task, plan, std::move(handlers));
}

Result<std::unique_ptr<Exec>> KubernetesEngine::attach(const GangId& gang, const std::string& task,
                                                       ExecHandlers handlers) {
  return impl_->tasks.orders.attach(gang, task, std::move(handlers));
}

AdoptionResult KubernetesEngine::adopt(const GangId& gang, const std::string& task) {
  impl_->begin();
  return impl_->tasks.adopt(gang, task);
}

/// The attempt is over: all of its objects go.
void KubernetesEngine::scrub(const GangId& gang) {
  impl_->begin();
  impl_->tasks.scrub(gang);
  if (const PodGangPointer held = impl_->gangs.find(gang)) impl_->objects.release(held);
}

Result<void> KubernetesEngine::remove(const std::string& job_id) {
  impl_->begin();
  for (const PodGangPointer& gang : impl_->gangs.all()) {
    if (gang->gang.job_id == job_id) impl_->objects.release(gang);
  }
  return impl_->tasks.trees.remove(job_id);
}

void KubernetesEngine::measure(const std::string& job_id, Measured done) {
  impl_->tasks.trees.measure(job_id, std::move(done));
}

Result<std::unique_ptr<LogCursor>> KubernetesEngine::open_log(const GangId& gang,
                                                              const std::string& task) {
  return impl_->tasks.open_log(gang, task);
}

std::shared_ptr<void> KubernetesEngine::watch_log(const GangId& gang, const std::string& task,
                                                  std::function<void()> grown) {
  return impl_->tasks.watch_log(gang, task, std::move(grown));
}

MetricReader KubernetesEngine::open_metrics(const GangId& gang, const std::string& task) {
  return impl_->tasks.open_metrics(gang, task);
}

std::optional<fs::path> KubernetesEngine::artifacts_folder(const std::string& job_id) const {
  return impl_->tasks.artifacts_folder(job_id);
}

std::string KubernetesEngine::mpi_of(const GangId& gang, const std::string& task) const {
  return impl_->tasks.mpi_of(gang, task);
}

std::vector<RankPlace> KubernetesEngine::ranks(const GangId& gang,
                                               const std::vector<std::string>& tasks) const {
  return impl_->tasks.ranks(gang, tasks);
}

}  // namespace muster::engine
