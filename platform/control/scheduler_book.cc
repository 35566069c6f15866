#include "control/scheduler_book.h"

#include "control/schedule_view.h"

namespace muster::control {

std::chrono::nanoseconds SchedulerBook::delay_until(base::Time time) const {
  return std::clamp<std::chrono::nanoseconds>(time - now(), std::chrono::nanoseconds(0),
                                              std::chrono::minutes(1));
}

/// The options for Kubernetes select nodes only there.
schedule::Gang SchedulerBook::gang_with_options(const job::Job& job, uint64_t sequence,
                                                std::optional<int> workers) const {
  schedule::Gang gang = to_schedule(job, sequence, nodes_.pools(), workers);
  if (!runs_pods_) return gang;
  gang.node_labels = job.spec.kubernetes.node_selector;
  gang.tolerations = job.spec.kubernetes.tolerations;
  return gang;
}

schedule::Gang SchedulerBook::gang_of(const job::Job& job, uint64_t sequence) const {
  return gang_with_options(job, sequence, std::nullopt);
}

schedule::Gang SchedulerBook::gang_of(const JobEntry& entry, const GangShape& shape) const {
  schedule::Gang gang = gang_with_options(entry.job, entry.sequence, shape.workers);
  gang.submitted = clock_.of(gang.submitted);
  gang.excluded_nodes.insert(gang.excluded_nodes.end(), shape.excluded_nodes.begin(),
                             shape.excluded_nodes.end());
  return gang;
}

bool SchedulerBook::still_has(const SeatPlaces& places) const {
  return nodes_.has(places) && std::none_of(places.begin(), places.end(), [&](const auto& place) {
           return place && !place->devices.empty() && scheduler_.lacks_gpus(place->node);
         });
}

void SchedulerBook::adopt(const JobEntry& entry, const GangShape& shape) {
  const schedule::Gang gang = gang_of(entry, shape);
  SeatPlaces places = places_of(entry.job);
  places.resize(static_cast<size_t>(schedule::task_count(gang)));
  for (const auto& [seat, place] : shape.offered) {
    if (static_cast<size_t>(seat) < places.size()) places[static_cast<size_t>(seat)] = place;
  }
  scheduler_.adopt(gang, places, start_of(entry.job), shape.leaving);
  if (shape.all_leave) leaves(entry.job);
}

void SchedulerBook::leaves(const job::Job& job) {
  constexpr std::chrono::milliseconds kMost = std::chrono::minutes(1);
  scheduler_.leaves(job.id, now() + std::min(job.spec.grace, kMost) + kMost);
}

void SchedulerBook::replace(const JobEntry& entry, const GangShape& shape) {
  scheduler_.ended(entry.job.id);
  adopt(entry, shape);
}

void SchedulerBook::free_seats(const std::string& id, const std::vector<int>& seats) {
  for (const int seat : seats) scheduler_.lost(id, seat, clock_.now());
}

}  // namespace muster::control
