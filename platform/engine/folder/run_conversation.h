// The near end of a conversation with a program in another place: a program beside a task, or the
// task's own program. The messages are those of engine/shim/run_wire.h; a RunLink carries them.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/shim/run_wire.h"

namespace muster::engine {

/// A connection to the program's shim. Dropping it hangs up.
class RunLink {
 public:
  virtual ~RunLink() = default;
  virtual void write(std::string_view bytes) = 0;
  virtual size_t waiting() const = 0;  ///< bytes that were not sent yet
  virtual void pause(bool paused) = 0;
};

/// The end of a task, as its follower reports it. The follower copies the whole log first.
struct TaskEnd {
  std::function<std::optional<job::ExitStatus>()> status;  ///< nullopt: no end is known
  std::function<void(std::function<void()> over)> wait;    ///< for the end and all output
};

class RunConversation : public std::enable_shared_from_this<RunConversation> {
 public:
  /// `if_cut`: the status if the connection ends without a status.
  RunConversation(base::EventLoop& loop, job::ExitStatus if_cut, ExecHandlers handlers)
      : loop_(loop), if_cut_(std::move(if_cut)), handlers_(std::move(handlers)) {}

  /// For the task's own program: its end is reported when its log is complete.
  void await_end_of(TaskEnd task) { task_ = std::move(task); }

  // Events of the connection.
  /// Sends the messages that waited for the connection.
  void connected(std::unique_ptr<RunLink> link);
  void take(std::string_view bytes);
  /// Error output of the far end; its beginning is reported if the connection breaks.
  void add_words(std::string_view words);
  void hung_up();
  /// The program does not exist or cannot be reached; `error` is the reason of the far end. No
  /// other event follows.
  void refused(const base::Error& error);
  /// There is no connection, or it has ended.
  void cut(const base::Error& error);
  /// Less than Exec::kHigh may be waiting to be sent.
  void drained();
  bool has_ended() const { return ended_; }

  // Calls of the program's user.
  void when_begun(Exec::Begun on_begun);
  void send(const RunMessage& message);
  void write(std::string_view bytes);
  size_t waiting() const { return waiting_.size() + (link_ ? link_->waiting() : 0); }
  void pause(bool paused);
  void drop();

 private:
  bool may_read() const { return !ended_ && !(paused_ && has_begun_); }
  void read();
  void begun();
  void handle(const AttachOutput& output);
  void handle(const AttachLeftOut& gap);
  void handle(const RunOutputEnd& end);
  void handle(const RunRefused& refusal) { refused(refusal.error); }
  void handle(const RunEnded& end);
  /// Other messages are for the shim, or need no action.
  template <class Message>
  void handle(const Message& /*message*/) {}
  void report_begun(base::Result<void> how);
  void cut_off();
  void finish(const job::ExitStatus& status);
  void report_end(const job::ExitStatus& status);
  void close();

  base::EventLoop& loop_;
  job::ExitStatus if_cut_;
  ExecHandlers handlers_;
  Exec::Begun on_begun_;
  RunReader reader_;
  std::unique_ptr<RunLink> link_;
  std::string waiting_;  ///< bytes that wait for the link
  std::string words_;
  bool has_begun_ = false;
  bool paused_ = false;
  bool is_full_ = false;
  bool hung_up_ = false;
  bool ended_ = false;
  std::optional<TaskEnd> task_;  ///< set for the task's own program
  base::EventLoop::Interest patience_;
};

/// The handle for the caller; dropping it ends the conversation.
std::unique_ptr<Exec> near_end_of(std::shared_ptr<RunConversation> conversation);

}  // namespace muster::engine
