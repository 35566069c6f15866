#include "launch/elastic.h"

#include <gtest/gtest.h>

#include "launch/test_plan.h"

namespace muster::launch {
namespace {

using job::JobSpec;
using job::Kind;
using job::Resize;

/// A job with one to four workers.
JobSpec elastic(Kind kind, std::vector<std::string> command) {
  return {
      .kind = kind, .command = std::move(command), .workers = 4, .scheduling = {.min_workers = 1}};
}

TEST(ResizesLive, DependsOnTheCommand) {
  struct Case {
    Kind kind;
    std::vector<std::string> command;
    bool live;
  };
  for (const Case& c : {
           Case{Kind::kTorch, {"torchrun", "train.py"}, true},
           Case{Kind::kTorch, {"/opt/conda/bin/torchrun", "train.py"}, true},
           Case{Kind::kTorch, {"python3", "-m", "torch.distributed.run", "train.py"}, true},
           Case{Kind::kTorch, {"sh", "-c", "cd src && exec torchrun train.py"}, true},
           Case{Kind::kTorch, {"python3", "train.py"}, false},
           Case{Kind::kTorch, {"sh", "/src/torchrun.sh"}, false},
           Case{Kind::kMpi, {"horovodrun", "--min-np", "1", "train"}, false},
           Case{Kind::kMpi,
                {"horovodrun", "--host-discovery-script", "/generated/discover_hosts.sh", "train"},
                true},
           Case{Kind::kMpi, {"horovodrun", "--host-discovery-script=./hosts", "train"}, true},
           Case{Kind::kMpi, {"sh", "-c", "exec ./launch /etc/mpi/discover_hosts.sh"}, true},
           Case{Kind::kMpi, {"mpirun", "train"}, false},
           Case{Kind::kMpi, {"mpirun", "train", "--out", "rediscover_hosts.sh.log"}, false},
           Case{Kind::kGrpc, {"python3", "train.py"}, false},
           Case{Kind::kTorch, {}, false},  // the image's own program, which is unknown
       }) {
    EXPECT_EQ(resizes_live(elastic(c.kind, c.command)), c.live)
        << (c.command.empty() ? "nothing" : c.command.back());
  }
}

TEST(ResizesLive, ChecksTheLeadersOwnCommandFirst) {
  JobSpec spec = elastic(Kind::kTorch, {"torchrun", "train.py"});
  spec.leader.command = {"python3", "serve.py"};
  EXPECT_FALSE(resizes_live(spec));

  spec.command = {"python3", "train.py"};
  spec.leader.command = {"torchrun", "train.py"};
  EXPECT_FALSE(resizes_live(spec));
}

TEST(ResizesLive, ChecksArgumentsAfterTheCommand) {
  JobSpec spec = elastic(Kind::kMpi, {"horovodrun"});
  spec.arguments = {"--host-discovery-script", "/etc/mpi/discover_hosts.sh"};

  EXPECT_TRUE(resizes_live(spec));
}

TEST(ResizesLive, FollowsTheSpecIfItIsSetThere) {
  JobSpec spec = elastic(Kind::kGrpc, {"digits"});
  spec.scheduling.resize = Resize::kLive;
  EXPECT_TRUE(resizes_live(spec));

  spec = elastic(Kind::kTorch, {"torchrun"});
  spec.scheduling.resize = Resize::kRestart;
  EXPECT_FALSE(resizes_live(spec));
}

TEST(ResizesLive, IsFalseForAFixedNumberOfWorkers) {
  JobSpec spec = elastic(Kind::kTorch, {"torchrun"});
  spec.scheduling.resize = Resize::kLive;
  for (const std::optional<int> least : {std::optional<int>(), std::optional<int>(4)}) {
    spec.scheduling.min_workers = least;
    EXPECT_FALSE(resizes_live(spec));
  }
}

}  // namespace

// Workers that join a running gang.
namespace {

using job::Job;
using job::TaskPhase;

job::JobSpec elastic_mpi_spec(int workers) {
  return {.name = "dist",
          .kind = Kind::kMpi,
          .command = {"mpirun", "train"},
          .workers = workers,
          .leader_slots = 1,
          .scheduling = {.min_workers = 1},
          .folder = "/work"};
}

/// All tasks that have resources run.
Job with_running_tasks(Job job) {
  for (job::Task& task : job.tasks) {
    if (!task.node.empty()) task.phase = TaskPhase::kRunning;
  }
  return job;
}

/// The launcher and all workers but the last run; the last worker has just been placed.
Job about_to_grow(const job::JobSpec& spec) {
  Job job = with_running_tasks(placed(spec));
  job.tasks.back().phase = TaskPhase::kPending;
  return job;
}

Site agent_site() {
  Site site = plain_site();
  site.remote_shell = "/muster/bin/muster-rsh";
  site.launch = job::LaunchBy::kAgent;
  return site;
}

Growth growth_of(const Job& job, const std::set<std::string>& joining,
                 const Site& site = plain_site()) {
  auto growth = plan_growth(job, joining, seed(), site);
  EXPECT_TRUE(growth);
  return *std::move(growth);
}

TaskPlan planned(const Job& job, const std::string& name, const Site& site = plain_site()) {
  const auto plan = plan_gang(job, seed(), site);
  EXPECT_TRUE(plan);
  for (const auto* stage : {&plan->first, &plan->then}) {
    for (const TaskPlan& task : *stage) {
      if (task.task == name) return task;
    }
  }
  ADD_FAILURE() << name << " is not planned";
  return {};
}

std::vector<std::string> updated_tasks(const Growth& growth) {
  std::vector<std::string> tasks;
  for (const FileChange& change : growth.before) tasks.push_back(change.task);
  return tasks;
}

TEST(PlanGrowth, PlansAJoiningTaskAsIfItHadBeenThereFromTheStart) {
  for (const Kind kind : {Kind::kMpi, Kind::kTorch, Kind::kGrpc}) {
    job::JobSpec spec = elastic_mpi_spec(3);
    spec.kind = kind;
    const Job job = about_to_grow(spec);

    const Growth growth = growth_of(job, {"worker-2"});

    ASSERT_EQ(growth.joining.size(), 1U);
    EXPECT_EQ(growth.joining[0], planned(placed(spec), "worker-2"));
  }
}

TEST(PlanGrowth, KeepsTheAddressesOfRunningTasks) {
  // In every kind of network, the launcher's entries for worker-0 and worker-1 stay the same when a
  // third worker joins.
  for (const Reach reach : {Reach::kLoopback, Reach::kNames, Reach::kHosts}) {
    Site site = plain_site();
    site.reach = reach;
    site.address_of = [](const std::string&) { return std::string("10.9.0.1"); };
    Job before = placed(elastic_mpi_spec(3));
    before.tasks.back().node.clear();
    const TaskPlan launcher = planned(before, "launcher", site);

    const Growth growth = growth_of(about_to_grow(elastic_mpi_spec(3)), {"worker-2"}, site);

    ASSERT_EQ(growth.before[0].task, "launcher");
    const std::string& config = find_file(growth.before[0].files, "ssh/config")->content;
    const std::string& old = find_file(launcher, "ssh/config")->content;
    const std::string old_hosts = old.substr(0, old.find("Host dist-launcher-0"));
    EXPECT_TRUE(config.starts_with(old_hosts)) << config;
    for (const auto& name : launcher.hosts) {
      EXPECT_EQ(std::count(growth.before[0].hosts.begin(), growth.before[0].hosts.end(), name), 1);
    }
  }
}

TEST(PlanGrowth, GivesRunningTasksTheSshFilesForTheNewTask) {
  const Growth growth = growth_of(about_to_grow(elastic_mpi_spec(2)), {"worker-1"});

  ASSERT_EQ(updated_tasks(growth), (std::vector<std::string>{"launcher", "worker-0"}));
  const std::string& address = growth.joining[0].address;
  for (const FileChange& change : growth.before) {
    EXPECT_NE(find_file(change.files, "ssh/config")
                  ->content.find("Host dist-worker-1\n  HostName " + address + "\n"),
              std::string::npos);
    EXPECT_EQ(*find_file(change.files, "ssh/known_hosts"),
              *find_file(growth.joining[0], "ssh/known_hosts"));
    EXPECT_EQ(*find_file(change.files, "bash/ssh_config"),
              *find_file(growth.joining[0], "bash/ssh_config"));
    EXPECT_EQ(change.hosts, growth.joining[0].hosts);
    EXPECT_EQ(change.hosts[2], (std::pair<std::string, std::string>{"dist-worker-1", address}));
  }
}

TEST(PlanGrowth, GivesRunningTasksTheRemoteShellFilesIfTheyUseThem) {
  const Growth growth = growth_of(about_to_grow(elastic_mpi_spec(2)), {"worker-1"}, agent_site());

  ASSERT_EQ(growth.before.size(), 2U);
  ASSERT_EQ(growth.before[0].files.size(), 1U);
  EXPECT_EQ(growth.before[0].files[0], *find_file(growth.joining[0], "rsh/hosts"));
  EXPECT_EQ(*find_file(growth.joining[0], "rsh/key"),
            *find_file(planned(placed(elastic_mpi_spec(2)), "launcher", agent_site()), "rsh/key"));
}

TEST(PlanGrowth, DoesNotChangeTheMembersBeforeTheNewTaskAnswers) {
  for (const FileChange& change :
       growth_of(about_to_grow(elastic_mpi_spec(2)), {"worker-1"}).before) {
    EXPECT_EQ(find_file(change.files, "hostfile"), nullptr);
    EXPECT_EQ(find_file(change.files, "discover_hosts.sh"), nullptr);
  }
}

TEST(PlanGrowth, GivesTheTasksOfATorchJobTheNewName) {
  job::JobSpec spec = elastic_mpi_spec(2);
  spec.kind = Kind::kTorch;

  const Growth growth = growth_of(about_to_grow(spec), {"worker-1"});

  ASSERT_EQ(updated_tasks(growth), (std::vector<std::string>{"master", "worker-0"}));
  EXPECT_EQ(growth.before[0].files, std::vector<PlannedFile>());
  EXPECT_EQ(growth.before[0].hosts, growth.joining[0].hosts);
}

TEST(PlanGrowth, ChangesNothingIfTheNetworkResolvesNames) {
  job::JobSpec spec = elastic_mpi_spec(2);
  spec.kind = Kind::kTorch;
  Site site = plain_site();
  site.reach = Reach::kNames;

  EXPECT_EQ(updated_tasks(growth_of(about_to_grow(spec), {"worker-1"}, site)),
            std::vector<std::string>());
}

TEST(PlanGrowth, GivesTheReplacementOfATaskItsOwnNameAndAddress) {
  Job job = with_running_tasks(placed(elastic_mpi_spec(2)));
  job::Task& gone = job.tasks[1];
  const TaskPlan was = planned(job, gone.name);
  gone.left = true;
  gone.phase = TaskPhase::kEnded;
  job::Task next = job::next_worker(job, gone.seat);
  next.node = "n1";
  job.tasks.push_back(next);

  const Growth growth = growth_of(job, {"worker-2"});

  ASSERT_EQ(growth.joining.size(), 1U);
  EXPECT_EQ(growth.joining[0].hostname, "dist-worker-2");
  EXPECT_NE(growth.joining[0].address, was.address);
  EXPECT_EQ(updated_tasks(growth), (std::vector<std::string>{"launcher", "worker-1"}));
  EXPECT_EQ(growth.before[0].hosts.size(), 4U);
  for (const auto& [name, address] : growth.before[0].hosts) EXPECT_NE(name, was.hostname);
  EXPECT_EQ(find_file(growth.joining[0], "hostfile")->content,
            "dist-worker-1 slots=1\ndist-worker-2 slots=1\ndist-launcher-0 slots=1\n");
}

TEST(PlanGrowth, RefusesTasksThatRunOrHaveNoNodeOrAreUnknown) {
  Job job = with_running_tasks(placed(elastic_mpi_spec(2)));
  job.tasks.push_back(job::next_worker(job, 3));

  for (const char* name : {"worker-1", "worker-2", "worker-9"}) {
    const auto growth = plan_growth(job, {name}, seed(), plain_site());
    ASSERT_FALSE(growth) << name;
    EXPECT_EQ(growth.error().code, base::ErrorCode::kInternal);
    EXPECT_EQ(growth.error().what,
              "job 'dist' has no placed task that could still start as " + std::string(name));
  }
}

TEST(PlanGrowth, NeedsNoNodeAddressOfTasksThatLeft) {
  Job job = about_to_grow(elastic_mpi_spec(3));
  job.tasks[1].left = true;
  job.tasks[1].node = "lost";
  Site site = plain_site();
  site.reach = Reach::kHosts;
  site.address_of = [](const std::string& node) { return node == "lost" ? "" : "10.9.0.1"; };

  EXPECT_TRUE(plan_growth(job, {"worker-2"}, seed(), site));
}

// A parameter server identifies its workers by their numbers.
TEST(PlanGrowth, NumbersTheWorkersOfALiveClusterByTheirSeats) {
  job::JobSpec spec = elastic_mpi_spec(3);
  spec.kind = Kind::kGrpc;
  spec.leader_slots = 0;
  spec.parameter_servers = 1;
  spec.scheduling.resize = job::Resize::kLive;
  Job job = with_running_tasks(placed(spec));
  job.tasks[1].left = true;   // worker-0 was lost
  job.tasks[3].node.clear();  // worker-2 was not placed yet
  job.tasks.push_back(job::next_worker(job, 1));
  job.tasks.back().node = "n1";

  const Growth growth = growth_of(job, {"worker-3"});

  ASSERT_EQ(growth.joining.size(), 1U);
  const std::string config = growth.joining.front().environment.at("TF_CONFIG");
  EXPECT_NE(config.find(R"("task":{"type":"worker","index":0})"), std::string::npos) << config;
  const size_t newcomer = config.find("dist-worker-3:");
  const size_t second = config.find("dist-worker-1:");
  const size_t absent = config.find("dist-worker-2:");
  EXPECT_LT(newcomer, second) << config;
  EXPECT_LT(second, absent) << config;
  EXPECT_NE(absent, std::string::npos) << config;
  EXPECT_EQ(config.find("dist-worker-0:"), std::string::npos) << config;
}

// A running task keeps its number, and no two tasks may have the same number.
TEST(PlanGrowth, NumbersTheTasksOfALiveTorchJobByTheirSeats) {
  job::JobSpec spec = elastic_mpi_spec(2);
  spec.kind = Kind::kTorch;
  spec.leader_slots = 0;
  spec.scheduling.resize = job::Resize::kLive;
  Job job = with_running_tasks(placed(spec));
  job.tasks[1].left = true;  // worker-0 was lost
  job.tasks.push_back(job::next_worker(job, 1));
  job.tasks.back().node = "n1";

  const Growth growth = growth_of(job, {"worker-2"});

  ASSERT_EQ(growth.joining.size(), 1U);
  const auto& updated_tasks = growth.joining.front().environment;
  EXPECT_EQ(updated_tasks.at("PET_NODE_RANK"), "1");
  EXPECT_EQ(updated_tasks.at("RANK"), "1");
  EXPECT_EQ(updated_tasks.at("WORLD_SIZE"), "3");
}

}  // namespace

// The lists of members that running tasks get.
namespace {

/// An MPI job with a launcher and twelve workers, all running.
Job running_mpi_job() {
  Job job = placed({.name = "dist",
                    .kind = Kind::kMpi,
                    .command = {"horovodrun"},
                    .workers = 12,
                    .slots_per_worker = 2,
                    .folder = "/work"});
  for (job::Task& task : job.tasks) task.phase = TaskPhase::kRunning;
  return job;
}

std::vector<FileChange> changes_of(const Job& job, const std::set<std::string>& members) {
  auto changes = plan_membership(job, members);
  EXPECT_TRUE(changes);
  return *std::move(changes);
}

const std::string& content(const FileChange& change, const std::string& path) {
  return find_file(change.files, path)->content;
}

TEST(PlanMembership, ListsOnlyTheMembersInTheirOrder) {
  const auto changes = changes_of(running_mpi_job(), {"worker-10", "worker-2", "worker-0"});

  EXPECT_EQ(content(changes[0], "hostfile"),
            "dist-worker-0 slots=2\ndist-worker-2 slots=2\ndist-worker-10 slots=2\n");
  EXPECT_EQ(content(changes[0], "hostfile.intel"),
            "dist-worker-0:2\ndist-worker-2:2\ndist-worker-10:2\n");
  EXPECT_EQ(content(changes[0], "discover_hosts.sh"),
            "#!/bin/sh\n"
            "# Prints the workers that take ranks now, for: horovodrun --host-discovery-script\n"
            "echo dist-worker-0:2\n"
            "echo dist-worker-2:2\n"
            "echo dist-worker-10:2\n");
}

TEST(PlanMembership, KeepsALauncherWithRanksLast) {
  Job job = running_mpi_job();
  job.spec.leader_slots = 3;

  EXPECT_EQ(content(changes_of(job, {"worker-1"})[0], "hostfile"),
            "dist-worker-1 slots=2\ndist-launcher-0 slots=3\n");
}

TEST(PlanMembership, InformsAllRunningTasksIncludingThoseThatLeave) {
  Job job = running_mpi_job();
  job.tasks[1].left = true;
  job.tasks[2].phase = TaskPhase::kEnded;
  job.tasks[3].phase = TaskPhase::kStarting;

  const auto changes = changes_of(job, {"worker-5"});

  ASSERT_EQ(changes.size(), 10U);
  EXPECT_EQ(changes[0].task, "launcher");
  EXPECT_EQ(changes[1].task, "worker-3");
  EXPECT_EQ(changes[9].task, "worker-11");
  for (const FileChange& change : changes) {
    EXPECT_EQ(change.files, changes[0].files);
    EXPECT_TRUE(change.hosts.empty());  // names do not change
  }
}

TEST(PlanMembership, GivesTheSameFilesAsAPlanOfTheMembers) {
  Job job = placed({.name = "dist",
                    .kind = Kind::kMpi,
                    .command = {"mpirun"},
                    .workers = 3,
                    .leader_slots = 1,
                    .folder = "/work"});
  job.tasks[2].node.clear();
  const auto plan = plan_gang(job, seed(), plain_site());
  ASSERT_TRUE(plan);
  for (job::Task& task : job.tasks) task.phase = TaskPhase::kRunning;

  const auto changes = changes_of(job, {"worker-0", "worker-2"});

  for (const PlannedFile& file : changes[0].files) {
    EXPECT_EQ(file, *find_file(plan->then[0], file.path)) << file.path;
  }
}

TEST(PlanMembership, ChangesNothingForOtherKinds) {
  for (const Kind kind : {Kind::kGrpc, Kind::kTorch, Kind::kSingle}) {
    Job job = running_mpi_job();
    job.spec.kind = kind;

    EXPECT_TRUE(changes_of(job, {"worker-1"}).empty());
  }
}

TEST(PlanMembership, RefusesAMemberThatIsNotAWorkerOrHasLeft) {
  Job job = running_mpi_job();
  job.tasks[1].left = true;

  for (const char* name : {"worker-0", "launcher", "worker-99"}) {
    const auto changes = plan_membership(job, {"worker-1", name});
    ASSERT_FALSE(changes) << name;
    EXPECT_EQ(changes.error().what,
              "job 'dist' has no worker '" + std::string(name) + "' that can be a member");
  }
}

}  // namespace
}  // namespace muster::launch
