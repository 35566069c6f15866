// Memory of the caller's that gRPC sends from, without a copy of it. gRPC may hold on to it for
// longer than the call: it encrypts a message when the socket has room, and forgets it after.
//
// Thread-safety: lend() from one thread; gRPC gives back on any of its own.
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
  /// `meanwhile` is called while gRPC does not have done with the memory: it has to let it work,
  /// and return soon.
  explicit Loan(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  /// Waits until nothing is lent any more.
  ~Loan() {
    while (lent_.load(std::memory_order_acquire) != 0) meanwhile_();
  }

  /// The memory stays as it is until this object ends.
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

// The stream by which a worker belongs to a server (Join): it is open as long as both are there.
//
// The worker's thread that makes its calls is also the one that watches this stream, in between.
// A second thread would do, and halve the speed of calls: all threads that wait for gRPC share the
// work of reading from sockets, so what comes for one is often read by the other, which has then to
// hand it over. During a call, the call itself fails when the connection does.
//
// Thread-safety: from one thread at a time; wake() and cancel() from any.

class Lease {
 public:
  Lease() = default;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Ends the stream without a goodbye.
  ~Lease();

  /// Says hello as `worker` and waits for the answer. Not OK: why there is none; it may be tried
  /// again.
  grpc::Status open(grpc::Channel& channel, int worker, v1::JoinResponse& welcome);

  /// Waits until wake() is called, or was since the last time; or until the stream has ended: then
  /// the status, once.
  std::optional<grpc::Status> watch();

  /// Lets gRPC work for at most that long, on whatever it has to do.
  void work_for(std::chrono::milliseconds time);

  /// Says goodbye and waits for the end. False where the server did not hear it.
  bool leave();

  void wake();

  /// What waits here, but for watch(), ends soon, with an error; an open stream ends.
  void cancel();

 private:
  using Stream = grpc::ClientAsyncReaderWriter<v1::JoinRequest, v1::JoinResponse>;

  // Something that gRPC does, known to it by its address.
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
  bool say(const v1::JoinRequest& message);
  grpc::Status end();

  grpc::CompletionQueue queue_;
  Operation start_, write_, read_, end_;
  v1::JoinResponse heard_;
  bool is_open_ = false;

  std::mutex mutex_;  // of what other threads reach
  bool cancelled_ = false;
  bool is_waking_ = false;  // the alarm is on its way through the queue
  bool was_woken_ = false;  // since watch() looked
  grpc::Alarm alarm_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<Stream> stream_;  // ends before its context
};

}  // namespace muster::parameter_server
