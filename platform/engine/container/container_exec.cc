#include "engine/container/container_exec.h"

#include <signal.h>

#include <optional>
#include <utility>
#include <vector>

#include "engine/container/container_plan.h"
#include "engine/exec_words.h"
#include "engine/shim/run_wire.h"

namespace muster::engine {

namespace {

using base::Error;
using base::Result;

constexpr int kNotRun = 127;

std::string program(const char* name) {
  return std::string(kProgramsFolder) + "/" + name;
}

/// What is run for a helper: programs of Muster's own, with no more of the task than its files.
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

class Conversation : public std::enable_shared_from_this<Conversation> {
 public:
  Conversation(base::EventLoop& loop, DockerClient& client, job::ExitStatus if_cut,
               ExecHandlers handlers)
      : loop_(loop), client_(client), if_cut_(std::move(if_cut)), handlers_(std::move(handlers)) {}

  void begin(const std::string& container, const char* how, const std::string& first) {
    waiting_ = first;
    client_.create_exec(container,
                        {.argv = {program("muster-shim"), how, kTaskFolder},
                         .environment = {},
                         .user = {},
                         .folder = "/"},
                        [self = shared_from_this()](Result<std::string> id) {
                          if (self->ended_) return;
                          id ? self->open(*id) : self->cut(std::move(id).error());
                        });
  }

  void say(const RunMessage& message) {
    if (ended_) return;
    const std::string packet = encode_run(message);
    stream_ ? stream_->write(packet) : void(waiting_ += packet);
  }

  void write(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size(); at += kAttachPiece) {
      say(AttachInput{std::string(bytes.substr(at, kAttachPiece))});
    }
    is_full_ = is_full_ || waiting() > Exec::kHigh;
  }

  size_t waiting() const { return waiting_.size() + (stream_ ? stream_->waiting() : 0); }

  void pause(bool paused) {
    if (std::exchange(paused_, paused) == paused || ended_) return;
    if (stream_) stream_->pause(paused);
    if (!paused) {
      loop_.post([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->read();
      });
    }
  }

  void hear_end_of(TaskEnd task) { task_ = std::move(task); }

  void drop() {
    ended_ = true;
    handlers_ = {};
    close();
  }

 private:
  void open(const std::string& exec) {
    const std::weak_ptr<Conversation> weak = weak_from_this();
    client_.start_exec(exec, false,
                       {.on_output =
                            [weak](std::string_view bytes, bool is_error) {
                              if (const auto self = weak.lock()) self->take(bytes, is_error);
                            },
                        .on_end =
                            [weak] {
                              if (const auto self = weak.lock()) self->hung_up();
                            },
                        .on_drain =
                            [weak] {
                              if (const auto self = weak.lock()) self->drained();
                            }},
                       [self = shared_from_this()](Result<std::unique_ptr<DockerStream>> stream) {
                         if (self->ended_) return;  // dropped with what has come: a hang-up
                         stream ? self->opened(*std::move(stream))
                                : self->cut(std::move(stream).error());
                       });
  }

  void opened(std::unique_ptr<DockerStream> stream) {
    stream_ = std::move(stream);
    if (paused_) stream_->pause(true);
    stream_->write(std::exchange(waiting_, ""));
    drained();
  }

  void take(std::string_view bytes, bool is_error) {
    if (ended_) return;
    if (is_error) {
      words_ += bytes.substr(0, kKeptWords - std::min(kKeptWords, words_.size()));
      return;
    }
    reader_.add(bytes);
    read();
  }

  void read() {
    while (!paused_ && !ended_) {
      const auto message = reader_.next();
      if (!message) break;
      std::visit([this](const auto& said) { heed(said); }, *message);
    }
    if (!ended_ && reader_.is_broken()) return finish(if_cut_);
    if (!ended_ && !paused_ && hung_up_) cut_off();
  }

  void heed(const AttachOutput& output) {
    const auto on_output = handlers_.on_output;
    if (on_output) on_output(output.bytes, output.is_error);
  }
  void heed(const AttachLeftOut& gap) {
    const auto on_output = handlers_.on_output;
    if (on_output) on_output(left_out_text(gap.bytes), true);
  }
  void heed(const RunOutputEnd& end) {
    const auto on_end = handlers_.on_output_end;
    if (on_end) on_end(end.is_error);
  }
  void heed(const RunRefused& refused) { finish({.code = kNotRun, .error = refused.error.what}); }
  void heed(const RunEnded& end) { finish(end.record.status); }
  /// The rest is for the shim, or says no more than that all is well.
  template <class Message>
  void heed(const Message& /*message*/) {}

