#include "engine/container/container_engine.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/files.h"
#include "engine/container/container_plan.h"
#include "engine/container/container_tasks.h"
#include "engine/container/docker_client.h"
#include "engine/container/gang_networks.h"
#include "engine/container/gang_starts.h"
#include "engine/container/hosts.h"
#include "engine/container/job_volumes.h"
#include "engine/container/leftovers.h"
#include "engine/container/removals.h"
#include "engine/container/steps.h"
#include "engine/container/task_table.h"
#include "engine/engine.h"
#include "engine/engine_errors.h"
#include "engine/folder/file_watch.h"
#include "engine/folder/run_conversation.h"
#include "engine/folder/task_folder.h"
#include "engine/folder/trees.h"
#include "engine/shim/change.h"
#include "engine/shim/run_wire.h"
#include "launch/task_plan.h"
#include "workspace/small_archive.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// The programs that are put into each container. They need no library of the image.
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

// --- programs beside the task's own, and attaching to the task's own: both go through the task's
// shim (engine/shim/run_wire.h)

std::string program(const char* name) {
  return std::string(kProgramsFolder) + "/" + name;
}

/// The program to run. A helper is a program of Muster's own and gets nothing of the task's
/// environment.
RunStart start_of(const ExecPlan& plan) {
  RunStart start;
  start.program.argv = plan.argv;
  start.program.terminal = plan.terminal;
  start.rows = plan.rows;
  start.columns = plan.columns;
  start.inherits = plan.helper == Helper::kNone;
  for (const auto& [name, value] : plan.environment) {
    start.program.environment.push_back(name + "=" + value);
  }
  if (const std::string word = word_of(plan.helper); !word.empty()) {
    start.program.argv.insert(start.program.argv.begin(), {program("muster-helper"), word});
    start.program.environment.clear();
  }
  return start;
}

class DockerLink : public RunLink {
 public:
  explicit DockerLink(std::unique_ptr<DockerStream> stream) : stream_(std::move(stream)) {}
  void write(std::string_view bytes) override { stream_->write(bytes); }
  size_t waiting() const override { return stream_->waiting(); }
  void pause(bool paused) override { stream_->pause(paused); }

 private:
  std::unique_ptr<DockerStream> stream_;
};

void open_stream(DockerClient& client, const std::string& exec,
                 const std::shared_ptr<RunConversation>& conversation) {
  const std::weak_ptr<RunConversation> weak = conversation;
  client.start_exec(exec, false,
                    {.on_output =
                         [weak](std::string_view bytes, bool is_error) {
                           const auto still = weak.lock();
                           if (still && !still->has_ended()) {
                             is_error ? still->add_words(bytes) : still->take(bytes);
                           }
                         },
                     .on_end =
                         [weak] {
                           if (const auto still = weak.lock()) still->hung_up();
                         },
                     .on_drain =
                         [weak] {
                           if (const auto still = weak.lock()) still->drained();
                         }},
                    [conversation](Result<std::unique_ptr<DockerStream>> stream) {
                      if (conversation->has_ended()) return;  // `stream` is dropped
                      if (!stream) return conversation->cut(std::move(stream).error());
                      conversation->connected(std::make_unique<DockerLink>(*std::move(stream)));
                    });
}

void create_shim_exec(DockerClient& client, const std::string& container, const char* how,
                      const std::shared_ptr<RunConversation>& conversation) {
  client.create_exec(container,
                     {.argv = {program("muster-shim"), how, kTaskFolder},
                      .environment = {},
                      .user = {},
                      .folder = "/"},
                     [&client, conversation](Result<std::string> id) {
                       if (conversation->has_ended()) return;
                       id ? open_stream(client, *id, conversation)
                          : conversation->cut(std::move(id).error());
                     });
}

/// Runs a program in a container whose shim is running. Faults are reported later: if the program
/// does not exist, or the container has ended, the exit code is 127 and the status has the reason.
std::unique_ptr<Exec> run_in_container(base::EventLoop& loop, DockerClient& client,
                                       const std::string& container, const ExecPlan& plan,
                                       ExecHandlers handlers) {
  // A program that vanishes without a report was killed with its task.
  const auto conversation = std::make_shared<RunConversation>(
      loop, job::ExitStatus{.signal = SIGKILL, .error = ""}, std::move(handlers));
  conversation->send(start_of(plan));
  create_shim_exec(client, container, "--run", conversation);
  return near_end_of(conversation);
}

/// The input and output of the task's own program. Its end is reported when its log is complete.
std::unique_ptr<Exec> attach_to_container(base::EventLoop& loop, DockerClient& client,
                                          const std::string& container, TaskEnd end,
                                          ExecHandlers handlers) {
  const auto conversation = std::make_shared<RunConversation>(
      loop, job::ExitStatus{.lost = true, .error = "the connection to the task's program is lost"},
      std::move(handlers));
  conversation->await_end_of(std::move(end));
  create_shim_exec(client, container, "--attach", conversation);
  return near_end_of(conversation);
}

