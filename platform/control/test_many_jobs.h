// For tests: a store with more ended jobs than a test could hold whole.
#pragma once

#include <functional>
#include <utility>

#include "store/memory_store.h"
#include "store/records.h"

namespace muster::control {

class ManyEndedJobs : public store::MemoryStore {
 public:
  /// `job` makes the jobs 0 to `count` - 1.
  ManyEndedJobs(int count, std::function<job::Job(int)> job)
      : count_(count), job_(std::move(job)) {}

  base::Result<store::Contents> load_packed() override {
    store::Contents contents;
    for (int number = 0; number < count_; ++number) {
      const job::Job job = job_(number);
      contents.stored.push_back(
          {.open = nullptr, .ended = store::PackedJob(job, store::to_document(job))});
    }
    return contents;
  }

 private:
  int count_;
  std::function<job::Job(int)> job_;
};

}  // namespace muster::control
