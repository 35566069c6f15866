#include "base/event_loop.h"

#include <fcntl.h>
#include <poll.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/unique_fd.h"

namespace muster::base {

namespace asio = boost::asio;

/// A timer or a descriptor, and the callback. The pending operation keeps it alive; `alive` is
/// false if the owner has dropped the interest before the operation completes.
struct EventLoop::Interest::State : std::enable_shared_from_this<State> {
  State(asio::io_context& where, std::function<void()> when)
      : context(where), timer(where), descriptor(where), callback(std::move(when)) {}

  /// epoll accepts a descriptor number only once. A second interest in the same number (for example
  /// to read and to write) watches a duplicate, which this state owns.
  void watch(int fd) {
    boost::system::error_code error;
    descriptor.assign(fd, error);
    if (error == boost::system::errc::file_exists) {
      duplicate = UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
      descriptor.assign(duplicate.get(), error);
    }
    if (error) log_error("cannot watch descriptor " + std::to_string(fd) + ": " + error.message());
  }

  /// Whether the descriptor really is readable or writable. Asio may complete a wait that has just
  /// begun with an event of a descriptor that was dropped just before: it uses its record of that one
  /// again, and the event was in its queue. A callback that does not read would be misled: for a
  /// pidfd, "readable" means that the process has ended.
  bool is_ready(asio::posix::stream_descriptor::wait_type type) {
    const bool reads = type == asio::posix::stream_descriptor::wait_read;
    pollfd watched{descriptor.native_handle(), static_cast<short>(reads ? POLLIN : POLLOUT), 0};
    return ::poll(&watched, 1, 0) != 0;
  }

  void wait(asio::posix::stream_descriptor::wait_type type, bool again) {
    descriptor.async_wait(type, [self = shared_from_this(), type, again](auto error) {
      if (error || !self->alive) return;
      if (!self->is_ready(type)) return self->wait(type, again);
      self->callback();
      if (again && self->alive) self->wait(type, again);
    });
  }

  void end() {
    alive = false;
    timer.cancel();
    // release() removes the descriptor without closing it: it belongs to the caller.
    if (descriptor.is_open()) descriptor.release();
    duplicate.reset();
    // The callback may own the owner of this interest, and may be running now: it is destroyed
    // after it has returned.
    auto held = std::exchange(callback, nullptr);
    if (context.get_executor().running_in_this_thread()) {
      asio::post(context, [held = std::move(held)] {});
    }
  }

  asio::io_context& context;
  asio::steady_timer timer;
  asio::posix::stream_descriptor descriptor;
  UniqueFd duplicate;
  std::function<void()> callback;
  bool alive = true;
};

EventLoop::Interest& EventLoop::Interest::operator=(Interest&& other) noexcept {
  if (this != &other) {
    reset();
    state_ = std::move(other.state_);
  }
  return *this;
}

void EventLoop::Interest::reset() {
  if (state_ != nullptr) std::exchange(state_, nullptr)->end();
}

// Without the hint that a single thread runs the context: with the hint, callbacks posted by a
// callback would be in a queue of the outer run(), where a nested run() would not find them.
EventLoop::EventLoop() : context_(std::make_unique<asio::io_context>()) {}
EventLoop::~EventLoop() = default;

void EventLoop::run() {
  static thread_local int running = 0;
  const auto guard = asio::make_work_guard(*context_);
  context_->restart();
  ++running;
  context_->run();
  // Within a callback: the outer run() continues.
  if (--running > 0) context_->restart();
}

// As a message, so that a stop() before run() ends that run().
void EventLoop::stop() {
  asio::post(*context_, [this] { context_->stop(); });
}

void EventLoop::post(std::function<void()> callback) {
  asio::post(*context_, std::move(callback));
}

EventLoop::Interest EventLoop::after(std::chrono::nanoseconds delay,
                                     std::function<void()> callback) {
  auto state = std::make_shared<Interest::State>(*context_, std::move(callback));
  state->timer.expires_after(delay);
  state->timer.async_wait([state](auto error) {
    if (!error && state->alive) state->callback();
  });
  return Interest(state);
}

EventLoop::Interest EventLoop::when_readable(int fd, std::function<void()> callback) {
  auto state = std::make_shared<Interest::State>(*context_, std::move(callback));
  state->watch(fd);
  state->wait(asio::posix::stream_descriptor::wait_read, true);
  return Interest(state);
}

EventLoop::Interest EventLoop::when_writable(int fd, std::function<void()> callback) {
  auto state = std::make_shared<Interest::State>(*context_, std::move(callback));
  state->watch(fd);
  state->wait(asio::posix::stream_descriptor::wait_write, false);
  return Interest(state);
}

asio::io_context& EventLoop::context() {
  return *context_;
}

namespace {

/// Delay before the next attempt to start a thread.
constexpr std::chrono::milliseconds kNextThread{100};

}  // namespace

struct Background::State {
  struct Piece {
    std::function<void()> work;
    std::function<void()> done;
  };

  explicit State(EventLoop& its_loop) : loop(its_loop) {}

  /// The account may have no more threads at present. The pieces wait for one, because some of them
  /// block for minutes.
  static void start(const std::shared_ptr<State>& state) {
    try {
      state->thread = std::thread([state] { work_off(state); });
      state->retry.reset();
    } catch (const std::system_error& error) {
      if (!state->retry) {
        log_error("cannot start a thread, trying again: " + error.code().message());
      }
      state->retry = state->loop.after(kNextThread, [weak = std::weak_ptr(state)] {
        if (const auto again = weak.lock()) start(again);
      });
    }
  }

  /// The thread's loop, until it is asked to end.
  static void work_off(const std::shared_ptr<State>& state) {
    std::unique_lock lock(state->mutex);
    while (true) {
      state->changed.wait(lock, [&] { return state->ending || !state->waiting.empty(); });
      if (state->ending) return;
      Piece piece = std::move(state->waiting.front());
      state->waiting.pop_front();
      lock.unlock();
      piece.work();
      piece.work = nullptr;
      // The objects that `done` owns belong to the loop's thread and are destroyed there.
      state->loop.post([state, done = std::move(piece.done)] {
        if (!state->ending) done();
      });
      lock.lock();
    }
  }

  EventLoop& loop;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Piece> waiting;
  /// Written only by the loop's thread, under the lock; therefore that thread may read it without
  /// the lock.
  bool ending = false;
  std::thread thread;
  EventLoop::Interest retry;  ///< until the thread could be started
};

Background::Background(EventLoop& loop) : state_(std::make_shared<State>(loop)) {}

Background::~Background() {
  std::deque<State::Piece> dropped;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->ending = true;
    dropped.swap(state_->waiting);
  }
  state_->retry.reset();
  state_->changed.notify_all();
  dropped.clear();
  if (state_->thread.joinable()) state_->thread.join();
}

void Background::run(std::function<void()> work, std::function<void()> done) {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->waiting.push_back({std::move(work), std::move(done)});
  }
  if (state_->thread.joinable()) return state_->changed.notify_one();
  // The first piece starts the thread: without work, there is no thread.
  if (!state_->retry) State::start(state_);
}

}  // namespace muster::base
