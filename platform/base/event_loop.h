// The thread that owns the server's state. Everything that changes state runs here, one callback
// after the other, so the state needs no locks; what blocks goes elsewhere and comes back by
// post().
//
// A thin face of Boost.Asio, which stays inside event_loop.cc and http/.
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
  /// An interest in something that may happen. Dropping it ends the interest: the callback does not
  /// run afterwards. Must be dropped on the loop's thread; the loop must outlive it.
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
  /// Ends run() after the callbacks that wait already; a run() that is yet to come as well.
  /// Thread-safe.
  void stop();
  /// Runs `callback` on the loop's thread, after those that wait already. Thread-safe.
  void post(std::function<void()> callback);

  /// Calls once, `delay` from now.
  [[nodiscard]] Interest after(std::chrono::nanoseconds delay, std::function<void()> callback);
  /// Calls each time `fd` is readable (a pidfd: when the process has ended; an inotify descriptor:
  /// when a file changed; a listening socket: when somebody connects). Does not own `fd`, which
  /// must stay open as long as the interest; makes it non-blocking.
  [[nodiscard]] Interest when_readable(int fd, std::function<void()> callback);
  /// Calls once, when `fd` can be written (a socket: when its connect has succeeded or failed).
  [[nodiscard]] Interest when_writable(int fd, std::function<void()> callback);

  boost::asio::io_context& context();

 private:
  std::unique_ptr<boost::asio::io_context> context_;
};

// Work that blocks, off the loop's thread: one thread of its own, one piece after the other.
//
// run() on the loop's thread; the loop must outlive it.

class Background {
 public:
  explicit Background(EventLoop& loop);
  /// Waits for the piece that is under way; the others are dropped, and no `done` is called any
  /// more.
  ~Background();

  /// Calls `work` on the other thread, then `done` on the loop's.
  void run(std::function<void()> work, std::function<void()> done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muster::base
