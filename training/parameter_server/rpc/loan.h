// Memory of the caller's that gRPC sends from, without a copy of it. gRPC may hold on to it for
// longer than the call: it encrypts a message when the socket has room, and forgets it after.
//
// Thread-safety: lend() from one thread; gRPC gives back on any of its own.
#pragma once

#include <grpcpp/support/slice.h>

#include <atomic>
#include <cstddef>
#include <functional>
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

}  // namespace muster::parameter_server
