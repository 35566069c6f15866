// One scheduler with a large cluster and a long queue: measures a full plan, and then plans that
// follow the end of a single job.
//
//   cycle [--mixed] NODES GANGS PROJECTS EVENTS [SETTLING]     10000 100000 200 1000
//
// Gangs of 1 to 64 GPUs, drawn from a fixed seed: up to 8 GPUs in one task, more in tasks of 8. They
// request about nine times the existing GPUs, so nearly all of them wait. With --mixed, half of the
// same gangs have time limits of 10 minutes to 24 hours, so that blocked gangs get reserved starts,
// and a quarter of the gangs has a launcher without GPUs beside its workers.
//
// Only the scheduler runs here: no store, no tasks. Each plan is measured twice: by the clock, and by
// the CPU time of the thread, which other programs disturb less. Before the events, it plans until
// nothing moves, or SETTLING times: among thousands of projects, evening out takes thousands of
// plans. The digest of all plans shows whether two builds decide the same.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "schedule/scheduler.h"

namespace {

using namespace muster::schedule;
using Clock = std::chrono::steady_clock;

constexpr int kGpusPerNode = 8;
constexpr int64_t kCpuMilliPerGpu = 12'000;
constexpr int64_t kMemoryPerGpu = 100LL << 30;

struct Shape {
  int gpus;
  int weight;
};

constexpr Shape kShapes[] = {{1, 30}, {2, 20}, {4, 15}, {8, 20}, {16, 8}, {32, 4}, {64, 3}};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// What --mixed adds to the gangs. Draws from its own seed: otherwise, they are the same gangs.
class Mixture {
 public:
  void add_to(Gang& gang) {
    if (random_() % 2 == 0) {
      constexpr int kLimitsInMinutes[] = {10, 30, 60, 240, 720, 1440};
      gang.time_limit = std::chrono::minutes(kLimitsInMinutes[random_() % 6]);
    }
    if (random_() % 4 == 0) {
      TaskGroup launcher{.launcher = true};
      launcher.claim.cpu_milli = 2000;
      launcher.claim.memory_bytes = 4LL << 30;
      gang.groups.insert(gang.groups.begin(), launcher);
    }
  }

 private:
  std::mt19937 random_{3};
};

Gang gang_of(int number, int gpus, int project) {
  TaskGroup group;
  group.claim.gpus = std::min(gpus, kGpusPerNode);
  group.claim.cpu_milli = group.claim.gpus * kCpuMilliPerGpu;
  group.claim.memory_bytes = group.claim.gpus * kMemoryPerGpu;
  group.count = gpus / group.claim.gpus;
  group.minimum = group.count;
  const std::string id = "g" + std::to_string(number);
  return {.id = id,
          .name = id,
          .project = "p" + std::to_string(project),
          .sequence = static_cast<uint64_t>(number),
          .groups = {group},
          .submitted = Time(std::chrono::milliseconds(number))};
}

std::vector<Project> equal_projects(int count, int total_gpus) {
  std::vector<Project> projects;
  for (int i = 0; i < count; ++i) {
    Project project{.name = "p" + std::to_string(i), .sequence = static_cast<uint64_t>(i)};
    project.quota.deserved.gpu_milli = int64_t{total_gpus} * kWholeGpu / count;
    projects.push_back(std::move(project));
  }
  return projects;
}

/// The numbers of the command line.
struct Scale {
  bool is_mixed = false;
  int nodes = 0;
  int gangs = 0;
  int projects = 0;
  int events = 0;
  int most_to_settle = 10'000;
};

void fill(Scheduler& scheduler, const Scale& scale) {
  for (int i = 0; i < scale.nodes; ++i)
    scheduler.set_node({.name = "n" + std::to_string(i),
                        .gpus = kGpusPerNode,
                        .cpu_milli = 128'000,
                        .memory_bytes = 1LL << 40});
  scheduler.set_projects(equal_projects(scale.projects, scale.nodes * kGpusPerNode));
  std::mt19937 random(1);
  std::vector<int> weights;
  for (const Shape& shape : kShapes) weights.push_back(shape.weight);
  std::discrete_distribution<int> shapes(weights.begin(), weights.end());
  std::uniform_int_distribution<int> leaves(0, scale.projects - 1);
  Mixture mixture;
  for (int i = 0; i < scale.gangs; ++i) {
    const int gpus = kShapes[shapes(random)].gpus;
    Gang gang = gang_of(i, gpus, leaves(random));
    if (scale.is_mixed) mixture.add_to(gang);
    scheduler.submit(std::move(gang));
  }
}

/// The running gangs, according to the plans.
class Running {
 public:
  /// Returns the number of gangs that the plan started.
  int take(Scheduler& scheduler, const Plan& plan) {
    for (const PlannedStart& start : plan.starts) digest(start);
    for (const PlannedStart& promise : plan.promises) digest(promise);
    for (const Eviction& eviction : plan.evictions) {
      digest(eviction.id);
      std::erase(ids_, eviction.id);
      scheduler.released(eviction.id, eviction.tasks);
    }
    for (const PlannedStart& start : plan.starts) ids_.push_back(start.id);
    evictions_ += static_cast<int>(plan.evictions.size());
    return static_cast<int>(plan.starts.size());
  }