/// The limit for the refusal of a shim that cannot change files.
constexpr size_t kLongestRefusal = 4096;
/// The end of a program is known a moment before the end of its container.
constexpr std::chrono::seconds kEndPause{3};

}  // namespace

/// Changes files of running tasks by a program in their containers. Copying a file into a container
/// from outside would remove the old file first, and would follow links that the task has made.
///
/// /etc/hosts is not changed: tasks on a job's network find each other by name, and tasks on the
/// network of their hosts have had their names (their own and the leader's) from the start.
class FileChanges {
 public:
  /// `patience`: the time limit for a container's answer.
  FileChanges(base::EventLoop& loop, std::chrono::milliseconds patience);
  ~FileChanges();

  /// Writes the files of `change` in the task's container. Succeeds if the task ends meanwhile.
  void change(const std::shared_ptr<HeldTask>& task, const launch::FileChange& change, Then then);
  /// Drops all pending changes.
  void clear();

 private:
  class Change;

  base::EventLoop& loop_;
  std::chrono::milliseconds patience_;
  Later later_;
  std::vector<std::shared_ptr<Change>> pending_;
};

/// The program in the container of one task. FileChanges holds it until it has reported its result.
class FileChanges::Change : public std::enable_shared_from_this<Change> {
 public:
  Change(FileChanges& changes, std::shared_ptr<HeldTask> task, Then then)
      : changes_(changes), task_(std::move(task)), then_(std::move(then)) {}

  void begin(const std::vector<launch::PlannedFile>& written) {
    give_up_after(changes_.patience_,
                  {.code = ErrorCode::kTimeout, .what = "its container does not answer"});
    const std::string shim = std::string(kProgramsFolder) + "/muster-shim";
    exec_ =
        run_in_container(changes_.loop_, task_->host->client(), task_->container,
                         {.argv = {shim, "--change", kTaskFolder}, .environment = {}},
                         {.on_output = [this](std::string_view bytes, bool) { keep_output(bytes); },
                          .on_exit = [this](const job::ExitStatus& status) { ended(status); }});
    exec_->write(encode(written));
    exec_->close_input();
  }

 private:
  void keep_output(std::string_view bytes) {
    words_ += bytes.substr(0, kLongestRefusal - std::min(kLongestRefusal, words_.size()));
  }

  void ended(const job::ExitStatus& status) {
    if (status.succeeded() || task_->end) return report({});
    Error error{.code = ErrorCode::kUnavailable,
                .what = status.error.empty() ? "its container was ended" : status.error};
    if (status.code == 1 && !words_.empty()) error = read_refusal(words_);
    const bool may_be_over =
        error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kNotFound;
    if (!may_be_over) return report(std::move(error));
    task_->when_over.emplace_back([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->report({});
    });
    give_up_after(kEndPause, std::move(error));
  }

  void give_up_after(std::chrono::milliseconds pause, Error error) {
    bound_ = changes_.loop_.after(pause, [this, error = std::move(error)] { report(error); });
  }

  /// Reports the result once, and later, because exec_ may call this and is destroyed here.
  void report(Result<void> how) {
    if (std::exchange(has_reported_, true)) return;
    changes_.later_([self = shared_from_this(), how = std::move(how)] {
      std::erase(self->changes_.pending_, self);
      self->exec_.reset();
      self->bound_.reset();
      self->then_(how);
    });
  }

  FileChanges& changes_;
  std::shared_ptr<HeldTask> task_;
  Then then_;
  std::unique_ptr<Exec> exec_;
  std::string words_;
  base::EventLoop::Interest bound_;
  bool has_reported_ = false;
};

FileChanges::FileChanges(base::EventLoop& loop, std::chrono::milliseconds patience)
    : loop_(loop), patience_(patience), later_(loop) {}

FileChanges::~FileChanges() = default;

void FileChanges::change(const std::shared_ptr<HeldTask>& task, const launch::FileChange& change,
                         Then then) {
  const auto named = [name = change.task, then = std::move(then)](Result<void> changed) {
    if (!changed) return then(change_error(name, std::move(changed).error()));
    then({});
  };
  pending_.push_back(std::make_shared<Change>(*this, task, named));
  pending_.back()->begin(change.files);
}

void FileChanges::clear() {
  pending_.clear();
}

/// The parts of the engine. Each owns its data; later parts use earlier ones.
struct ContainerEngine::Impl {
  Impl(base::EventLoop& its_loop, ContainerEngineOptions its_options,
       std::vector<workspace::ArchiveEntry> programs);
  ~Impl();

