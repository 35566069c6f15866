#include "engine/container/container_exec.h"

#include <signal.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/container/container_plan.h"
#include "engine/engine_errors.h"
#include "engine/shim/change.h"
#include "engine/shim/run_wire.h"

namespace muster::engine {

namespace {

using base::Error;
using base::Result;

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
                             is_error ? still->hear_words(bytes) : still->take(bytes);
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
                      if (conversation->has_ended()) return;  // dropped with what has come
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

}  // namespace

std::unique_ptr<Exec> run_in_container(base::EventLoop& loop, DockerClient& client,
                                       const std::string& container, const ExecPlan& plan,
                                       ExecHandlers handlers) {
  // A program that vanishes without a report was killed with its task.
  const auto conversation = std::make_shared<RunConversation>(
      loop, job::ExitStatus{.signal = SIGKILL, .error = ""}, std::move(handlers));
  conversation->say(start_of(plan));
  create_shim_exec(client, container, "--run", conversation);
  return near_end_of(conversation);
}

std::unique_ptr<Exec> attach_to_container(base::EventLoop& loop, DockerClient& client,
                                          const std::string& container, TaskEnd end,
                                          ExecHandlers handlers) {
  const auto conversation = std::make_shared<RunConversation>(
      loop, job::ExitStatus{.lost = true, .error = "the task's terminal is gone"},
      std::move(handlers));
  conversation->hear_end_of(std::move(end));
  create_shim_exec(client, container, "--attach", conversation);
  return near_end_of(conversation);
}

using base::ErrorCode;

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