  /// Removes and returns a random running gang.
  std::string draw(std::mt19937& random) {
    std::uniform_int_distribution<size_t> any(0, ids_.size() - 1);
    std::swap(ids_[any(random)], ids_.back());
    std::string id = std::move(ids_.back());
    ids_.pop_back();
    return id;
  }

  bool empty() const { return ids_.empty(); }
  int evictions() const { return evictions_; }
  uint64_t digest() const { return digest_; }

 private:
  void digest(const std::string& text) {
    for (const char letter : text)
      digest_ = (digest_ ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  void digest(const PlannedStart& start) {
    digest(start.id);
    for (const TaskPlace& place : start.places) {
      digest(place.node);
      for (const int device : place.devices) digest(std::to_string(device));
    }
  }

  std::vector<std::string> ids_;
  int evictions_ = 0;
  uint64_t digest_ = 0xcbf29ce484222325U;  ///< FNV-1a
};

/// Plans again until no gang moves: the first plan fills the cluster, the next ones correct its
/// unfairness. Returns the number of plans.
int settle(Scheduler& scheduler, Running& running, Time& now, int most) {
  for (int plans = 1; plans < most; ++plans) {
    now += std::chrono::seconds(1);
    const Plan plan = scheduler.plan(now);
    const bool moves = !plan.starts.empty() || !plan.evictions.empty() || !plan.promises.empty();
    running.take(scheduler, plan);
    if (!moves && (!plan.again_at || *plan.again_at > now + std::chrono::minutes(1))) return plans;
  }
  return most;
}

void print_list(const char* name, const std::vector<double>& values) {
  std::printf("\"%s\": [", name);
  for (size_t i = 0; i < values.size(); ++i) std::printf("%s%.4f", i == 0 ? "" : ", ", values[i]);
  std::printf("], ");
}

std::vector<double> list_queue(const Scheduler& scheduler, size_t most) {
  constexpr int kTimes = 20;
  std::vector<double> cpu_ms;
  for (int i = 0; i < kTimes; ++i) {
    const double begun = cpu_seconds();
    scheduler.queue(most);
    cpu_ms.push_back((cpu_seconds() - begun) * 1000);
  }
  return cpu_ms;
}

void print_queue(const Scheduler& scheduler) {
  constexpr size_t kPage = 100;
  const size_t length = scheduler.queue().size();
  std::printf("\"queue\": %zu, ", length);
  print_list("queue_cpu_ms", list_queue(scheduler, length));
  print_list("queue_page_cpu_ms", list_queue(scheduler, kPage));
}

int measure(const Scale& scale) {
  Scheduler scheduler;
  const auto told = Clock::now();
  fill(scheduler, scale);
  const double submit_s = seconds_since(told);

  Time now{std::chrono::seconds(1000)};
  Running running;
  const auto asked = Clock::now();
  const Plan first = scheduler.plan(now);
  const double plan_s = seconds_since(asked);
  const int started = running.take(scheduler, first);
  const auto unsettled = Clock::now();
  const int settling = settle(scheduler, running, now, scale.most_to_settle);
  const double settle_s = seconds_since(unsettled);
  const int evened_out = running.evictions();

  std::printf("{\"submit_s\": %.6f, \"plan_s\": %.6f, \"started\": %d, \"waiting\": %d, ", submit_s,
              plan_s, started, scale.gangs - started);
  std::printf("\"settle_plans\": %d, \"settle_s\": %.4f, \"settle_evictions\": %d, ", settling,
              settle_s, evened_out);
  std::vector<double> wall_ms;
  std::vector<double> cpu_ms;
  std::mt19937 random(2);
  int follow_ups = 0;
  for (int i = 0; i < scale.events && !running.empty(); ++i) {
    const std::string id = running.draw(random);
    now += std::chrono::seconds(1);
    const auto begun = Clock::now();
    const double cpu_begun = cpu_seconds();
    scheduler.ended(id);
    const Plan plan = scheduler.plan(now);
    cpu_ms.push_back((cpu_seconds() - cpu_begun) * 1000);
    wall_ms.push_back(seconds_since(begun) * 1000);
    follow_ups += running.take(scheduler, plan);
  }
  print_list("events_ms", wall_ms);
  print_list("events_cpu_ms", cpu_ms);
  print_queue(scheduler);
  std::printf("\"started_after\": %d, \"evictions\": %d, \"digest\": \"%016llx\"}\n", follow_ups,
              running.evictions() - evened_out, static_cast<unsigned long long>(running.digest()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  Scale scale;
  scale.is_mixed = !arguments.empty() && arguments.front() == "--mixed";
  if (scale.is_mixed) arguments.erase(arguments.begin());
  if (arguments.size() != 4 && arguments.size() != 5) {
    std::fprintf(stderr, "usage: cycle [--mixed] NODES GANGS PROJECTS EVENTS [SETTLING]\n");
    return 2;
  }
  scale.nodes = std::atoi(arguments[0].c_str());
  scale.gangs = std::atoi(arguments[1].c_str());
  scale.projects = std::atoi(arguments[2].c_str());
  scale.events = std::atoi(arguments[3].c_str());
  if (arguments.size() == 5) scale.most_to_settle = std::atoi(arguments[4].c_str());
  return measure(scale);
}
