// The thread that owns the server's state. Every change of the state runs here, one callback after
// another, so the state needs no locks; blocking work runs elsewhere and comes back by post().
//
// A thin wrapper of Boost.Asio, which is used only in event_loop.cc and http/.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace boost::asio {
class io_context;
}

namespace muster::base {

class EventLoop {
 public:
  /// An interest in an event. Dropping it ends the interest: the callback does not run afterwards.
  /// Must be dropped on the loop's thread; the loop must outlive it.
  class Interest {
   public:
    struct State;
    Interest() = default;
    explicit Interest(std::shared_ptr<State> state) : state_(std::move(state)) {}
    Interest(Interest&&) noexcept = default;
    Interest& operator=(Interest&& other) noexcept;
    ~Interest() { reset(); }
    void reset();
    explicit operator bool() const { return state_ != nullptr; }

   private:
    std::shared_ptr<State> state_;
  };

  EventLoop();
  ~EventLoop();

  /// Runs callbacks on this thread until stop().
  void run();
  /// Ends run() after the callbacks that are already waiting; if run() is not running, ends the
  /// next one. Thread-safe.
  void stop();
  /// Runs `callback` on the loop's thread, after the callbacks that are already waiting.
  /// Thread-safe.
  void post(std::function<void()> callback);

  /// Calls `callback` once, `delay` from now.
  [[nodiscard]] Interest after(std::chrono::nanoseconds delay, std::function<void()> callback);
  /// Calls each time `fd` is readable (a pidfd: the process has ended; an inotify descriptor: a
  /// file changed; a listening socket: a client connects). Does not own `fd`, which must stay open
  /// as long as the interest; makes it non-blocking.
  [[nodiscard]] Interest when_readable(int fd, std::function<void()> callback);
  /// Calls once, when `fd` can be written (a socket: when its connect has succeeded or failed).
  [[nodiscard]] Interest when_writable(int fd, std::function<void()> callback);

  boost::asio::io_context& context();

 private:
  std::unique_ptr<boost::asio::io_context> context_;
};

// Blocking work off the loop's thread: one thread, which runs one piece after another.
//
// Call run() on the loop's thread; the loop must outlive it.

class Background {
 public:
  explicit Background(EventLoop& loop);
  /// Waits for the current piece; drops the others without calling their `done`.
  ~Background();

  /// Calls `work` on the other thread, then `done` on the loop's thread.
  void run(std::function<void()> work, std::function<void()> done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muster::base