  /// A task whose start has ended and which has not ended itself; else nullptr.
  std::shared_ptr<HeldTask> running(const GangId& gang, const std::string& name) const;

  base::EventLoop& loop;
  const ContainerEngineOptions options;
  Later later;
  FileWatch files;
  JobTrees trees;
  Hosts hosts;
  Removals removals;
  TaskTable tasks;
  GangNetworks networks;
  JobVolumes volumes;
  ContainerTasks following;
  GangStarts starts;
  FileChanges changes;
  Leftovers leftovers;
};

ContainerEngine::Impl::Impl(base::EventLoop& its_loop, ContainerEngineOptions its_options,
                            std::vector<workspace::ArchiveEntry> programs)
    : loop(its_loop),
      options(std::move(its_options)),
      later(loop),
      files(loop),
      trees(loop, options.folder, options.unpack_tree),
      hosts(loop, {.on_present = [this](HeldHost& host) { leftovers.host_is_present(host); },
                   .on_recovered = [this](HeldHost& host) { following.look_again(host); },
                   // The listener is notified by watch_nodes() that what ran there is lost.
                   .on_absent = [this](HeldHost& host) { following.abandon(host); }}),
      removals(loop),
      tasks(options.folder),
      networks(options.owner, removals),
      volumes(loop, options.owner, options.folder, removals),
      following(loop, options, tasks, removals),
      starts(loop, options,
             {.hosts = hosts,
              .tasks = tasks,
              .running = following,
              .networks = networks,
              .volumes = volumes,
              .trees = trees,
              .leftovers = leftovers,
              .removals = removals},
             std::move(programs)),
      changes(loop, options.patience.answer),
      leftovers(loop, options, tasks, following, networks, removals) {}

/// Everything that uses a host's connection is dropped before the hosts; with them all pending
/// answers are dropped, so no part is called after this.
ContainerEngine::Impl::~Impl() {
  tasks.disconnect();
  changes.clear();
  starts.clear();
  tasks.clear();
  hosts.close();
}

std::shared_ptr<HeldTask> ContainerEngine::Impl::running(const GangId& gang,
                                                         const std::string& name) const {
  const auto task = tasks.find({gang, name});
  return task == nullptr || task->start || task->end ? nullptr : task;
}

Result<std::unique_ptr<ContainerEngine>> ContainerEngine::open(base::EventLoop& loop,
                                                               ContainerEngineOptions options) {
  MUSTER_CHECK(base::make_private_folder(options.folder));
  MUSTER_TRY(auto programs, read_programs(options.programs));
  auto impl = std::make_unique<Impl>(loop, std::move(options), std::move(programs));
  MUSTER_CHECK(impl->hosts.connect(impl->options));
  impl->leftovers.ask(impl->hosts);
  return std::unique_ptr<ContainerEngine>(new ContainerEngine(std::move(impl)));
}

ContainerEngine::ContainerEngine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ContainerEngine::~ContainerEngine() = default;

// --- hosts

std::vector<Node> ContainerEngine::nodes() {
  return impl_->hosts.nodes();
}

std::shared_ptr<void> ContainerEngine::watch_nodes(std::function<void()> changed) {
  return impl_->hosts.watch(std::move(changed));
}

/// On the network of one host, tasks find each other by name. There is no network across hosts.
launch::Reach ContainerEngine::reach(const std::vector<std::string>& nodes) const {
  const bool is_one = std::all_of(nodes.begin(), nodes.end(),
                                  [&](const std::string& node) { return node == nodes.front(); });
  return is_one ? launch::Reach::kNames : launch::Reach::kHosts;
}

std::shared_ptr<void> ContainerEngine::prepare(const GangId&, std::vector<ImageRequest> images,
                                               std::function<void(const job::Fact&)> progress,
                                               Prepared done) {
  return impl_->hosts.prepare(std::move(images), std::move(progress), std::move(done));
}

Engine::ProgramsInTasks ContainerEngine::programs_in_tasks() const {
  const std::string folder = kProgramsFolder;
  return {.shim = folder + "/muster-shim", .remote_shell = folder + "/" + kRemoteShell};
}

// --- tasks

/// A server listens when it leads, so no other server uses these hosts now. It adopts the tasks of
/// its jobs in the same turn of the loop, also of jobs whose record is unreadable or missing; the
/// sweep that follows removes the rest.
void ContainerEngine::listen(Listener listener) {
  Impl& impl = *impl_;
  const bool begins =
      !impl.tasks.has_listener() && listener != nullptr && !impl.leftovers.has_swept();
  impl.tasks.set_listener(std::move(listener));
  if (!begins) return;
  impl.later([&impl] {
    impl.trees.sweep();
    impl.leftovers.sweep();
  });
}

std::string ContainerEngine::generated_folder(const GangId&, std::string_view, job::Sandbox) const {
  return kGeneratedFolder;
}

