#include "base/background.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace muster::base {

struct Background::State {
  struct Piece {
    std::function<void()> work;
    std::function<void()> done;
  };

  explicit State(EventLoop& its_loop) : loop(its_loop) {}

  /// What the thread does until it is told to end.
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
      // What `done` holds on to belongs to the loop's thread, and is let go of there.
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
  /// Written by the loop's thread alone, under the lock: there it may be read without.
  bool ending = false;
  std::thread thread;
};

Background::Background(EventLoop& loop) : state_(std::make_shared<State>(loop)) {}

Background::~Background() {
  std::deque<State::Piece> dropped;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->ending = true;
    dropped.swap(state_->waiting);
  }
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
  // The first piece starts the thread: who has no work has none.
  state_->thread = std::thread([state = state_] { State::work_off(state); });
}

}  // namespace muster::base
