#include "engine/kubernetes/preparations.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "engine/engine_errors.h"
#include "words/sentence.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;
using Waits = job::KubernetesWaits;

struct Preparations::Preparation {
  PodGangPointer gang;
  std::vector<std::string> tasks;
  Progress progress;
  Done done;  ///< empty once it was called, or cancelled
  std::optional<Waits> reported;
  base::EventLoop::Interest deadline;
  bool is_look_posted = false;
  bool is_changed = false;  ///< since the last examination
  size_t ready_tasks = 0;   ///< the first tasks, as last seen: a connection may be lost again
  base::EventLoop::Interest pause;  ///< until the next examination
};

namespace {

Waits to_be_created(const std::string& task, const std::optional<Error>& refusal) {
  return {.stage = Waits::Stage::kToBeCreated,
          .pod = "",
          .task = task,
          .node = "",
          .image = "",
          .container = "",
          .word = "",
          .text = refusal ? refusal->what : ""};
}

/// A folder of the node that a pod mounts, and that is not there. The kubelet tries again for ever.
std::optional<Error> missing_folder(const PodGang& gang, const HeldPod& pod) {
  if (!pod.event || pod.event->word != "FailedMount") return std::nullopt;
  for (const job::Volume& volume : gang.job.volumes) {
    if (volume.kind != job::Volume::Kind::kHostPath) continue;
    const std::string& text = pod.event->text;
    const bool is_it = text.find("hostPath type check failed") != std::string::npos &&
                       text.find(" " + volume.source + " is not ") != std::string::npos;
    if (!is_it) continue;
    return Error{
        .code = ErrorCode::kInvalid,
        .what = "volume " + volume.target + ": there is no '" + volume.source + "' on this node",
        .advice = "give a folder that is on node " + pod.facts->node};
  }
  return std::nullopt;
}

/// The reason why a pod is not ready; nullopt: it is ready.
std::optional<Waits> wait_of_task(const PodGang& gang, const std::string& task) {
  for (const auto& [plural, missing] : gang.missing) {
    if (missing.refusal) return to_be_created(task, missing.refusal);
  }
  if (is_ready(gang, task)) return std::nullopt;
  const auto found = gang.pods.find(task);
  if (found == gang.pods.end()) return to_be_created(task, std::nullopt);
  const HeldPod& pod = found->second;
  if (pod.facts) {
    Waits waits = wait_of(*pod.facts, task, pod.event);
    const bool is_queued = waits.word == kGated && !gang.queue_text.empty();
    if (is_queued) waits.text = gang.queue_text;
    return waits;
  }
  return to_be_created(task, gang.refusal ? gang.refusal : pod.refusal);
}

/// How many pods of the gang have a node.
size_t nodes_of(const PodGang& gang) {
  return static_cast<size_t>(std::count_if(
      gang.pods.begin(), gang.pods.end(),
      [](const auto& named) { return named.second.facts && !named.second.facts->node.empty(); }));
}

}  // namespace

bool is_ready(const PodGang& gang, const std::string& task) {
  const TaskPointer held = gang.task(task);
  const auto pod = gang.pods.find(task);
  // Without facts, the connection is to an earlier pod of this name, which was given up.
  const bool has_pod = pod != gang.pods.end() && pod->second.facts;
  return has_pod && held != nullptr && held->line != nullptr && held->line->hello().image;
}

std::shared_ptr<void> Preparations::add(const PodGangPointer& gang, std::vector<std::string> tasks,
                                        Progress progress, Done done, Since since) {
  auto preparation = std::make_shared<Preparation>();
  preparation->gang = gang;
  preparation->tasks = std::move(tasks);
  preparation->progress = std::move(progress);
  preparation->done = std::move(done);
  const std::weak_ptr<Preparation> weak = preparation;
  if (since == Since::kBegin) begin_timeout(preparation);
  all_.push_back(preparation);
  look_soon(preparation);
  return {nullptr, [this, weak, alive = std::weak_ptr(alive_)](void*) {
            const auto still = weak.lock();
            if (alive.lock() && still) cancel(still);
          }};
}

void Preparations::begin_timeout(const Pointer& preparation) {
  preparation->deadline = loop_.after(timeout_, [this, weak = std::weak_ptr(preparation)] {
    if (const auto still = weak.lock()) timed_out(still);
  });
}

std::vector<Preparations::Pointer> Preparations::of(const PodGangPointer& gang) const {
  std::vector<Pointer> its;
  for (const Pointer& each : all_) {
    if (each->gang == gang) its.push_back(each);
  }
  return its;
}

void Preparations::look(const PodGangPointer& gang) {
  for (const Pointer& each : of(gang)) look_soon(each);
}

void Preparations::look_soon(const Pointer& preparation) {
  if (std::exchange(preparation->is_look_posted, true)) return;
  loop_.post([this, weak = std::weak_ptr(preparation), alive = std::weak_ptr(alive_)] {
    const auto still = weak.lock();
    if (!alive.lock() || !still) return;
    still->is_look_posted = false;
    examine_in_turn(still);
  });
}

