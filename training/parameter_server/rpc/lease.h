// Memory of the caller from which gRPC sends without a copy. gRPC may use it longer than the call:
// it encrypts a message when the socket has room, and releases the memory afterwards.
//
// Thread-safety: lend() from one thread; gRPC returns the memory on any of its threads.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/slice.h>
#include <grpcpp/support/status.h>
#include <parameter_server.pb.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

namespace muster::parameter_server {

class Loan {
 public:
  /// `meanwhile` is called repeatedly while gRPC still uses the memory. It must let gRPC work, and
  /// return soon.
  explicit Loan(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  /// Waits until all memory is returned.
  ~Loan() {
    while (lent_.load(std::memory_order_acquire) != 0) meanwhile_();
  }

  /// The memory must stay unchanged until this object is destroyed.
  grpc::Slice lend(std::span<const std::byte> memory) {
    lent_.fetch_add(1, std::memory_order_relaxed);
    // gRPC only reads it.
    return {const_cast<std::byte*>(memory.data()), memory.size(), give_back, this};
  }

 private:
  static void give_back(void* loan) {
    static_cast<Loan*>(loan)->lent_.fetch_sub(1, std::memory_order_release);
  }

  const std::function<void()> meanwhile_;
  std::atomic<std::size_t> lent_ = 0;
};

// The stream by which a worker belongs to a server (Join). It is open as long as both exist.
//
// The thread that makes the worker's calls also watches this stream in between. A second thread
// would halve the speed of calls: all threads that wait for gRPC share the work of reading from
// sockets, so one thread often reads data for the other, and then has to pass it on. During a call,
// the call itself fails if the connection does.
//
// Thread-safety: one thread at a time; wake() and cancel() from any thread.

class Lease {
 public:
  Lease() = default;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Ends the stream without a goodbye.
  ~Lease();

  /// Sends a hello as `worker` and waits for the answer. If the status is not OK, it has the
  /// reason, and the caller may try again.
  grpc::Status open(grpc::Channel& channel, int worker, v1::JoinResponse& welcome);

  /// Waits until wake() is called, or was called since the last watch(). Returns the status if the
  /// stream has ended, once.
  std::optional<grpc::Status> watch();

  /// Waits at most `time` for the end of the stream. Returns the status if it has ended, once.
  /// gRPC notices during this call, too, that the server is silent or has answered.
  std::optional<grpc::Status> ended_within(std::chrono::milliseconds time);

  /// Lets gRPC do its work for at most `time`.
  void work_for(std::chrono::milliseconds time);

  /// Sends a goodbye and waits for the end. False if the server did not receive it.
  bool leave();

  void wake();

  /// Pending functions, except watch(), end soon with an error, and an open stream ends.
  void cancel();

 private:
  using Stream = grpc::ClientAsyncReaderWriter<v1::JoinRequest, v1::JoinResponse>;

  // An operation of gRPC, which identifies it by its address.
  struct Operation {
    bool is_under_way = false;
    bool succeeded = false;

    void* begin() {
      is_under_way = true;
      return this;
    }
  };

  void finish_next();
  void finish(void* operation, bool succeeded);
  bool wait_for(const Operation& operation);
  bool write(const v1::JoinRequest& message);
  grpc::Status end();

  grpc::CompletionQueue queue_;
  Operation start_, write_, read_, end_;
  v1::JoinResponse response_;
  bool is_open_ = false;

  std::mutex mutex_;  // guards the members that other threads use
  bool cancelled_ = false;
  bool is_waking_ = false;  // the alarm is in the queue
  bool was_woken_ = false;  // since the last watch()
  grpc::Alarm alarm_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<Stream> stream_;  // destroyed before its context
};

}  // namespace muster::parameter_server
