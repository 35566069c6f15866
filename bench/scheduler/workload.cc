#include "workload.h"

#include <algorithm>

namespace bench {

int Workload::jobs() const {
  int count = 0;
  for (const WorkloadClass& one : classes) count += one.count;
  return count * queues * cohorts;
}

Workload baseline() {
  return {.cohorts = 5,
          .queues = 6,
          .classes = {{"small", 350, milliseconds(100), milliseconds(200), 1, 50},
                      {"medium", 100, milliseconds(500), milliseconds(500), 5, 100},
                      {"large", 50, milliseconds(1200), milliseconds(1000), 20, 200}}};
}

Workload large_scale() {
  return {.cohorts = 10,
          .queues = 100,
          .classes = {{"small", 35, milliseconds(60), milliseconds(150), 1, 50},
                      {"medium", 11, milliseconds(300), milliseconds(350), 5, 100},
                      {"large", 4, milliseconds(700), milliseconds(700), 20, 200}}};
}

std::vector<Arrival> arrivals_of(const Workload& workload) {
  std::vector<Arrival> arrivals;
  for (int cohort = 0; cohort < workload.cohorts; ++cohort)
    for (int queue = 0; queue < workload.queues; ++queue)
      for (const WorkloadClass& of : workload.classes)
        for (int number = 0; number < of.count; ++number)
          arrivals.push_back({of.interval * (number + 1), cohort, queue, &of, number});
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [](const Arrival& left, const Arrival& right) { return left.at < right.at; });
  return arrivals;
}

std::string cohort_name(int cohort) {
  return "cohort-" + std::to_string(cohort);
}

std::string queue_name(int cohort, int queue) {
  return cohort_name(cohort) + "-queue-" + std::to_string(queue);
}

std::string job_name(const Arrival& arrival) {
  return std::string(arrival.of->name) + "-" + std::to_string(arrival.number) + "-" +
         queue_name(arrival.cohort, arrival.queue);
}

}  // namespace bench