  void hung_up() {
    hung_up_ = true;
    if (!paused_) read();
  }

  /// By the end of the task, mostly: its container is removed when that is known.
  void cut_off() {
    if (!words_.empty() && if_cut_.error.empty()) if_cut_.error = words_;
    const std::weak_ptr<Conversation> weak = weak_from_this();
    if (task_) {
      patience_ = loop_.after(kPatience, [weak] {
        if (const auto self = weak.lock()) self->say_end(self->if_cut_);
      });
    }
    finish(if_cut_);
  }

  void cut(const Error& error) {
    job::ExitStatus status = if_cut_;
    status.error = error.what;
    finish(status);
  }

  void finish(const job::ExitStatus& status) {
    if (!task_) return say_end(status);
    close();
    reader_ = {};
    task_->wait([weak = weak_from_this(), status] {
      const auto self = weak.lock();
      if (self) self->say_end(self->task_->status().value_or(status));
    });
  }

  void say_end(const job::ExitStatus& status) {
    const auto on_exit = std::exchange(handlers_.on_exit, nullptr);
    drop();
    if (on_exit) on_exit(status);
  }

  void drained() {
    if (ended_ || !is_full_ || waiting() > Exec::kHigh) return;
    is_full_ = false;
    const auto on_drain = handlers_.on_drain;
    if (on_drain) on_drain();
  }

  /// Later: this may be in the midst of being called by it.
  void close() {
    if (!stream_) return;
    loop_.post([stream = std::shared_ptr<DockerStream>(std::move(stream_))] {});
  }

  static constexpr size_t kKeptWords = 400;
  /// Of a connection that breaks though the task may go on.
  static constexpr std::chrono::seconds kPatience{3};

  base::EventLoop& loop_;
  DockerClient& client_;
  job::ExitStatus if_cut_;  ///< how it ended where nobody says so
  ExecHandlers handlers_;
  RunReader reader_;
  std::unique_ptr<DockerStream> stream_;
  std::string waiting_;  ///< until there is a stream
  std::string words_;    ///< of the shim itself
  bool paused_ = false;
  bool is_full_ = false;
  bool hung_up_ = false;
  bool ended_ = false;
  std::optional<TaskEnd> task_;  ///< whose own program it is
  base::EventLoop::Interest patience_;
};

class ContainerExec : public Exec {
 public:
  explicit ContainerExec(std::shared_ptr<Conversation> conversation)
      : conversation_(std::move(conversation)) {}
  ~ContainerExec() override { conversation_->drop(); }
  void write(std::string_view bytes) override { conversation_->write(bytes); }
  size_t waiting() const override { return conversation_->waiting(); }
  void close_input() override { conversation_->say(AttachInputEnd{}); }
  void resize(int rows, int columns) override {
    conversation_->say(AttachSize{.rows = rows, .columns = columns});
  }
  void pause(bool paused) override { conversation_->pause(paused); }

 private:
  std::shared_ptr<Conversation> conversation_;
};

}  // namespace

std::unique_ptr<Exec> run_in_container(base::EventLoop& loop, DockerClient& client,
                                       const std::string& container, const ExecPlan& plan,
                                       ExecHandlers handlers) {
  // Without a word: its task has ended and took it along.
  const auto conversation = std::make_shared<Conversation>(
      loop, client, job::ExitStatus{.signal = SIGKILL, .error = ""}, std::move(handlers));
  conversation->begin(container, "--run", encode_run(start_of(plan)));
  return std::make_unique<ContainerExec>(conversation);
}

std::unique_ptr<Exec> attach_to_container(base::EventLoop& loop, DockerClient& client,
                                          const std::string& container, TaskEnd end,
                                          ExecHandlers handlers) {
  const auto conversation = std::make_shared<Conversation>(
      loop, client, job::ExitStatus{.lost = true, .error = "the task's terminal is gone"},
      std::move(handlers));
  conversation->hear_end_of(std::move(end));
  conversation->begin(container, "--attach", "");
  return std::make_unique<ContainerExec>(conversation);
}

}  // namespace muster::engine
