// Files of tasks that run are changed by a program in their containers: what puts a file into a
// container from outside takes the old one away first, and follows what the task has put there.
//
// /etc/hosts stays as it is: the network of a job knows its tasks by name, and where tasks are on
// the network of their hosts the names that they are told (their own, and their leader's) were
// there from the start.
#include <algorithm>
#include <utility>

#include "engine/change_errors.h"
#include "engine/container/container_engine_impl.h"
#include "engine/container/container_exec.h"
#include "engine/shim/change.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr size_t kLongestRefusal = 4096;
/// A program whose container ends is gone a moment before that is known.
constexpr std::chrono::seconds kEndPause{3};

}  // namespace

/// The program in the container of one task. It is held by the engine until it has said how it
/// went.
class ContainerEngine::Impl::Change : public std::enable_shared_from_this<Change> {
 public:
  Change(Impl& engine, std::shared_ptr<HeldTask> task, Then then)
      : engine_(engine), task_(std::move(task)), then_(std::move(then)) {}

  void begin(const std::vector<launch::PlannedFile>& written) {
    give_up_after(engine_.options.patience.answer,
                  {.code = ErrorCode::kTimeout, .what = "its container does not answer"});
    const std::string shim = std::string(kProgramsFolder) + "/muster-shim";
    exec_ = run_in_container(engine_.loop, task_->host->client(), task_->container,
                             {.argv = {shim, "--change", kTaskFolder}, .environment = {}},
                             {.on_output = [this](std::string_view bytes, bool) { hear(bytes); },
                              .on_exit = [this](const job::ExitStatus& status) { ended(status); }});
    exec_->write(encode(written));
    exec_->close_input();
  }

 private:
  void hear(std::string_view bytes) {
    words_ += bytes.substr(0, kLongestRefusal - std::min(kLongestRefusal, words_.size()));
  }

  void ended(const job::ExitStatus& status) {
    if (status.succeeded() || task_->end) return say({});
    Error error{.code = ErrorCode::kUnavailable,
                .what = status.error.empty() ? "its container was ended" : status.error};
    if (status.code == 1 && !words_.empty()) error = read_refusal(words_);
    const bool may_be_over =
        error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kNotFound;
    if (!may_be_over) return say(std::move(error));
    task_->when_over.emplace_back([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->say({});
    });
    give_up_after(kEndPause, std::move(error));
  }

  void give_up_after(std::chrono::milliseconds pause, Error error) {
    bound_ = engine_.loop.after(pause, [this, error = std::move(error)] { say(error); });
  }

  /// Once; and later, for this may be called by what goes with it.
  void say(Result<void> how) {
    if (std::exchange(has_said_, true)) return;
    engine_.soon([self = shared_from_this(), how = std::move(how)] {
      std::erase(self->engine_.changes, self);
      self->exec_.reset();
      self->bound_.reset();
      self->then_(how);
    });
  }

  Impl& engine_;
  std::shared_ptr<HeldTask> task_;
  Then then_;
  std::unique_ptr<Exec> exec_;
  std::string words_;
  base::EventLoop::Interest bound_;
  bool has_said_ = false;
};

void ContainerEngine::Impl::change(const std::shared_ptr<HeldTask>& task,
                                   const launch::FileChange& change, Then then) {
  const auto named = [name = change.task, then = std::move(then)](Result<void> changed) {
    if (!changed) return then(change_error(name, std::move(changed).error()));
    then({});
  };
  changes.push_back(std::make_shared<Change>(*this, task, named));
  changes.back()->begin(change.files);
}

/// Also before it has a container.
bool ContainerEngine::Impl::is_being_started(const Gang& gang, const std::string& task) const {
  return std::any_of(starting.begin(), starting.end(), [&](const auto& start) {
    const auto is_it = [&](const launch::TaskPlan& plan) { return plan.task == task; };
    return start->gang == gang &&
           (std::any_of(start->plans.begin(), start->plans.end(), is_it) ||
            std::find(start->tasks.begin(), start->tasks.end(), task) != start->tasks.end());
  });
}

void ContainerEngine::change_files(const Gang& gang, std::vector<launch::FileChange> changes,
                                   Done done) {
  std::vector<Step> steps;
  for (launch::FileChange& change : changes) {
    if (impl_->is_being_started(gang, change.task)) {
      steps.emplace_back(
          [name = change.task](const Then& then) { then(change_error(name, not_started_yet())); });
      continue;
    }
    const auto task = impl_->find({gang, change.task});
    if (task == nullptr || task->end || change.files.empty()) continue;
    steps.emplace_back([impl = impl_.get(), task, change = std::move(change)](Then then) {
      impl->change(task, change, std::move(then));
    });
  }
  all_at_once(steps, [impl = impl_.get(), done = std::move(done)](const Result<void>& changed) {
    impl->soon([done, changed] { done(changed); });
  });
}

}  // namespace muster::engine
