#include "control/projects.h"

#include <gtest/gtest.h>

#include <functional>

#include "control/sweeps.h"
#include "control/test_parts.h"

namespace muster::control {
namespace {

using base::ErrorCode;
using job::Project;

const base::Time kCreated{std::chrono::seconds(5)};

class ProjectTable : public testing::Test {
 protected:
  ProjectTable() { projects_.load({}, kCreated); }

  Project add(const Project& project) {
    const auto checked = projects_.checked_new(project, kCreated);
    EXPECT_TRUE(checked) << checked.error().to_string();
    projects_.put(*checked);
    return *checked;
  }

  schedule::Quota default_quota(int64_t gpus, const std::string& pool = "default") {
    for (const schedule::Project& project :
         projects_.for_scheduler({{pool, {gpus * 1000, 8000, 64}}})) {
      if (project.name == "default") return project.quotas.at(pool);
    }
    return {};
  }

  int64_t rest(int64_t gpus) { return default_quota(gpus).deserved.gpu_milli; }

  /// The default project, changed by `change`.
  Project change_default(const std::function<void(Project&)>& change) {
    Project project = **projects_.find("default");
    change(project);
    const auto changed = projects_.checked_change(project);
    EXPECT_TRUE(changed) << changed.error().to_string();
    projects_.put(*changed);
    return *changed;
  }