/// A preparation that may be over is examined at once.
void Preparations::examine_in_turn(const Pointer& preparation) {
  if (preparation->done == nullptr) return;
  const PodGang& gang = *preparation->gang;
  size_t& ready = preparation->ready_tasks;
  while (ready < preparation->tasks.size() && is_ready(gang, preparation->tasks[ready])) ++ready;
  const bool may_be_ready = gang.has_others && ready == preparation->tasks.size();
  const bool may_be_over = may_be_ready || gang.fault || gang.is_releasing || gang.is_unreadable;
  preparation->is_changed = true;
  if (may_be_over || !preparation->pause) look_at(preparation);
}

void Preparations::look_at_all() {
  const auto all = all_;
  for (const Pointer& each : all) look_at(each);
}

bool Preparations::is_waited_for(const PodGangPointer& gang, const std::string& task) const {
  const auto its = of(gang);
  return std::any_of(its.begin(), its.end(), [&](const Pointer& each) {
    return std::find(each->tasks.begin(), each->tasks.end(), task) != each->tasks.end();
  });
}

/// nullopt: it is not decided yet.
std::optional<Result<void>> Preparations::outcome(const Preparation& preparation) const {
  const PodGang& gang = *preparation.gang;
  if (gang.is_releasing) {
    return Error{.code = ErrorCode::kUnavailable, .what = "its pods are being deleted"};
  }
  if (gang.fault) return *gang.fault;
  if (gang.is_unreadable) {
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "the record of its attempt cannot be read, so no pod can be added"};
  }
  bool all_ready = gang.has_others;
  for (const std::string& task : preparation.tasks) {
    if (is_ready(gang, task)) continue;
    all_ready = false;
    const auto pod = gang.pods.find(task);
    if (pod == gang.pods.end() || !pod->second.facts) continue;
    if (auto fault = hopeless(*pod->second.facts, task)) return *std::move(fault);
    if (auto fault = missing_folder(gang, pod->second)) return *std::move(fault);
    if (pod->second.is_gone) {
      return Error{.code = ErrorCode::kUnavailable,
                   .what = task + " " + job::explain(end_of_pod(*pod->second.facts, true))};
    }
  }
  if (all_ready) return Result<void>{};
  return std::nullopt;
}

void Preparations::look_at(const Pointer& preparation) {
  if (preparation->done == nullptr) return;
  preparation->is_changed = false;
  preparation->ready_tasks = 0;
  preparation->pause = loop_.after(kExamineAgain, [this, weak = std::weak_ptr(preparation)] {
    const auto still = weak.lock();
    if (!still) return;
    still->pause.reset();
    if (still->is_changed) look_at(still);
  });
  if (auto how = outcome(*preparation)) return settle(preparation, *std::move(how));
  const bool is_due = !preparation->deadline && nodes_of(*preparation->gang) > 0;
  if (is_due) begin_timeout(preparation);
  std::optional<Waits> first;
  int others = -1;
  for (const std::string& task : preparation->tasks) {
    auto waits = wait_of_task(*preparation->gang, task);
    if (!waits) continue;
    ++others;
    if (!first || is_behind(*waits, *first)) first = std::move(waits);
  }
  if (!first) return;
  first->others = others;
  if (const auto outage = hooks_.outage()) {
    first = Waits{.stage = Waits::Stage::kAway,
                  .pod = "",
                  .task = first->task,
                  .node = "",
                  .image = "",
                  .container = "",
                  .word = "",
                  .text = outage->what};
  }
  if (preparation->reported == first) return;
  preparation->reported = first;
  if (preparation->progress) preparation->progress(*first);
}

void Preparations::settle(const Pointer& preparation, Result<void> how) {
  const Done done = std::exchange(preparation->done, nullptr);
  if (done == nullptr) return;
  preparation->deadline.reset();
  preparation->pause.reset();
  std::erase(all_, preparation);
  if (!how) hooks_.given_up(preparation->gang, preparation->tasks);
  done(std::move(how));
}

void Preparations::timed_out(const Pointer& preparation) {
  look_at(preparation);
  if (preparation->done == nullptr) return;
  // The job's own programs may take any time.
  const bool is_at_work =
      preparation->reported && preparation->reported->stage == Waits::Stage::kInitContainer;
  if (is_at_work) return begin_timeout(preparation);
  const std::string reason = preparation->reported
                                 ? words::sentence(job::Reason(*preparation->reported))
                                 : "no pod was reported";
  const PodGang& gang = *preparation->gang;
  Error error{
      .code = ErrorCode::kUnavailable,
      .what = "its pods did not start within " + base::format_duration(timeout_) + ": " + reason,
      .advice = "kubernetes.pod_timeout in the server's configuration sets this time"};
  if (nodes_of(gang) < gang.pods.size()) error.detail = std::make_shared<const LackOfNodes>();
  settle(preparation, std::move(error));
}

void Preparations::cancel(const Pointer& preparation) {
  if (preparation->done == nullptr) return;
  preparation->done = nullptr;
  preparation->deadline.reset();
  preparation->pause.reset();
  std::erase(all_, preparation);
  hooks_.given_up(preparation->gang, preparation->tasks);
}

}  // namespace muster::engine::kubernetes