void ContainerEngine::start(const GangId& gang, std::vector<launch::TaskPlan> plans, Done done) {
  impl_->starts.start(gang, std::move(plans), std::move(done));
}

void ContainerEngine::change_files(const GangId& gang, std::vector<launch::FileChange> changes,
                                   Done done) {
  std::vector<Step> steps;
  for (launch::FileChange& change : changes) {
    if (impl_->starts.includes(gang, change.task)) {
      steps.emplace_back(
          [name = change.task](const Then& then) { then(change_error(name, not_started_yet())); });
      continue;
    }
    const auto task = impl_->tasks.find({gang, change.task});
    if (task == nullptr || task->end || change.files.empty()) continue;
    steps.emplace_back([impl = impl_.get(), task, change = std::move(change)](Then then) {
      impl->changes.change(task, change, std::move(then));
    });
  }
  all_at_once(steps, [impl = impl_.get(), done = std::move(done)](const Result<void>& changed) {
    impl->later([done, changed] { done(changed); });
  });
}

void ContainerEngine::stop(const GangId& gang, const std::vector<std::string>& names,
                           StopMode mode) {
  impl_->starts.stop(gang, names);
  for (const std::string& name : names) {
    if (const auto task = impl_->running(gang, name)) impl_->following.stop(task, mode);
  }
}

AdoptionResult ContainerEngine::adopt(const GangId& gang, const std::string& task) {
  return impl_->leftovers.adopt(gang, task, impl_->hosts);
}

std::optional<std::vector<RunningTask>> ContainerEngine::running_tasks(
    const std::string& job_id) const {
  return impl_->leftovers.running_tasks(job_id, impl_->hosts);
}

std::vector<std::string> ContainerEngine::unknown_jobs(
    const std::function<bool(const std::string& job_id)>& is_known) const {
  return impl_->leftovers.unknown_jobs(is_known);
}

std::vector<std::string> ContainerEngine::jobs_with_tasks() const {
  return impl_->leftovers.jobs_with_tasks();
}

void ContainerEngine::scrub(const GangId& gang) {
  for (const auto& [name, host] : impl_->hosts.all()) impl_->networks.remove(gang, *host);
}

Result<void> ContainerEngine::remove(const std::string& job_id) {
  impl_->volumes.remove(job_id, impl_->hosts);
  return impl_->trees.remove(job_id);
}

void ContainerEngine::measure(const std::string& job_id, Measured done) {
  impl_->trees.measure(job_id, std::move(done));
}

Result<std::unique_ptr<Exec>> ContainerEngine::exec(const GangId& gang, const std::string& name,
                                                    const ExecPlan& plan, ExecHandlers handlers) {
  const auto task = impl_->running(gang, name);
  if (task == nullptr) return not_running(name);
  return run_in_container(impl_->loop, task->host->client(), task->container, plan,
                          std::move(handlers));
}

Result<std::unique_ptr<Exec>> ContainerEngine::attach(const GangId& gang, const std::string& name,
                                                      ExecHandlers handlers) {
  const auto task = impl_->running(gang, name);
  if (task == nullptr) return not_running(name);
  const TaskEnd end{
      .status = [task] { return task->end ? std::optional(task->end->status) : std::nullopt; },
      .wait =
          [impl = impl_.get(), task](std::function<void()> over) {
            if (task->end) return impl->later(std::move(over));
            task->when_over.push_back(std::move(over));
          }};
  return attach_to_container(impl_->loop, task->host->client(), task->container, end,
                             std::move(handlers));
}

// --- reading the copies of the tasks' folders

Result<std::unique_ptr<LogCursor>> ContainerEngine::open_log(const GangId& gang,
                                                             const std::string& task) {
  return open_log_in(impl_->tasks.folder_of({gang, task}), task);
}

std::shared_ptr<void> ContainerEngine::watch_log(const GangId& gang, const std::string& task,
                                                 std::function<void()> grown) {
  return impl_->files.watch(impl_->tasks.folder_of({gang, task}).log(), std::move(grown));
}

MetricReader ContainerEngine::open_metrics(const GangId& gang, const std::string& task) {
  return MetricReader(impl_->tasks.folder_of({gang, task}).metrics());
}

std::optional<fs::path> ContainerEngine::artifacts_folder(const std::string& job_id) const {
  return artifacts_in(impl_->tasks.job_folder(job_id));
}

std::vector<RankPlace> ContainerEngine::ranks(const GangId& gang,
                                              const std::vector<std::string>& tasks) const {
  return ranks_in(impl_->tasks.attempt_folder(gang), tasks);
}

std::string ContainerEngine::mpi_of(const GangId& gang, const std::string& task) const {
  return mpi_in(impl_->tasks.folder_of({gang, task}));
}

}  // namespace muster::engine
