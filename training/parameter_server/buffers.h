// Memory for pushes that are on their way. It is kept for the next ones: taking tens of megabytes
// anew from the system for each costs more than the optimizer's step.
//
// Thread-safety: take() may be called from any thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "parameter_server/huge_pages.h"

namespace muster::parameter_server {

class Buffers {
 public:
  /// Gives its memory back when it ends; the Buffers outlive it.
  class Lent {
   public:
    Lent(Buffers& owner, std::vector<float> memory, std::size_t count)
        : owner_(owner), memory_(std::move(memory)), count_(count) {}
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() { owner_.put_back(std::move(memory_)); }

    std::span<float> values() { return std::span(memory_).first(count_); }

   private:
    Buffers& owner_;
    std::vector<float> memory_;
    std::size_t count_;
  };

  /// Of whatever content.
  Lent take(std::size_t count) {
    std::vector<float> memory;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        memory = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (memory.size() < count) memory = zeros(count);
    return {*this, std::move(memory), count};
  }

 private:
  void put_back(std::vector<float> memory) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(memory));
  }

  std::mutex mutex_;
  std::vector<std::vector<float>> free_;
};

}  // namespace muster::parameter_server
