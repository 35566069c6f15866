// Views of projects, nodes, the queue and the whole cluster, as values.
#include <gtest/gtest.h>

#include "cli/cluster/cluster.h"
#include "cli/common/format.h"
#include "cli/common/terminal.h"
#include "cli/jobs/jobs.h"
#include "cli/projects/projects.h"
#include "cli/test_call.h"

namespace muster::cli {

namespace {

using std::chrono::seconds;

job::ProjectStatus project(const std::string& name, const std::string& parent, int64_t gpus) {
  job::ProjectStatus status;
  status.project.name = name;
  status.project.parent = parent;
  status.project.quota.deserved.gpu_milli = gpus * 1000;
  status.deserved = status.project.quota.deserved;
  status.fair_share.gpu_milli = gpus * 1000;
  return status;
}

job::Node gpu_node(const std::string& name) {
  return {.name = name,
          .pool = "default",
          .state = "ready",
          .cpu_milli = 16'000,
          .cpu_milli_free = 12'000,
          .memory_bytes = 64LL << 30,
          .memory_bytes_free = 63LL << 30,
          .devices = {{.index = 0,
                       .model = "A100",
                       .memory_bytes = 80LL << 30,
                       .free_milli = 0,
                       .jobs = {"dist"}},
                      {.index = 1,
                       .model = "A100",
                       .memory_bytes = 80LL << 30,
                       .free_milli = 500,
                       .jobs = {"a", "b"}}},
          .jobs = {"a", "b", "dist"},
          .topology = {{"rack", "r1"}}};
}

TEST(NodeTable, NamesTheEngineOfAHost) {
  job::Node answers = gpu_node("gpu-1");
  answers.labels = {{"engine", "podman 4.3.1"}};
  job::Node silent = gpu_node("gpu-2");
  silent.state = "gone";
  silent.labels = {{"engine", "docker 20.10.24"}, {"fault", "host 'gpu-2' cannot be used: ..."}};

  EXPECT_EQ(cluster::node_table({answers, silent}),
            "NAME   STATE  POOL     GPUS        CPUS    MEMORY  JOBS  ENGINE\n"
            "gpu-1  ready  default  1.5/2 A100  4/16  1Gi/64Gi     3  podman 4.3.1\n"
            "gpu-2  gone   default  1.5/2 A100  4/16  1Gi/64Gi     3  docker 20.10.24\n");
  EXPECT_NE(cluster::node_page(silent).find("host 'gpu-2' cannot be used"), std::string::npos);
}

TEST(NodeTable, ShowsWhyAClusterGivesANodeNoJobs) {
  job::Node closed = gpu_node("gpu-1");
  closed.state = "draining";
  closed.labels = {{"reason", "its fan is loud"}};

  EXPECT_EQ(cluster::node_table({closed, gpu_node("gpu-2")}),
            "NAME   STATE     POOL     GPUS        CPUS    MEMORY  JOBS  REASON\n"
            "gpu-1  draining  default  1.5/2 A100  4/16  1Gi/64Gi     3  its fan is loud\n"
            "gpu-2  ready     default  1.5/2 A100  4/16  1Gi/64Gi     3\n");
}

job::Job waiting_job(const std::string& name) {
  job::Job job;
  job.id = "id-" + name;
  job.spec.name = name;
  job.spec.project = "team-a";
  job.spec.kind = job::Kind::kMpi;
  job.spec.workers = 2;
  job.spec.resources.gpus = 1;
  job.submitted = kNow - seconds(90);
  job.reason = job::Remark{"needs 2 GPUs; 1 is free"};
  job.tasks = job::tasks_of(job.spec);
  return job;
}

job::Job running_job(const std::string& name) {
  job::Job job = waiting_job(name);
  job.phase = job::Phase::kRunning;
  job.reason = {};
  job.started = kNow - seconds(60);
  for (job::Task& task : job.tasks) task.node = "gpu-1";
  return job;
}

TEST(NeedsWords, NameTheNumberOfTasksAndTheClaimOfEach) {
  job::JobSpec spec;
  EXPECT_EQ(needs_words(spec), "-");
  spec.resources = {.gpus = 2, .cpu_milli = 1'500, .memory_bytes = 16LL << 30};
  EXPECT_EQ(needs_words(spec), "2 GPU, 1.5 CPU, 16Gi");
  spec.kind = job::Kind::kMpi;
  spec.workers = 4;
  EXPECT_EQ(needs_words(spec), "4 x 2 GPU, 1.5 CPU, 16Gi");
  spec.scheduling.min_workers = 2;
  spec.resources = {.gpu_share_milli = 250};
  EXPECT_EQ(needs_words(spec), "2-4 x 0.25 GPU");
  spec.kind = job::Kind::kSingle;
  spec.resources = {.gpu_memory_bytes = 20LL << 30};
  EXPECT_EQ(needs_words(spec), "20Gi of a GPU");
}

TEST(NeedsWords, NameTheRolesWithClaimsBesideTheWorkers) {
  job::JobSpec spec{.kind = job::Kind::kGrpc, .workers = 1, .resources = {.gpus = 1}};
  spec.leader.resources.gpus = 1;
  spec.parameter_servers = 2;
  EXPECT_EQ(needs_words(spec), "1 x 1 GPU + 1 GPU (chief)");
  spec.parameter_server.resources.cpu_milli = 500;
  EXPECT_EQ(needs_words(spec), "1 x 1 GPU + 1 GPU (chief) + 2 x 0.5 CPU (ps)");
  spec.workers = 0;
  EXPECT_EQ(needs_words(spec), "1 GPU (chief) + 2 x 0.5 CPU (ps)");
}

TEST(ProjectTable, IsATreeWithTheLimitedAmounts) {
  job::ProjectStatus team = project("team-a", "research", 2);
  team.project.quota.limit = {.gpu_milli = 4000, .cpu_milli = 32'000, .memory_bytes = {}};
  team.project.quota.weight = 2.5;
  team.fair_share = {.gpu_milli = 2500, .cpu_milli = 8000, .memory_bytes = {}};
  team.allocated = {.gpu_milli = 1500, .cpu_milli = 4000, .memory_bytes = 1 << 20};
  team.running = 1;
  team.waiting = 12;
  job::ProjectStatus all = project("default", "", 0);
  all.deserved.gpu_milli.reset();

  EXPECT_EQ(projects::project_table({all, project("research", "", 8), team}, "team-a"),
            "NAME            QUOTA          LIMIT  WEIGHT      FAIR SHARE            USED  RUNNING"
            "  WAITING\n"
            "default     unlimited              -       1           0 GPU           0 GPU        0"
            "        0\n"
            "research        8 GPU              -       1           8 GPU           0 GPU        0"
            "        0\n"
            "  team-a *      2 GPU  4 GPU, 32 CPU     2.5  2.5 GPU, 8 CPU  1.5 GPU, 4 CPU        1"
            "       12\n");
}

TEST(ProjectTable, KeepsProjectsWhoseParentIsMissingOrInACycle) {
  const std::string table = projects::project_table(
      {project("lost", "gone", 1), project("a", "b", 1), project("b", "a", 1)});

  for (const char* name : {"\nlost ", "\na ", "\n  b "}) {
    EXPECT_NE(table.find(name), std::string::npos) << table;
  }
}

TEST(ProjectPage, ShowsEachResourceAndThePools) {
  job::ProjectStatus team = project("team-a", "research", 2);
  team.project.pools["a100"].deserved.gpu_milli = 500;
  team.project.reclaim_min_runtime = std::chrono::minutes(5);
  team.allocated.memory_bytes = 1LL << 30;

  EXPECT_EQ(projects::project_page(team),
            "NAME              team-a\n"
            "PARENT            research\n"
            "PRIORITY          100\n"
            "WEIGHT            1\n"
            "SAFE FROM OTHERS  5m\n"
            "JOBS              0 running, 0 waiting\n"
            "\n"
            "RESOURCES\n"
            "              QUOTA  LIMIT  FAIR SHARE  USED  NOT PREEMPTIBLE  ASKED FOR\n"
            "  GPUs            2      -           2     0                0          0\n"
            "  CPUs    unlimited      -   unlimited     0                0          0\n"
            "  memory  unlimited      -   unlimited   1Gi                0          0\n"
            "\n"
            "NODE POOLS\n"
            "  NAME    QUOTA  LIMIT  WEIGHT\n"
            "  a100  0.5 GPU      -       1\n");
}

TEST(NodeTable, ShowsUsedAndTotalAmounts) {
  const job::Node plain{.name = "cpu-1", .pool = "cpus", .state = "cordoned"};

  EXPECT_EQ(cluster::node_table({plain, gpu_node("gpu-1")}),
            "NAME   STATE     POOL     GPUS        CPUS    MEMORY  JOBS\n"
            "cpu-1  cordoned  cpus     -            0/0       0/0     0\n"
            "gpu-1  ready     default  1.5/2 A100  4/16  1Gi/64Gi     3\n");
}

TEST(NodePage, ShowsTheJobOfEachGpu) {
  EXPECT_EQ(cluster::node_page(gpu_node("gpu-1")),
            "NAME      gpu-1\n"
            "STATE     ready\n"
            "POOL      default\n"
            "GPUS      1.5/2 A100\n"
            "CPUS      4/16\n"
            "MEMORY    1Gi/64Gi\n"
            "TOPOLOGY  rack=r1\n"
            "JOBS      a, b, dist\n"
            "\n"
            "DEVICES\n"
            "  GPU  MODEL  MEMORY  FREE  JOBS\n"
            "    0  A100     80Gi     0  dist\n"
            "    1  A100     80Gi   0.5  a, b\n");
}

TEST(QueueTable, NumbersWaitingJobsButNotSuspendedJobs) {
  job::Job second = waiting_job("second");
  second.may_start = kNow + seconds(300);
  second.spec.scheduling.priority = 75;
  job::Job held = waiting_job("held");
  held.suspended = true;
  held.reason = job::Remark{"suspended; muster resume held"};

  EXPECT_EQ(
      jobs::queue_table({waiting_job("first"), second, held}, kNow),
      "POS  JOB     PROJECT  PRIORITY  NEEDS      WAITING  MAY START  REASON\n"
      "  1  first   team-a         50  2 x 1 GPU    1m30s  -          needs 2 GPUs; 1 is free\n"
      "  2  second  team-a         75  2 x 1 GPU    1m30s  in 5m      needs 2 GPUs; 1 is free\n"
      "  -  held    team-a         50  2 x 1 GPU    1m30s  -          suspended; muster resume "
      "held\n");
}

TEST(Explanation, BeginsWithTheReasonAndEndsWithTheEvents) {
  job::Explanation why{.name = "dist",
                       .constraint = "room",
                       .reason = {job::Remark{"needs 2 GPUs; 1 is free"},
                                  {job::Remark{"node gpu-1: GPU 0 is held by a"}}},
                       .may_start = kNow + seconds(60),
                       .position = 2,
                       .events = {{kNow, job::Remark{"queued"}}}};

  EXPECT_EQ(jobs::explanation_page(why, kNow),
            "Queued: needs 2 GPUs; 1 is free\n"
            "  node gpu-1: GPU 0 is held by a\n"
            "\n"
            "POSITION   2\n"
            "MAY START  2023-11-14T22:14:20Z (in 1m)\n"
            "\n"
            "EVENTS\n"
            "  2023-11-14T22:13:20.000Z  queued\n");
  EXPECT_EQ(jobs::explanation_page({.name = "dist", .phase = job::Phase::kRunning}, kNow),
            "Running\n");
}

TEST(Forecast, ShowsPlacesEvictionsAndTheEffectOnTheProject) {
  job::JobSpec spec;
  spec.name = "dist";
  spec.project = "team-a";
  job::Forecast forecast{
      .starts_now = true,
      .placing = {{.task = "launcher", .node = "gpu-1"},
                  {.task = "worker-0", .node = "gpu-1", .devices = {0, 1}, .gpu_share_milli = 1000},
                  {.task = "worker-1", .node = "gpu-2", .devices = {3}, .gpu_share_milli = 250}},
      .evictions = {{.job = {"id-o", "other", "team-b"}, .why = job::NodeDrained{"n7"}}},
      .before = project("team-a", "", 2),
      .after = project("team-a", "", 2)};
  forecast.before.allocated.cpu_milli = 20'000;
  forecast.after.allocated = {.gpu_milli = 2250, .cpu_milli = 4000};
  forecast.after.requested = {.gpu_milli = 2250, .cpu_milli = 4000};

  EXPECT_EQ(jobs::forecast_page(spec, forecast, kNow),
            "would start now\n"
            "\n"
            "PLACES\n"
            "  TASK      NODE   GPUS\n"
            "  launcher  gpu-1\n"
            "  worker-0  gpu-1  GPU 0, 1\n"
            "  worker-1  gpu-2  GPU 3 (0.25 of it)\n"
            "\n"
            "EVICTIONS\n"
            "  'other' was evicted: node n7 is being drained\n"
            "\n"
            "PROJECT team-a\n"
            "                          BEFORE            AFTER\n"
            "  quota                    2 GPU            2 GPU\n"
            "  fair share               2 GPU            2 GPU\n"
            "  used             0 GPU, 20 CPU  2.25 GPU, 4 CPU\n"
            "  not preemptible   0 GPU, 0 CPU     0 GPU, 0 CPU\n"
            "  asked for         0 GPU, 0 CPU  2.25 GPU, 4 CPU\n");
}

TEST(Forecast, OfAWaitingJobShowsTheReasonAndTheTime) {
  job::JobSpec spec;
  spec.name = "dist";
  const job::Forecast forecast{
      .reason = {job::Remark{"needs 2 GPUs; 1 is free"}, {job::Remark{"a holds GPU 0 of gpu-1"}}},
      .may_start = kNow + seconds(60)};

  EXPECT_TRUE(jobs::forecast_page(spec, forecast, kNow)
                  .starts_with("would wait: needs 2 GPUs; 1 is free\n"
                               "  a holds GPU 0 of gpu-1\n"
                               "\n"
                               "MAY START  2023-11-14T22:14:20Z (in 1m)\n"
                               "\n"
                               "PROJECT default\n"))
      << jobs::forecast_page(spec, forecast, kNow);
}

TEST(Events, OfAllJobsAreMergedByTime) {
  job::Job first = waiting_job("first");
  first.events = {{kNow, job::Remark{"submitted"}}, {kNow + seconds(2), job::Remark{"started"}}};
  job::Job second = waiting_job("second");
  second.events = {{kNow + seconds(1), job::Remark{"sub\nmitted"}}};

  const auto events = jobs::merged_events({first, second});

  EXPECT_EQ(jobs::event_table(events),
            "TIME                      JOB     EVENT\n"
            "2023-11-14T22:13:20.000Z  first   submitted\n"
            "2023-11-14T22:13:21.000Z  second  sub mitted\n"
            "2023-11-14T22:13:22.000Z  first   started\n");
  EXPECT_EQ(jobs::event_line(events.front()), "2023-11-14T22:13:20.000Z  first  submitted\n");
  EXPECT_EQ(jobs::events_json({events.front()}),
            "{\"events\":[{\"time\":\"2023-11-14T22:13:20.000000000Z\",\"job\":\"first\","
            "\"text\":\"submitted\",\"fact\":{\"kind\":\"remark\",\"text\":\"submitted\"}}]}");
}

cluster::ClusterView small_cluster() {
  cluster::ClusterView view{.nodes = {gpu_node("gpu-1")},
                            .projects = {project("team-a", "", 2)},
                            .jobs = {running_job("dist"), waiting_job("next")},
                            .queue = {waiting_job("next")},
                            .now = kNow};
  return view;
}

TEST(Top, ShowsNodesProjectsAndJobsWithTheirReasons) {
  EXPECT_EQ(cluster::top_picture(small_cluster(), {}),
            "muster  2023-11-14T22:13:20Z   GPUs 1.5/2   running 1   waiting 1\n"
            "\n"
            "NAME   STATE  POOL     GPUS        CPUS    MEMORY  JOBS\n"
            "gpu-1  ready  default  1.5/2 A100  4/16  1Gi/64Gi     3\n"
            "\n"
            "NAME    QUOTA  LIMIT  WEIGHT  FAIR SHARE   USED  RUNNING  WAITING\n"
            "team-a  2 GPU      -       1       2 GPU  0 GPU        0        0\n"
            "\n"
            "JOB   PROJECT  PHASE    NEEDS        FOR  WHERE OR WHY NOT\n"
            "dist  team-a   Running  2 x 1 GPU     1m  gpu-1\n"
            "next  team-a   Queued   2 x 1 GPU  1m30s  needs 2 GPUs; 1 is free\n");
}

TEST(Top, AlwaysFitsTheScreen) {
  cluster::ClusterView view = small_cluster();
  for (int i = 0; i < 100; ++i) {
    view.queue.push_back(waiting_job("job-" + std::to_string(i)));
    view.nodes.push_back(gpu_node("gpu-" + std::to_string(i)));
  }
  for (const ScreenSize size : {ScreenSize{80, 24}, ScreenSize{20, 10}, ScreenSize{200, 60},
                                ScreenSize{1, 1}, ScreenSize{40, 3}}) {
    const std::string picture = cluster::top_picture(view, size);
    size_t rows = 0;
    for (size_t begin = 0; begin < picture.size();) {
      const size_t end = picture.find('\n', begin);
      EXPECT_LE(end - begin, size.columns);
      begin = end + 1;
      ++rows;
    }
    EXPECT_LE(rows, size.rows);
  }
  const std::string picture = cluster::top_picture(view, {80, 24});
  EXPECT_NE(picture.find("\n... and 9"), std::string::npos) << picture;
  EXPECT_NE(picture.find("\nteam-a "), std::string::npos) << "a small part loses nothing";
}

TEST(Top, EscapesControlCharactersAndCutsBetweenCharacters) {
  cluster::ClusterView view = small_cluster();
  view.queue.front().reason = job::Remark{"\x1b[2J\xc2\x9b\xc3\xa9"};

  const std::string picture = cluster::top_picture(view, {});

  EXPECT_EQ(picture.find('\x1b'), std::string::npos);
  EXPECT_EQ(picture.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(cut_to("\xc3\xa9t\xc3\xa9", 1), "\xc3\xa9");
  EXPECT_EQ(cut_to("abc", 5), "abc");
}

TEST(Redraw, OverwritesLineByLineAndNeverScrolls) {
  EXPECT_EQ(redraw("one\ntwo\n", 24), "\x1b[H\x1b[Kone\r\n\x1b[Ktwo\r\n\x1b[J");
  EXPECT_EQ(redraw("one\ntwo\n", 2), "\x1b[H\x1b[Kone\r\n\x1b[Ktwo");
  EXPECT_EQ(redraw("one\ntwo\n", 1), "\x1b[H\x1b[Kone");
}

}  // namespace

}  // namespace muster::cli
