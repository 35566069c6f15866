// What the scheduler keeps from plan to plan (the order of the projects, their classes in order,
// fair shares) equals the same made anew, whatever changes in between. Random worlds with enough
// projects that a change leaves most of them as they were. Seeds are fixed.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "schedule/ledger.h"
#include "schedule/testing.h"

namespace muster::schedule {
namespace {

using std::chrono::seconds;

/// A cluster shared by many projects in departments, and a caller that carries out each plan.
class ManyProjects {
 public:
  explicit ManyProjects(unsigned seed, Options options = {})
      : scheduler(options), random_(seed), now_(testing::kStart) {
    for (int i = 0; i < kDepartments; ++i) projects_.push_back(any_project("d" + text(i)));
    for (int i = 0; i < kTeams; ++i) projects_.push_back(any_project("p" + text(i)));
    for (Project& project : projects_) move(project);
    set_projects();
    for (int i = 0; i < kNodes; ++i) set_node(i);
    for (int i = 0; i < 2 * kTeams; ++i) submit();
  }

  /// Applies a random event and returns its name.
  std::string step() {
    switch (below(16)) {
      case 0:
        change_quota(any_project());
        return "quota";
      case 1:
        any_project().quota.weight = below(4);
        set_projects();
        return "weight";
      case 2:
        any_project().quota.limit.gpu_milli = gpus(below(8));
        set_projects();
        return "limit";
      case 3:
        move(any_project());
        set_projects();
        return "parent";
      case 4:
        any_project().priority = 100 + below(3);
        set_projects();
        return "priority";
      case 5:
        add_or_remove_project();
        return "added or removed project";
      case 6:
        set_node(below(kNodes));
        return "resized node";
      case 7:
        suspend();
        return "suspended gang";
      case 8:
        lose_task();
        return "lost task";
      case 9:
        end();
        return "end";
      case 10:
        release();
        return "released tasks";
      case 11:
      case 12:
        submit();
        return "submission";
      default:
        plan();
        return "plan";
    }
  }

  Scheduler scheduler;

 private:
  static constexpr int kDepartments = 4;
  static constexpr int kTeams = 60;
  static constexpr int kNodes = 12;

  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  static std::string text(int number) { return std::to_string(number); }
  static int64_t gpus(int count) { return int64_t{count} * kWholeGpu; }

  Project any_project(const std::string& name) {
    Project project = testing::project(name, {.deserved = below(3), .weight = double(below(3))});
    project.sequence = projects_.size();
    return project;
  }

  Project& any_project() { return projects_[random_() % projects_.size()]; }

  void change_quota(Project& project) {
    project.quota.deserved.gpu_milli = below(9) == 0 ? kUnlimited : gpus(below(6));
    project.quota.deserved.cpu_milli = below(3) == 0 ? int64_t{1000} * below(6) : kUnlimited;
    set_projects();
  }

  /// Departments stand at the top or below an earlier department, and teams below any of these.
  void move(Project& project) {
    const int last = project.name[0] == 'd' ? project.name[1] - '0' : kDepartments;
    const int parent = below(last + 1);
    project.parent = parent == last ? "" : "d" + text(parent);
  }

  void add_or_remove_project() {
    const std::string name = "p" + text(below(kTeams));
    const auto removed =
        std::erase_if(projects_, [&](const Project& project) { return project.name == name; });
    if (removed == 0) {
      projects_.push_back(any_project(name));
      move(projects_.back());
    }
    set_projects();
  }

  void set_projects() { scheduler.set_projects(projects_); }

  void set_node(int number) {
    Node node = testing::node("n" + text(number), 1 + below(8));
    node.cpu_milli = int64_t{1000} * (2 + below(12));
    node.cordoned = below(8) == 0;
    scheduler.set_node(node);
  }

  void submit() {
    static constexpr int kPriorities[] = {50, 50, 50, 75, 100};
    Gang gang = testing::gang("g" + std::to_string(next_), "p" + text(below(kTeams)), 1 + below(3),
                              1 + below(2), kPriorities[below(5)]);
    if (below(3) == 0) gang.groups[0].minimum = 1;
    gang.groups[0].claim.cpu_milli = int64_t{1000} * below(2);
    gang.sequence = next_++;
    gang.submitted = now_;
    gangs_.emplace(gang.id, gang);
    scheduler.submit(std::move(gang));
  }

  /// A gang, which may wait or run; nullptr: there is none.
  const Gang* any_gang() {
    if (gangs_.empty()) return nullptr;
    return &std::next(gangs_.begin(), below(static_cast<int>(gangs_.size())))->second;
  }

