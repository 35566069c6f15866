#include "engine/container/file_changes.h"

#include <algorithm>
#include <utility>

#include "engine/container/container_exec.h"
#include "engine/container/container_plan.h"
#include "engine/engine_errors.h"
#include "engine/shim/change.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr size_t kLongestRefusal = 4096;
/// The end of a program is known a moment before the end of its container.
constexpr std::chrono::seconds kEndPause{3};

}  // namespace

/// The program in the container of one task. FileChanges holds it until it has reported its result.
class FileChanges::Change : public std::enable_shared_from_this<Change> {
 public:
  Change(FileChanges& changes, std::shared_ptr<HeldTask> task, Then then)
      : changes_(changes), task_(std::move(task)), then_(std::move(then)) {}

  void begin(const std::vector<launch::PlannedFile>& written) {
    give_up_after(changes_.patience_,
                  {.code = ErrorCode::kTimeout, .what = "its container does not answer"});
    const std::string shim = std::string(kProgramsFolder) + "/muster-shim";
    exec_ = run_in_container(changes_.loop_, task_->host->client(), task_->container,
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
    bound_ = changes_.loop_.after(pause, [this, error = std::move(error)] { say(error); });
  }

  /// Reports the result once, and later, because exec_ may call this and is destroyed here.
  void say(Result<void> how) {
    if (std::exchange(has_said_, true)) return;
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
  bool has_said_ = false;
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

}  // namespace muster::engine
