// A connection with a thread of its own. The thread executes the posted work one piece after the
// other, and watches the connection in between.
//
// Thread-safety: post() may be called from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "muster/collective/result.h"
#include "parameter_server/rpc/connection.h"

namespace muster::parameter_server {

class Lane {
 public:
  using Work = std::function<void(Connection&)>;

  explicit Lane(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)), thread_([this] { run(); }) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Waits until all posted work is done.
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

  // An empty Work if the queue is empty; nullopt if it is empty and closed.
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

// All connections of a client. Each of them does its part of a piece of work, at the same time. The
// first failure ends everything.
//
// Thread-safety: all functions may be called from any thread.

class Lanes {
 public:
  /// The outcome of a server's part.
  using Part = collective::Result<std::uint64_t>;
  using Work = std::function<Part(std::size_t server, Connection&)>;
  using Done = std::function<void(collective::Result<std::vector<std::uint64_t>>)>;

  Lanes(const ClientOptions& options, const WorkerIdentity& identity);
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// Pending work ends with an error.
  ~Lanes();

  std::size_t size() const { return lanes_.size(); }

  /// Every connection does `work`, in the order of these calls. Calls `done` on a thread of one of
  /// them, with the outcomes by server, or with the failure.
  void on_all(const Work& work, Done done);

  /// The same on the connections `first` .. `end` - 1; waits for the outcome.
  collective::Result<std::vector<std::uint64_t>> wait_for(std::size_t first, std::size_t end,
                                                          const Work& work);

 private:
  struct Round;

  void start(std::size_t first, std::size_t end, const Work& work, Done done);
  void fail(const collective::Error& error);
  std::optional<collective::Error> failure() const;

  mutable std::mutex mutex_;
  std::optional<collective::Error> failure_;
  // Held while a round is posted, so that all lanes have the rounds in one order.
  std::mutex order_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace muster::parameter_server
