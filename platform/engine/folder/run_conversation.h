// The near end of a program that runs elsewhere, beside a task or as the task's own, and is spoken
// to in the words of engine/shim/run_wire.h, by whatever connection leads there.
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

/// How a task is known to have ended: by what follows it, which hears all of its log before.
struct TaskEnd {
  std::function<std::optional<job::ExitStatus>()> status;  ///< nullopt: it has not, or nobody knows
  std::function<void(std::function<void()> over)> wait;    ///< calls when nothing more is heard
};

class RunConversation : public std::enable_shared_from_this<RunConversation> {
 public:
  /// `if_cut`: how it ended where nobody says so.
  RunConversation(base::EventLoop& loop, job::ExitStatus if_cut, ExecHandlers handlers)
      : loop_(loop), if_cut_(std::move(if_cut)), handlers_(std::move(handlers)) {}

  /// It is the task's own program: whoever sits before it hears of its end when its log is whole.
  void hear_end_of(TaskEnd task) { task_ = std::move(task); }

  // What the connection brings.
  /// What was said until now goes by it.
  void connected(std::unique_ptr<RunLink> link);
  void take(std::string_view bytes);
  /// What the far end says of itself; the beginning of it is told where it breaks off.
  void hear_words(std::string_view words);
  void hung_up();
  /// There is no such program, or it cannot be spoken to: the far end says why, in the place of
  /// anything else.
  void refused(const base::Error& error);
  /// There will be none, or no more of it.
  void cut(const base::Error& error);
  /// Less than Exec::kHigh may be waiting to be sent.
  void drained();
  bool has_ended() const { return ended_; }

  // What whoever sits before it does.
  void when_begun(Exec::Begun told);
  void say(const RunMessage& message);
  void write(std::string_view bytes);
  size_t waiting() const { return waiting_.size() + (link_ ? link_->waiting() : 0); }
  void pause(bool paused);
  void drop();

 private:
  bool may_read() const { return !ended_ && !(paused_ && has_begun_); }
  void read();
  void begun();
  void heed(const AttachOutput& output);
  void heed(const AttachLeftOut& gap);
  void heed(const RunOutputEnd& end);
  void heed(const RunRefused& said) { refused(said.error); }
  void heed(const RunEnded& end);
  /// The rest is for the shim, or says no more than that all is well.
  template <class Message>
  void heed(const Message& /*message*/) {}
  void tell_begun(base::Result<void> how);
  void cut_off();
  void finish(const job::ExitStatus& status);
  void say_end(const job::ExitStatus& status);
  void close();

  base::EventLoop& loop_;
  job::ExitStatus if_cut_;
  ExecHandlers handlers_;
  Exec::Begun told_;
  RunReader reader_;
  std::unique_ptr<RunLink> link_;
  std::string waiting_;  ///< until there is a link
  std::string words_;
  bool has_begun_ = false;
  bool paused_ = false;
  bool is_full_ = false;
  bool hung_up_ = false;
  bool ended_ = false;
  std::optional<TaskEnd> task_;  ///< whose own program it is
  base::EventLoop::Interest patience_;
};

/// What whoever asked for the program holds; dropping it ends the conversation.
std::unique_ptr<Exec> near_end_of(std::shared_ptr<RunConversation> conversation);

}  // namespace muster::engine
