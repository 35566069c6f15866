// The two workloads of Kueue's scheduler benchmark (kubernetes-sigs/kueue,
// test/performance/scheduler/configs/{baseline,large-scale}/generator.yaml): cohorts of queues,
// each of which gets workloads of three classes at fixed intervals.
//
// Plain values.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

using std::chrono::milliseconds;

struct WorkloadClass {
  std::string_view name;
  int count;              ///< in each queue
  milliseconds interval;  ///< the first comes after one of it
  milliseconds duration;
  int slots;
  int priority;
};

struct Workload {
  int cohorts;
  int queues;       ///< in each cohort
  int quota = 20;   ///< of each queue
  int limit = 120;  ///< of each queue: its quota, and 100 that it may borrow
  std::vector<WorkloadClass> classes;

  int cohort_slots() const { return queues * quota; }
  int slots() const { return cohorts * cohort_slots(); }
  int jobs() const;
};

Workload baseline();
Workload large_scale();

/// One job that is to come.
struct Arrival {
  milliseconds at{0};
  int cohort = 0;
  int queue = 0;
  const WorkloadClass* of = nullptr;
  int number = 0;
};

/// All of them in the order in which they come; `workload` must outlive them.
std::vector<Arrival> arrivals_of(const Workload& workload);

std::string cohort_name(int cohort);
std::string queue_name(int cohort, int queue);
std::string job_name(const Arrival& arrival);

}  // namespace bench