  Projects projects_;
};

TEST_F(ProjectTable, AlwaysHasTheDefaultProject) {
  EXPECT_TRUE(projects_.find("default"));
}

TEST_F(ProjectTable, TheDefaultProjectDeservesTheResourcesWithoutAQuota) {
  EXPECT_EQ(rest(8), 8000);
  add(project_of("team-a", 2));
  add(project_of("team-b", 5));
  add(project_of("below", 5, "team-b"));
  EXPECT_EQ(rest(8), 1000);
  EXPECT_EQ(rest(4), 0);
}

TEST_F(ProjectTable, TheDefaultProjectKeepsAQuotaOnceItIsGivenOne) {
  add(project_of("team-a", 2));
  const auto changed = projects_.checked_change(project_of("default", 3));
  ASSERT_TRUE(changed);
  EXPECT_FALSE(changed->takes_the_rest);
}

TEST_F(ProjectTable, TheDefaultProjectHasTheRestUpToItsLimit) {
  add(project_of("team-a", 2));

  EXPECT_TRUE(change_default([](Project& project) {
                project.quota.limit.gpu_milli = 5000;
              }).takes_the_rest);

  EXPECT_EQ(rest(4), 2000);
  EXPECT_EQ(rest(8), 5000);
  EXPECT_EQ(default_quota(8).limit.gpu_milli, 5000);
}

TEST_F(ProjectTable, AChangeOfTheDefaultProjectLeavesItTheRest) {
  change_default([](Project& project) { project.quota.weight = 3; });
  change_default([](Project& project) { project.quota.deserved.cpu_milli = 1000; });
  change_default([](Project& project) { project.pools["big"].limit.gpu_milli = 2000; });
  EXPECT_EQ(rest(8), 8000);
  EXPECT_EQ(default_quota(8).weight, 3);
  EXPECT_EQ(default_quota(8).deserved.cpu_milli, 1000);
  EXPECT_EQ(default_quota(8, "big").deserved.gpu_milli, 2000);

  change_default([](Project& project) { project.pools["big"].deserved.gpu_milli = 1000; });
  EXPECT_EQ(default_quota(8, "big").deserved.gpu_milli, 1000);
  EXPECT_EQ(rest(8), 8000);
}

TEST_F(ProjectTable, TheDefaultProjectCanHaveTheRestAgain) {
  change_default([](Project& project) { project.quota.deserved.gpu_milli = 3000; });
  EXPECT_FALSE((*projects_.find("default"))->takes_the_rest);

  const Project changed = change_default([](Project& project) { project.takes_the_rest = true; });

  EXPECT_TRUE(changed.takes_the_rest);
  EXPECT_EQ(changed.quota.deserved.gpu_milli, 0);
  EXPECT_EQ(rest(8), 8000);
}

TEST_F(ProjectTable, NoOtherProjectCanHaveTheRest) {
  Project greedy = project_of("team-a", 0);
  greedy.takes_the_rest = true;
  EXPECT_EQ(projects_.checked_new(greedy, kCreated).error().code, ErrorCode::kInvalid);
}

TEST_F(ProjectTable, NumbersProjectsInTheOrderOfTheirCreation) {
  const auto first = add(project_of("b", 1)).sequence;
  EXPECT_GT(add(project_of("a", 1)).sequence, first);
}

TEST_F(ProjectTable, RefusesANameInUse) {
  add(project_of("team-a", 2));
  EXPECT_EQ(projects_.checked_new(project_of("team-a", 3), kCreated).error().code,
            ErrorCode::kConflict);
}

TEST_F(ProjectTable, RefusesACycleAndAMissingParent) {
  add(project_of("a", 1));
  add(project_of("b", 1, "a"));
  EXPECT_EQ(projects_.checked_change(project_of("a", 1, "b")).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(projects_.checked_new(project_of("c", 1, "nobody"), kCreated).error().code,
            ErrorCode::kInvalid);
}

TEST_F(ProjectTable, SuggestsTheNameThatWasMeant) {
  add(project_of("team-a", 1));
  EXPECT_EQ(projects_.find("team-s").error().advice, "did you mean 'team-a'?");
}

TEST_F(ProjectTable, ReturnsTheLineOfParentsAndTheTreeOrder) {
  add(project_of("z", 1));
  add(project_of("b", 1, "z"));
  add(project_of("a", 1));
  add(project_of("c", 1, "b"));
  EXPECT_EQ(projects_.line_of("c"), (std::vector<std::string>{"c", "b", "z"}));
  std::vector<std::string> order;
  for (const Project* project : projects_.in_tree_order()) order.push_back(project->name);
  EXPECT_EQ(order, (std::vector<std::string>{"default", "z", "b", "c", "a"}));
  EXPECT_TRUE(projects_.has_children("b"));
  EXPECT_FALSE(projects_.has_children("c"));

  projects_.put(project_of("c", 2, "a"));
  EXPECT_FALSE(projects_.has_children("b"));
  EXPECT_TRUE(projects_.has_children("a"));
  projects_.remove("c");
  EXPECT_FALSE(projects_.has_children("a"));
}

}  // namespace
namespace {

using job::Job;
using schedule::Amounts;
using std::chrono::hours;

const base::Time kCountedAt{hours(24 * 365 * 50)};
const Amounts kFourGpus{4000, 0, 0};

Job one_gpu(const std::string& project, base::Time started, std::optional<base::Time> ended = {}) {
  Job job;
  job.spec.project = project;
  job.started = started;
  job.ended = ended;
  job.tasks = {{.name = "main", .node = "n1", .devices = {0}, .gpu_share_milli = 1000}};
  return job;
}

EachJob each_of(std::vector<const Job*> jobs) {
  return [jobs = std::move(jobs)](const std::function<void(const job::JobFacts&)>& visit) {
    for (const Job* const job : jobs) visit(job::facts_of(*job));
  };
}

/// "a" and "b", both below "org".
Projects two_projects() {
  Projects projects;
  projects.load({project_of("org", 0), project_of("a", 0, "org"), project_of("b", 0, "org")},
                kCreated);
  return projects;
}

TEST(PastUse, AProjectThatAlwaysHeldAQuarterComesToAQuarter) {
  const Job always = one_gpu("a", base::Time{});
  EXPECT_EQ(past_use(two_projects(), each_of({&always}), kFourGpus, kCountedAt, hours(1)).at("a"),
            (Amounts{250, 0, 0}));
}

TEST(PastUse, UseOfAHalfLifeAgoCountsHalf) {
  const Job until_then = one_gpu("a", base::Time{}, kCountedAt - hours(1));
  EXPECT_EQ(past_use(two_projects(), each_of({&until_then}), kFourGpus, kCountedAt, hours(1))
                .at("a")
                .gpu_milli,
            125);
}

TEST(PastUse, AJobThatHasJustStartedHasUsedNothing) {
  const Job fresh = one_gpu("a", kCountedAt);
  EXPECT_TRUE(past_use(two_projects(), each_of({&fresh}), kFourGpus, kCountedAt, hours(1)).empty());
}

TEST(PastUse, AddsUpTheJobsOfAProject) {
  const Job one = one_gpu("a", base::Time{});
  const Job two = one_gpu("a", base::Time{}, kCountedAt - hours(1));
  const Job other = one_gpu("b", base::Time{});
  const auto use =
      past_use(two_projects(), each_of({&one, &two, &other}), kFourGpus, kCountedAt, hours(1));
  EXPECT_EQ(use.at("a").gpu_milli, 375);
  EXPECT_EQ(use.at("b").gpu_milli, 250);
}

TEST(PastUse, AProjectHasUsedWhatTheProjectsBelowItHave) {
  const Job one = one_gpu("a", base::Time{});
  const Job other = one_gpu("b", base::Time{}, kCountedAt - hours(1));
  const auto use =
      past_use(two_projects(), each_of({&one, &other}), kFourGpus, kCountedAt, hours(1));
  EXPECT_EQ(use.at("org").gpu_milli, 375);
  EXPECT_EQ(use.at("a").gpu_milli, 250);
}

TEST(PastUse, CountsTheAttemptsBeforeAnEviction) {
  // It ran until an hour ago, and waits again: its tasks have no places any more.
  Job evicted = one_gpu("a", base::Time{});
  evicted.spec.resources = {.gpus = 1, .cpu_milli = 2000};
  evicted.started.reset();
  evicted.tasks = job::tasks_of(evicted.spec);
  evicted.events = {{base::Time{}, job::Placed{.nodes = {"n1"}, .attempt = 1}},
                    {kCountedAt - hours(1), job::Notice{job::Notice::What::kEvictedAndGone}}};
  const auto use =
      past_use(two_projects(), each_of({&evicted}), {4000, 4000, 0}, kCountedAt, hours(1));
  EXPECT_EQ(use.at("a"), (Amounts{125, 250, 0}));

  // Then it runs on one GPU since half an hour.
  evicted.tasks = one_gpu("a", {}).tasks;
  evicted.started = kCountedAt - std::chrono::minutes(30);
  evicted.events.push_back({*evicted.started, job::Placed{.nodes = {"n1"}, .attempt = 2}});
  EXPECT_EQ(past_use(two_projects(), each_of({&evicted}), kFourGpus, kCountedAt, hours(1))
                .at("a")
                .gpu_milli,
            125 + 73);
}

TEST(PastUse, AClockThatWasSetBackGivesNoNegativeUse) {
  const Job ahead = one_gpu("a", kCountedAt + hours(5), kCountedAt + hours(6));
  EXPECT_TRUE(past_use(two_projects(), each_of({&ahead}), kFourGpus, kCountedAt, hours(1)).empty());
}

/// A server with two nodes of one GPU each, on which past use counts. A job of project a runs, and a
/// job of project b waits.
class WeighedUse : public Scheduling {
 protected:
  WeighedUse() {
    engine_.offered.front().gpus = 1;
    engine_.offered.push_back({.name = "n2", .task_slots = 100, .gpus = 1, .gpu_model = "V100"});
    controller_ = nullptr;
    controller_ = std::make_unique<Controller>(
        ControllerDependencies{
            .loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
        SiteFacts{.user = "ada"}, schedule::Options{.decay = 1});
    add(project_of("a", 0));
    add(project_of("b", 0));
    submit(mpi("one", "a", 2));
    submit(mpi("two", "b", 2));
  }

  int64_t share_of_b() { return controller_->projects().status("b")->fair_share.gpu_milli.value(); }
  void report_nodes() {
    engine_.set_nodes(engine_.offered);
    settle();
  }
};

TEST_F(WeighedUse, IsCountedAnewForOtherTotalsOfTheNodesOnly) {
  ASSERT_EQ(job("one").phase, job::Phase::kRunning);
  ASSERT_EQ(share_of_b(), 1000);
  clock_.advance(hours(24 * 70));

  engine_.offered.front().labels["zone"] = "east";
  report_nodes();
  EXPECT_EQ(share_of_b(), 1000) << "a node event visits no job";

  engine_.offered.front().cpu_milli += 1000;
  report_nodes();
  EXPECT_EQ(share_of_b(), 2000);
}

TEST_F(WeighedUse, IsCountedWhenAServerLoadsTheJobs) {
  clock_.advance(hours(24 * 70));
  controller_ = std::make_unique<Controller>(
      ControllerDependencies{
          .loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
      SiteFacts{.user = "ada"}, schedule::Options{.decay = 1});
  ASSERT_TRUE(controller_->recover());
  settle();
  EXPECT_EQ(share_of_b(), 2000);
}

class ParentProjects : public Scheduling {
 protected:
  ParentProjects() { add(project_of("parent", 2)); }

  /// The reason why no project can be below "parent"; "" once one is.
  std::string refusal() {
    const auto made = controller_->projects().create(project_of("child", 0, "parent"));
    return made ? "" : made.error().what;
  }
};

TEST_F(ParentProjects, HaveNoArraysThatHaveNotEnded) {
  job::JobSpec spec = single("many", "parent", 0);
  spec.array.indexes = "0-1";
  spec.held = true;
  const auto array = controller_->submit_array(spec, "", {.user = "ada"});
  ASSERT_TRUE(array);
  EXPECT_EQ(
      refusal(),
      "project 'parent' has 1 array or sweep that has not ended, so no project can be below it");
  ASSERT_TRUE(controller_->arrays().stop(array->id, true, {.user = "ada"}));
  settle();
  EXPECT_EQ(refusal(), "");
}

TEST_F(ParentProjects, HaveNoSweepsThatHaveNotEnded) {
  const sweep::SweepSpec spec{
      .job = {.name = "lr", .project = "parent", .command = {"train", "{x}"}, .folder = "/"},
      .parameters = {{"x", {.low = 0, .high = 1}}},
      .method = sweep::Method::kRandom,
      .metric = "accuracy",
      .max_trials = 2,
      .max_concurrent = 1};
  const auto sweep = controller_->sweeps().create(spec, {.user = "ada"});
  ASSERT_TRUE(sweep) << sweep.error().to_string();
  ASSERT_TRUE(controller_->sweeps().set_paused(sweep->summary.id, true, {.user = "ada"}));
  settle();
  for (const job::Job* const trial : controller_->jobs().list()) {
    ASSERT_TRUE(controller_->stop(trial->id, true));
  }
  settle();
  EXPECT_EQ(
      refusal(),
      "project 'parent' has 1 array or sweep that has not ended, so no project can be below it");
}

TEST_F(ParentProjects, HaveNoSchedules) {
  const auto created = controller_->schedules().create({.name = "hourly",
                                                        .project = "parent",
                                                        .cron = "0 * * * *",
                                                        .job = single("run", "parent", 0)},
                                                       {.user = "ada"});
  ASSERT_TRUE(created) << created.error().to_string();
  EXPECT_EQ(refusal(), "project 'parent' has 1 schedule, so no project can be below it");
  add(project_of("child", 0));
  EXPECT_FALSE(controller_->projects().set(project_of("child", 0, "parent")));
  ASSERT_TRUE(controller_->schedules().remove(created->id, {.user = "ada"}));
  EXPECT_TRUE(controller_->projects().set(project_of("child", 0, "parent")));
}

TEST(TheNodeTable, ReportsHowAListDiffersFromTheOneBefore) {
  const auto node = [](const std::string& name, int gpus) {
    return engine::Node{.name = name, .gpus = gpus};
  };
  NodeTable table;
  NodeTable::Difference difference = table.replace({node("n2", 1), node("n1", 1), node("n3", 1)});
  EXPECT_EQ(difference.added, (std::set<std::string>{"n1", "n2", "n3"}));
  EXPECT_EQ(difference.changed, (std::vector<std::string>{"n1", "n2", "n3"}));

  engine::Node silent = node("n3", 1);
  engine::call_silent(silent, kCountedAt);
  difference = table.replace({node("n0", 1), node("n2", 2), silent, node("n4", 1)});
  EXPECT_EQ(difference.added, (std::set<std::string>{"n0", "n4"}));
  EXPECT_EQ(difference.changed, (std::vector<std::string>{"n0", "n2", "n3", "n4"}));
  EXPECT_EQ(difference.gone, (std::vector<std::string>{"n1"}));
  EXPECT_EQ(difference.silence, (std::vector<std::pair<std::string, bool>>{{"n3", true}}));

  difference = table.replace({node("n0", 1), node("n2", 2), silent});
  EXPECT_TRUE(difference.added.empty());
  EXPECT_TRUE(difference.changed.empty());
  EXPECT_EQ(difference.gone, (std::vector<std::string>{"n4"}));
}

}  // namespace
}  // namespace muster::control
