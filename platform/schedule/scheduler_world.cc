#include "schedule/scheduler_world.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "schedule/test_words.h"

namespace muster::schedule::testing {

namespace {

using std::chrono::seconds;

constexpr int64_t kGibOfGpu = int64_t{1} << 30;
constexpr int64_t kMostGibOfGpu = 16;

/// The machine of this name. The GPUs of every second one have no numbers, of every fourth no known
/// memory, and of every fourth another model.
Node machine(unsigned number, int gpus) {
  Node machine = node("n" + std::to_string(number), gpus);
  machine.anonymous_gpus = number % 2 == 1;
  machine.gpu_memory_bytes = (number % 4 == 0   ? 8
                              : number % 4 == 2 ? 0
                                                : kMostGibOfGpu) *
                             kGibOfGpu;
  machine.gpu_model = number % 4 == 3 ? "H100" : "A100";
  return machine;
}

/// What a task counts at least. A part of a GPU's memory counts as that part of a GPU in the pool,
/// which may have left it, or joined it since the gang started.
int64_t least_charge(const Claim& claim) {
  const int64_t part = claim.gpu_memory_bytes * kWholeGpu / (kMostGibOfGpu * kGibOfGpu);
  return claim.gpus * int64_t{kWholeGpu} + claim.gpu_share_milli + part;
}

/// Puts a launcher without GPUs, or with one, before the workers.
void add_launcher(Gang& gang, int gpus) {
  const TaskGroup launcher{.claim = {.gpus = gpus, .cpu_milli = 500}, .launcher = true};
  gang.groups.insert(gang.groups.begin(), launcher);
}

/// Takes the lowest digit of a number, in the given base.
unsigned take_digit(unsigned& number, unsigned base) {
  return std::exchange(number, number / base) % base;
}

/// Whether every group has its minimum.
bool has_minimum(const Gang& gang, const std::vector<int>& by_group) {
  for (size_t group = 0; group < gang.groups.size(); ++group) {
    if (by_group[group] < gang.groups[group].minimum) return false;
  }
  return true;
}

/// The tasks that do not leave, by group.
std::vector<int> staying_tasks(const Gang& gang, const HeldTasks& tasks) {
  const auto group_at = [&](int task) { return &group_of(gang, task) - gang.groups.data(); };
  std::vector<int> by_group(gang.groups.size());
  for (const auto& [task, state] : tasks) {
    if (!state.leaves) ++by_group[static_cast<size_t>(group_at(task))];
  }
  return by_group;
}

bool all_zero(const std::vector<int>& counts) {
  return std::all_of(counts.begin(), counts.end(), [](int count) { return count == 0; });
}

}  // namespace

std::vector<WorldEvent> random_events(unsigned seed, int count, unsigned kinds) {
  using Kind = WorldEventKind;
  std::mt19937 random(seed);
  std::vector<WorldEvent> events{{Kind::kSetProjects, unsigned(random())}};
  const auto first = unsigned(random());
  for (unsigned i = 0; i < 1 + random() % 3; ++i) {
    events.push_back({Kind::kSetNode, first % 4 + i, 1 + unsigned(random() % 4), 5});
  }
  for (int i = 0; i < count; ++i) {
    const auto roll = random() % kinds;
    const Kind kind = roll < 8                  ? Kind::kSubmit
                      : roll < kSubmitsAndPlans ? Kind::kPlan
                      : roll < 18               ? Kind::kRelease
                      : roll < 21               ? Kind::kEnd
                      : roll < kCalmKinds       ? Kind::kWait
                      : roll < 24               ? Kind::kLose
                      : roll < 25               ? Kind::kRequeue
                      : roll < 26               ? Kind::kSetProjects
                      : roll < 28               ? Kind::kSetNode
                                                : Kind::kRemoveNode;
    events.push_back({kind, unsigned(random()), unsigned(random()), unsigned(random())});
  }
  return events;
}

std::string events_text(const std::vector<WorldEvent>& events) {
  std::ostringstream out;
  for (const WorldEvent& event : events) {
    out << "{WorldEventKind(" << static_cast<int>(event.kind) << "), " << event.a << "u, "
        << event.b << "u, " << event.c << "u},\n";
  }
  return out.str();
}

void SchedulerWorld::apply(const WorldEvent& event) {
  switch (event.kind) {
    case WorldEventKind::kSubmit:
      return submit(event);
    case WorldEventKind::kEnd:
      if (const Gang* const gang = pick(event.a)) end(gang->id);
      return;
    case WorldEventKind::kLose:
      return lose(event);
    case WorldEventKind::kRelease:
      return release(event.a % 2 == 0);
    case WorldEventKind::kWait:
      now += seconds(event.a % 90);
      return;
    case WorldEventKind::kRemoveNode:
      return remove_node(event.a);
    case WorldEventKind::kSetNode:
      return set_node(event);
    case WorldEventKind::kSetProjects:
      return set_projects(event.a);
    case WorldEventKind::kRequeue:
      if (const Gang* const gang = pick(event.a)) {
        held[gang->id].clear();
        scheduler.requeue(gang->id);
      }
      return;
    case WorldEventKind::kPlan:
      carry_out(scheduler.plan(now));
      return;
  }
}

void SchedulerWorld::carry_out(const Plan& plan) {
  plans.push_back(plan);
  for (const PlannedStart& start : plan.starts) take_start(start);
  for (const Eviction& eviction : plan.evictions) take_eviction(eviction);
  check_limits(plan);
  check_promises(plan);
}

void SchedulerWorld::release(bool all) {
  bool first = true;
  for (auto& [id, tasks] : held) {
    std::vector<int> gone;
    for (const auto& [task, state] : tasks) {
      if (state.leaves && (all || first)) gone.push_back(task);
    }
    if (gone.empty()) continue;
    first = false;
    for (const int task : gone) tasks.erase(task);
    scheduler.released(id, gone);
  }
}

bool SchedulerWorld::settle() {
  int quiet = 0;
  for (int i = 0; i < 300 && quiet < 5 && fault.empty(); ++i) {
    release(true);
    const Plan plan = scheduler.plan(now);
    const bool is_empty = plan.starts.empty() && plan.evictions.empty() && plan.promises.empty();
    carry_out(plan);
    quiet = is_empty ? quiet + 1 : 0;
    now += seconds(is_empty ? 61 : 1);
  }
  return quiet == 5;
}

void SchedulerWorld::set_projects(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Project> list;
  const bool departments = random() % 3 == 0;
  if (departments) {
    for (const char* name : {"d0", "d1"}) {
      list.push_back(
          project(name, {.deserved = int(random() % 5), .weight = double(random() % 3)}));
    }
  }
  for (const char* name : {"p0", "p1", "p2"}) {
    Share share{.deserved = int(random() % 4),
                .weight = double(random() % 3),
                .limit = random() % 4 == 0 ? int(random() % 5) : -1,
                .priority = random() % 5 == 0 ? 101 : 100};
    if (departments) share.parent = random() % 2 == 0 ? "d0" : "d1";
    if (random() % 8 != 0) list.push_back(project(name, share));
  }
  projects = testing::projects(std::move(list));
  scheduler.set_projects(projects);
}

const Gang* SchedulerWorld::pick(unsigned which) const {
  if (gangs.empty()) return nullptr;
  return &nth(gangs, which).second;
}

void SchedulerWorld::submit(const WorldEvent& event) {
  static constexpr int kPriorities[] = {50, 50, 50, 75, 100, 49};
  unsigned digits = event.c;
  const std::string id = "g" + std::to_string(1000 + next_);
  Gang gang = testing::gang(id, "p" + std::to_string(event.a % 3), 1 + int(event.b % 3),
                            1 + int(event.b / 3 % 3), kPriorities[take_digit(digits, 6)]);
  if (take_digit(digits, 4) == 0) gang = elastic(gang, 1);
  if (take_digit(digits, 4) == 0) gang = limited(gang, seconds(30 + event.a % 200));
  Claim& claim = gang.groups[0].claim;
  const unsigned part = take_digit(digits, 5);
  if (part == 0) claim = {.gpu_share_milli = 300 + int(event.b % 5) * 100};
  if (part == 1) claim = {.gpu_memory_bytes = (2 + 2 * (event.b % 5)) * kGibOfGpu};
  claim.cpu_milli = 1000 * int64_t{take_digit(digits, 3)};
  const unsigned launcher = take_digit(digits, 6);
  if (launcher < 2) add_launcher(gang, int(launcher));
  if (take_digit(digits, 6) == 0) gang.gpu_models = {"A100"};
  gang.sequence = next_++;
  gang.submitted = now;
  gangs.emplace(id, gang);
  scheduler.submit(gang);
}

void SchedulerWorld::end(const std::string& id) {
  scheduler.ended(id);
  held.erase(id);
  gangs.erase(std::string(id));
}

void SchedulerWorld::lose(const WorldEvent& event) {
  const Gang* const gang = pick(event.a);
  if (gang == nullptr || held[gang->id].empty()) return;
  const int task = nth(held[gang->id], event.b).first;
  held[gang->id].erase(task);
  lost_some_.insert(gang->id);
  scheduler.lost(gang->id, task, now);
}

/// The tasks on the node are lost, as the server reports it.
void SchedulerWorld::remove_node(unsigned which) {
  if (nodes.empty()) return;
  const std::string name = nth(nodes, which).first;
  nodes.erase(name);
  scheduler.remove_node(name);
  std::vector<std::string> hit;
  for (const auto& [id, tasks] : held) {
    for (const auto& [task, state] : tasks) {
      if (state.place.node == name && (hit.empty() || hit.back() != id)) hit.push_back(id);
    }
  }
  for (const std::string& id : hit) {
    held[id].clear();
    scheduler.requeue(id);
  }
}

void SchedulerWorld::set_node(const WorldEvent& event) {
  Node node = machine(event.a % 4, int(event.b % 5));
  node.cpu_milli = 2000 + 1000 * (event.c % 6);
  node.cordoned = event.c / 6 % 8 == 0;
  nodes[node.name] = node;
  scheduler.set_node(node);
}

void SchedulerWorld::take_start(const PlannedStart& start) {
  const auto known = gangs.find(start.id);
  if (known == gangs.end()) return complain("start of unknown " + start.id);
  HeldTasks& tasks = held[start.id];
  const bool anew = tasks.empty();
  if (anew) lost_some_.erase(start.id);
  for (size_t i = 0; i < start.tasks.size(); ++i) {
    if (!tasks.emplace(start.tasks[i], HeldPlace{start.places[i], false}).second) {
      complain("task started twice of " + start.id);
    }
    check_node(start.id, start.tasks[i]);
  }
  if (anew && !has_minimum(known->second, staying_tasks(known->second, tasks))) {
    complain("half a gang started: " + start.id);
  }
}

void SchedulerWorld::check_node(const std::string& id, int task) {
  const TaskPlace& place = held.at(id).at(task).place;
  const Gang& gang = gangs.at(id);
  const auto found = nodes.find(place.node);
  if (found == nodes.end()) return complain(id + " starts on a node that is gone");
  const Node& node = found->second;
  if (node.cordoned) complain(id + " starts on a cordoned node");
  if (!gang.gpu_models.empty() && gang.gpu_models.front() != node.gpu_model) {
    complain(id + " starts on GPUs of another model");
  }
  const Claim& claim = group_of(gang, task).claim;
  const int64_t bytes = node.gpu_memory_bytes * place.share_milli / kWholeGpu;
  if (bytes < claim.gpu_memory_bytes) complain(id + " gets too little GPU memory");
  int64_t cpu = 0;
  for (const auto& [other, tasks] : held) {
    for (const auto& [number, state] : tasks) {
      if (state.place.node == place.node) cpu += group_of(gangs.at(other), number).claim.cpu_milli;
    }
  }
  if (claim.cpu_milli > 0 && cpu > node.cpu_milli) complain("CPU over-committed by " + id);
  if (!place.devices.empty()) check_gpus(id, place);
}

void SchedulerWorld::check_gpus(const std::string& id, const TaskPlace& place) {
  const Node& node = nodes.at(place.node);
  std::map<int, int> devices;
  int sum = 0;
  for (const auto& [other, tasks] : held) {
    for (const auto& [task, state] : tasks) {
      if (state.place.node != place.node) continue;
      for (const int device : state.place.devices) {
        devices[device] += state.place.share_milli;
        sum += state.place.share_milli;
      }
    }
  }
  bool is_over_committed = sum > node.gpus * kWholeGpu;
  for (const int device : place.devices) {
    const bool fits = devices[device] <= kWholeGpu && device < node.gpus;
    // The scheduler may have given other numbers to anonymous GPUs meanwhile.
    if (!fits && !node.anonymous_gpus) is_over_committed = true;
  }
  if (is_over_committed) complain("GPU over-committed by " + id + " on " + place.node);
}

void SchedulerWorld::take_eviction(const Eviction& eviction) {
  const auto known = gangs.find(eviction.id);
  if (known == gangs.end()) return complain("eviction of unknown " + eviction.id);
  if (!known->second.preemptible && eviction.cause != EvictionCause::kStale) {
    complain("not preemptible, and evicted: " + eviction.id);
  }
  if (words::sentence(eviction.why).empty()) {
    complain("eviction without a reason: " + eviction.id);
  }
  HeldTasks& tasks = held[eviction.id];
  for (const int task : eviction.tasks) {
    const auto state = tasks.find(task);
    if (state == tasks.end() || state->second.leaves) {
      return complain("eviction of a task that does not run: " + eviction.id);
    }
    state->second.leaves = true;
  }
  const std::vector<int> staying = staying_tasks(known->second, tasks);
  if (!all_zero(staying) && !has_minimum(known->second, staying) &&
      !lost_some_.contains(eviction.id)) {
    complain("half a gang stays of " + eviction.id);
  }
}

/// Leaving tasks do not count. A limit that was lowered below the running amount only blocks
/// starts of tasks with GPUs.
void SchedulerWorld::check_limits(const Plan& plan) {
  std::set<std::string> above_started;
  for (const PlannedStart& start : plan.starts) {
    const bool takes_gpus =
        std::any_of(start.places.begin(), start.places.end(),
                    [](const TaskPlace& place) { return !place.devices.empty(); });
    if (!gangs.contains(start.id) || !takes_gpus) continue;
    for (const Project* project = find_project(gangs.at(start.id).project); project != nullptr;
         project = find_project(project->parent)) {
      above_started.insert(project->name);
    }
  }
  for (const Project& project : projects) {
    if (!above_started.contains(project.name)) continue;
    if (used_by(project) > project.quota.limit.gpu_milli) {
      complain("above the limit of " + project.name);
    }
  }
}

/// A gang with a promise waits only as long as tasks leave.
void SchedulerWorld::check_promises(const Plan& plan) {
  for (const PlannedStart& promise : plan.promises) promised_.insert(promise.id);
  for (const auto& [id, tasks] : held) {
    for (const auto& [task, state] : tasks) {
      if (state.leaves) return;
    }
  }
  for (const std::string& id : std::exchange(promised_, {})) {
    if (scheduler.explain(id, now).constraint == Constraint::kReleasing) {
      complain("no task leaves, and this gang waits for one: " + id);
    }
  }
}

const Project* SchedulerWorld::find_project(const std::string& name) const {
  for (const Project& project : projects) {
    if (project.name == name) return &project;
  }
  return nullptr;
}

int64_t SchedulerWorld::used_by(const Project& project) const {
  int64_t used = 0;
  for (const auto& [id, tasks] : held) {
    const std::string& leaf = gangs.at(id).project;
    const Project* const own = find_project(leaf);
    if (own == nullptr || (own->name != project.name && own->parent != project.name)) continue;
    for (const auto& [task, state] : tasks) {
      if (!state.leaves) used += least_charge(group_of(gangs.at(id), task).claim);
    }
  }
  return used;
}

ScatteredWorld::ScatteredWorld(unsigned seed, const Options& options)
    : random_(seed), world(options) {
  const auto first = unsigned(below(4));
  for (int i = 0; i < 2 + below(3); ++i) {
    const Node node = machine((first + unsigned(i)) % 4, 2 + below(3));
    world.nodes[node.name] = node;
    world.scheduler.set_node(node);
  }
  world.set_projects(random_());
  for (int i = 0; i < 2 + below(5); ++i) run(next_gang());
  for (int i = 0; i < 1 + below(2); ++i) {
    const Gang gang = next_gang();
    world.gangs.emplace(gang.id, gang);
    world.scheduler.submit(gang);
  }
}

Gang ScatteredWorld::next_gang() {
  static constexpr int kPriorities[] = {49, 50, 50, 75, 100};
  Gang gang = testing::gang("g" + std::to_string(1000 + number_), "p" + std::to_string(below(3)),
                            1 + below(2) * below(3), 1 + below(4), kPriorities[below(5)]);
  gang.groups[0].minimum = 1 + below(gang.groups[0].count);
  if (below(4) == 0) add_launcher(gang, below(2));
  gang.sequence = number_++;
  return gang;
}

void ScatteredWorld::run(const Gang& gang) {
  std::map<std::string, int> taken = taken_;
  std::vector<std::optional<TaskPlace>> places;
  for (int task = 0; task < task_count(gang); ++task) {
    const Node& node = nth(world.nodes, random_()).second;
    const int gpus = group_of(gang, task).claim.gpus;
    TaskPlace place{.node = node.name, .share_milli = gpus > 0 ? kWholeGpu : 0};
    for (int i = 0; i < gpus; ++i) place.devices.push_back(taken[node.name]++);
    if (taken[node.name] > node.gpus) return;
    places.emplace_back(place);
  }
  taken_ = taken;
  for (size_t task = 0; task < places.size(); ++task) {
    world.held[gang.id][static_cast<int>(task)] = {*places[task], false};
  }
  world.gangs.emplace(gang.id, gang);
  world.scheduler.adopt(gang, places, kStart);
}

Crowd crowd_of(unsigned seed) {
  std::mt19937 random(seed);
  Crowd crowd;
  const int nodes = 1 + int(random() % 3);
  for (int i = 0; i < nodes; ++i) {
    const int gpus = 2 + int(random() % 4);
    crowd.gpus += gpus;
    crowd.stage.scheduler.set_node(node("n" + std::to_string(i), gpus));
  }
  std::vector<Project> list;
  int left = crowd.gpus;
  for (int i = 0; i < 2 + int(random() % 3); ++i) {
    const int deserved = int(random() % unsigned(left + 1));
    left -= deserved;
    crowd.names.push_back("p" + std::to_string(i));
    list.push_back(
        project(crowd.names.back(), {.deserved = deserved, .weight = double(random() % 4)}));
  }
  crowd.stage.scheduler.set_projects(projects(std::move(list)));
  std::vector<std::string> arrivals;
  for (const std::string& name : crowd.names) {
    arrivals.insert(arrivals.end(), size_t(crowd.gpus), name);
  }
  std::shuffle(arrivals.begin(), arrivals.end(), random);
  int number = 0;
  for (const std::string& name : arrivals) {
    crowd.stage.wait(gang("g" + std::to_string(number++), name, 1));
    if (random() % 4 == 0) crowd.stage.leave(crowd.stage.plan());
  }
  return crowd;
}

}  // namespace muster::schedule::testing
