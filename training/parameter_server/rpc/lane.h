// A connection with a thread of its own, which makes the calls that it is given one after the
// other, and watches it while there are none.
//
// Thread-safety: post() may be called from any thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "parameter_server/rpc/connection.h"

namespace muster::parameter_server {

class Lane {
 public:
  using Work = std::function<void(Connection&)>;

  explicit Lane(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)), thread_([this] { run(); }) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// After the work that is there has been done.
  ~Lane() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    connection_->wake();
    thread_.join();
  }

  void post(Work work) {
    {
      const std::lock_guard lock(mutex_);
      works_.push_back(std::move(work));
    }
    connection_->wake();
  }

  void cancel() { connection_->cancel(); }

 private:
  void run() {
    while (const std::optional<Work> work = next()) {
      if (*work) {
        (*work)(*connection_);
      } else {
        connection_->watch();
      }
    }
  }

  // An empty one where there is none; nothing where none will come any more.
  std::optional<Work> next() {
    const std::lock_guard lock(mutex_);
    if (works_.empty()) return closing_ ? std::nullopt : std::optional<Work>(Work());
    Work work = std::move(works_.front());
    works_.pop_front();
    return work;
  }

  std::unique_ptr<Connection> connection_;
  std::mutex mutex_;
  std::deque<Work> works_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace muster::parameter_server
