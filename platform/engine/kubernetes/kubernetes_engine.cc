#include "engine/kubernetes/kubernetes_engine.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/descriptors.h"
#include "base/log.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "engine/engine_errors.h"
#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/cluster_news.h"
#include "engine/kubernetes/cluster_view.h"
#include "engine/kubernetes/descriptor_room.h"
#include "engine/kubernetes/gang_pods.h"
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
using kubernetes::KubernetesOptions;
using kubernetes::pod_job_of;
using kubernetes::pod_task_of;
using kubernetes::PodGangPointer;
using kubernetes::PodJob;
using kubernetes::PodTask;
using kubernetes::Preparations;
using launch::TaskPlan;
using lent::TaskPointer;

namespace {

/// Between two tries to open the port that pods call.
constexpr std::chrono::seconds kCallbackPause{10};

lent::LentOptions lent_options_of(const KubernetesOptions& options) {
  lent::LentOptions lent;
  lent.folder = options.folder;
  lent.programs_on_nodes = node::kPodPrograms;
  lent.folder_on_nodes = node::kPodJobs;
  lent.sharing = node::Sharing::kNo;
  lent.has_own_folders = true;
  lent.shares_artifacts = !options.pods.artifacts_class.empty();
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

/// All addresses of this machine: pods of a cluster without IPv4 call by IPv6.
const char* all_addresses() {
  const base::UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  const auto* const address = reinterpret_cast<const sockaddr*>(&any);
  const bool has_ipv6 = socket && ::bind(socket.get(), address, sizeof any) == 0;
  return has_ipv6 ? "::" : "0.0.0.0";
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
  /// first used: a server that does not lead must change nothing. If what is left cannot be listed, the
  /// engine has no part in the cluster, because it would delete running pods.
  void begin();
  /// Opens the port that pods call, and tries again until it is open.
  void open_callback();
  /// Why pods cannot call this server.
  std::optional<Error> closed() const;
  std::string brief_of(const kubernetes::PodGang& gang) const;

  /// A gang that waits in a queue of the cluster goes back there if it is preempted.
  kubernetes::PodLosses::Preempted on_preempted();

  base::EventLoop& loop;
  const KubernetesOptions options;
  kubernetes::ApiClient client;
  bool has_begun = false;
  Result<void> loaded;  ///< whether begin() could list what an earlier server left
  std::optional<Result<node::CallbackSite>> callback;
  base::EventLoop::Interest callback_retry;
  lent::LentTasks tasks{loop, lent_options_of(options),
                        kubernetes::pod_table_options(options.folder)};
  kubernetes::PodGangTable gangs{tasks.gangs, options.pods.owner};
  kubernetes::ClusterView view{loop, client, options.nodes};
  kubernetes::PodLines lines{
      loop, client, options.pods.space, options.pods.owner, options.pods.port, tasks};
  Preparations preparations{
      loop,
      options.pod_timeout,
      {.outage = [this] { return view.outage(); },
       .given_up = [this](const PodGangPointer& gang,
                          const std::vector<std::string>& names) { pods.give_up(gang, names); }}};
  kubernetes::DescriptorRoom descriptors{
      loop, gangs, {}, [this](const PodGangPointer& gang) { objects.create(gang); }};
  kubernetes::GangObjects objects{
      loop,
      client,
      options.pods,
      gangs,
      options.pod_timeout,
      {.closed = [this] { return closed(); },
       .admit = [this](const PodGangPointer& gang) { return descriptors.admit(gang); },
       .brief_of = [this](const kubernetes::PodGang& gang) { return brief_of(gang); },
       .changed = [this](const PodGangPointer& gang) { preparations.look(gang); }}};
  kubernetes::GangPods pods{options.pods,
                            {.loop = loop,
                             .gangs = gangs,
                             .view = view,
                             .objects = objects,
                             .preparations = preparations}};
  kubernetes::PodAllocations allocations{
      gangs, tasks.reports,
      [this](const PodJob& job, std::vector<PodTask> its_pods, Preparations::Progress progress,
             Preparations::Done done) {
        return pods.prepare(job, std::move(its_pods), std::move(progress), std::move(done),
                            Preparations::Since::kNode);
      }};
  kubernetes::PodLosses losses{loop, gangs, tasks, on_preempted()};
  kubernetes::PodStarts starts{
      tasks,
      gangs,
      {.prepare =
           [this](const PodJob& job, std::vector<PodTask> its_pods, Preparations::Done done) {
             return pods.prepare(job, std::move(its_pods), nullptr, std::move(done));
           },
       .give_up = [this](const PodGangPointer& gang,
                         const std::vector<std::string>& names) { pods.give_up(gang, names); },
       .gpu_model_on = [this](const std::string& node) { return pods.gpu_model_on(node); }}};
  kubernetes::ClusterNews news{options,
                               {.gangs = gangs,
                                .view = view,
                                .lines = lines,
                                .preparations = preparations,
                                .losses = losses,
                                .objects = objects}};
};

Result<std::unique_ptr<KubernetesEngine>> KubernetesEngine::open(base::EventLoop& loop,
                                                                 KubernetesOptions options) {
  base::raise_descriptor_limit();
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
      // The pod object shows whether the task may still run; until then the job waits for the task.
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
  loaded = gangs.load();
  if (!loaded) return;
  if (options.are_called()) open_callback();
  for (const PodGangPointer& gang : gangs.all()) {
    // The server that waited for these pods is gone, and its caller begins another attempt.
    // A gang that waits in a queue of the cluster keeps its place: it is requested again.
    const bool keeps_place = options.has_queue() && !gang->is_unreadable;
    const bool is_useless = !gang->has_started_tasks() && !keeps_place;
    if (gang->record.given_back || is_useless) objects.release(gang);
  }
  view.begin(news.hooks());
}

void KubernetesEngine::Impl::open_callback() {
  callback = node::open_callback_site(
      loop,
      {.folder = options.folder,
       .owner = options.pods.owner,
       .bind = all_addresses(),
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
  if (*callback) return;
  base::log_error("pods cannot call this server: " + callback->error().what + "; tried again");
  callback_retry = loop.after(kCallbackPause, [this] { open_callback(); });
}

std::optional<Error> KubernetesEngine::Impl::closed() const {
  if (!callback || *callback) return std::nullopt;
  Error error = callback->error();
  error.what = "pods cannot call this server: " + error.what;
  return error;
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

kubernetes::PodLosses::Preempted KubernetesEngine::Impl::on_preempted() {
  if (!options.has_queue()) return nullptr;
  return
      [this](const PodGangPointer& gang, const job::PodEnd& end) { allocations.revoke(gang, end); };
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
      done(Error{.code = ErrorCode::kInternal, .what = "no task was given for a pod"});
    });
    return nullptr;
  }
  std::vector<PodTask> pods;
  for (const ImageRequest& image : images) {
    pods.push_back(pod_task_of(image, impl_->pods.gpu_model_on(image.node)));
  }
  const PodJob job = pod_job_of(gang, images);
  impl_->begin();
  return impl_->pods.prepare(
      job, std::move(pods), std::move(progress),
      [this, gang, images = std::move(images), done = std::move(done)](Result<void> how) {
        if (!how) return done(std::move(how).error());
        done(impl_->pods.facts_of(gang, images));
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
    if (!is_started) continue;
    const auto& facts = held->pods.at(name).facts;
    impl_->objects.remove_pod(held, name, facts ? facts->uid : "", std::chrono::seconds(1));
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

Result<void> KubernetesEngine::check_found_tasks() {
  impl_->begin();
  return impl_->loaded;
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