  void end() {
    const Gang* const gang = any_gang();
    if (gang == nullptr) return;
    const std::string id = gang->id;
    scheduler.ended(id);
    leaving_.erase(id);
    gangs_.erase(id);
  }

  /// Its resources are free, and it does not wait until it is resumed.
  void suspend() {
    const Gang* const gang = any_gang();
    if (gang == nullptr) return;
    leaving_.erase(gang->id);
    scheduler.requeue(gang->id, now_ + seconds(below(60)));
  }

  void lose_task() {
    if (const Gang* const gang = any_gang()) scheduler.lost(gang->id, 0, now_);
  }

  void release() {
    for (const auto& [id, tasks] : leaving_) scheduler.released(id, tasks);
    leaving_.clear();
  }

  void plan() {
    for (const Eviction& eviction : scheduler.plan(now_).evictions) {
      std::vector<int>& tasks = leaving_[eviction.id];
      tasks.insert(tasks.end(), eviction.tasks.begin(), eviction.tasks.end());
    }
    now_ += seconds(1 + below(20));
  }

  std::mt19937 random_;
  Time now_;
  uint64_t next_ = 0;
  std::vector<Project> projects_;
  std::map<std::string, Gang> gangs_;
  std::map<std::string, std::vector<int>> leaving_;
};

TEST(KeptOrder, EqualsANewOneAfterEveryEvent) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    ManyProjects world(seed);
    for (int step = 0; step < 80; ++step) {
      const std::string event = world.step();
      ASSERT_FALSE(world.scheduler.is_stale()) << "seed " << seed << ", " << event;
    }
  }
}

TEST(KeptOrder, EqualsANewOneAfterManyEventsAtOnce) {
  for (unsigned seed = 100; seed < 200; ++seed) {
    ManyProjects world(seed, {.forbearance = seconds(seed % 2 == 0 ? 10 : 0)});
    for (int round = 0; round < 12; ++round) {
      for (int step = 0; step < 10; ++step) world.step();
      ASSERT_FALSE(world.scheduler.is_stale()) << "seed " << seed << ", round " << round;
    }
  }
}

/// One ledger that gets changes of requests and settles after each, and one that gets all at once.
TEST(KeptOrder, SharesFollowEachChangeOfARequest) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int bound) { return int64_t(random() % static_cast<unsigned>(bound)); };
    std::vector<Project> projects;
    for (int i = 0; i < 9; ++i) {
      Project project{.name = "p" + std::to_string(i), .sequence = static_cast<uint64_t>(i)};
      if (i > 2 && below(3) > 0) project.parent = "p" + std::to_string(below(3));
      project.quota.deserved.gpu_milli = below(6) == 0 ? kUnlimited : below(5) * kWholeGpu;
      project.quota.weight = static_cast<double>(below(3));
      if (below(4) == 0) project.quota.limit.gpu_milli = below(9) * kWholeGpu;
      project.priority = below(4) == 0 ? 101 : 100;
      project.past_use.gpu_milli = below(500);
      projects.push_back(std::move(project));
    }
    const Amounts total{(4 + below(30)) * kWholeGpu, 20'000 + below(20'000), int64_t{1} << 30};
    Ledger kept;
    kept.set_decay(seed % 2 == 0 ? 0 : 0.5);
    kept.set_total(total);
    kept.set_projects(projects, kDefaultPool);
    std::map<ProjectIndex, Amounts> requests;
    for (int step = 0; step < 60; ++step) {
      const ProjectIndex leaf = kept.find("p" + std::to_string(3 + below(6)));
      const Amounts request{below(12) * 500, below(10'000), below(1 << 20)};
      kept.remove_request(leaf, requests[leaf]);
      kept.add_request(leaf, request);
      requests[leaf] = request;
      if (below(4) == 0) continue;
      kept.settle_fair_shares();
      ASSERT_FALSE(kept.has_stale_shares()) << "seed " << seed << ", step " << step;

      Ledger fresh;
      fresh.set_decay(seed % 2 == 0 ? 0 : 0.5);
      fresh.set_total(total);
      fresh.set_projects(projects, kDefaultPool);
      for (const auto& [project, amounts] : requests) fresh.add_request(project, amounts);
      fresh.settle_fair_shares();
      for (ProjectIndex project = 0; project < 9; ++project) {
        ASSERT_EQ(kept.standing(project).fair_share, fresh.standing(project).fair_share)
            << "seed " << seed << ", step " << step << ", project " << project;
      }
    }
  }
}

}  // namespace
}  // namespace muster::schedule
