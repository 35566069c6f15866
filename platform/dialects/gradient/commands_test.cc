// The output of whole commands, byte for byte, and their exit codes.
#include "dialects/gradient/commands.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "base/files.h"
#include "dialects/gradient/gradient_fixture.h"
#include "job/obstacle.h"

namespace muster::dialects::gradient {

namespace {

using cli::Words;

using job::Phase;

job::Job with_tag(job::Job job, const std::string& tag) {
  job.spec.labels[tag] = "";
  return job;
}

job::Job held(job::Job job) {
  job.spec.held = job.suspended = true;
  return job;
}

constexpr const char* kNotFound = "Failed to fetch data: Experiment not found\nObject not found\n";

TEST_F(GradientCli, ListsExperimentsNewestFirst) {
  serve({.jobs = {held(job_at(1, "a", Phase::kQueued)), job_at(3, "c", Phase::kRunning),
                  job_at(2, "b", Phase::kSucceeded)}});

  const cli::Outcome outcome = gradient({"experiments", "list"});

  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out,
            "+------+----+---------+\n"
            "| Name | ID | Status  |\n"
            "+------+----+---------+\n"
            "| c    | ec | running |\n"
            "| b    | eb | stopped |\n"
            "| a    | ea | created |\n"
            "+------+----+---------+\n");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(count_of("GET /v1/jobs"), 1);
}

TEST_F(GradientCli, ListsAPageAndPrintsHowToListTheRest) {
  serve({.jobs = {job_at(1, "a", Phase::kRunning), job_at(2, "b", Phase::kRunning),
                  job_at(3, "c", Phase::kRunning), job_at(4, "d", Phase::kRunning)}});

  const cli::Outcome first = gradient({"experiments", "list", "-l", "2", "-o", "1"});
  EXPECT_NE(first.out.find("| c    | ec |"), std::string::npos);
  EXPECT_NE(first.out.find("| b    | eb |"), std::string::npos);
  EXPECT_EQ(first.out.find("| d "), std::string::npos);
  EXPECT_EQ(first.out.find("| a "), std::string::npos);
  EXPECT_EQ(first.err, "there are more; list them with: --offset 3\n");

  const cli::Outcome last = gradient({"experiments", "list", "-l", "2", "-o", "3"});
  EXPECT_NE(last.out.find("| a    | ea |"), std::string::npos);
  EXPECT_EQ(last.err, "");

  EXPECT_EQ(gradient({"experiments", "list", "-o", "4"}).out, "No data found\n");
}

TEST_F(GradientCli, ListsExperimentsByProjectsAndTags) {
  job::Job other = with_tag(job_at(2, "b", Phase::kRunning), "nightly");
  other.spec.project = "vision";
  serve({.jobs = {with_tag(job_at(1, "a", Phase::kRunning), "nightly"), other,
                  job_at(3, "c", Phase::kRunning)}});
  gradient({"projects", "create", "--name", "vision"});

  const std::string all = gradient({"experiments", "list", "-p", "default", "-p", "vision"}).out;
  EXPECT_LT(all.find("| c "), all.find("| b "));
  EXPECT_LT(all.find("| b "), all.find("| a "));

  const std::string some = gradient({"experiments", "list", "-p", "vision"}).out;
  EXPECT_EQ(some.find("| a "), std::string::npos);
  EXPECT_NE(some.find("| b "), std::string::npos);

  const std::string tagged = gradient({"experiments", "list", "--tag", "nightly"}).out;
  EXPECT_EQ(tagged.find("| c "), std::string::npos);
  EXPECT_NE(tagged.find("| a "), std::string::npos);
  EXPECT_EQ(gradient({"experiments", "list", "--tag", "none"}).out, "No data found\n");
}

TEST_F(GradientCli, ReadsALongListInPages) {
  std::vector<job::Job> jobs;
  for (int i = 0; i < 45; ++i) {
    jobs.push_back(job_at(i, "job-" + std::to_string(i), Phase::kRunning));
  }
  serve({.jobs = jobs});

  const cli::Outcome outcome = gradient({"experiments", "list"});

  EXPECT_NE(outcome.out.find("| job-44 |"), std::string::npos);
  EXPECT_NE(outcome.out.find("| job-25 |"), std::string::npos);
  EXPECT_EQ(outcome.out.find("| job-24 |"), std::string::npos);
  EXPECT_EQ(outcome.err, "there are more; list them with: --offset 20\n");
  EXPECT_EQ(count_of("GET /v1/jobs"), 1);
}

TEST_F(GradientCli, ReportsAllFaultsOfAListingAtOnce) {
  const cli::Outcome outcome = gradient({"experiments", "list", "--limit", "0", "--offset", "-3"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--limit: 0 is out of range; give 1 or more"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("--offset: -3 is out of range; give 0 or more"), std::string::npos);
}

TEST_F(GradientCli, ShowsOneExperimentByItsIdOrName) {
  serve({.jobs = {job_at(1, "a", Phase::kFailed)}});
  const cli::Outcome by_id = gradient({"experiments", "details", "--id", "ea"});
  EXPECT_EQ(by_id.code, 0);
  EXPECT_NE(by_id.out.find("| State               | failed"), std::string::npos) << by_id.out;
  EXPECT_EQ(gradient({"experiments", "details", "--id", "a"}).out, by_id.out);
}

TEST_F(GradientCli, ReportsAMissingExperimentInGradientsWords) {
  serve({});
  for (const Words& words : std::vector<Words>{{"experiments", "details", "--id", "x"},
                                               {"experiments", "logs", "--id", "x"},
                                               {"experiments", "logs", "--id", "x", "--follow"},
                                               {"experiments", "metrics", "get", "--id", "x"}}) {
    const cli::Outcome outcome = gradient(words);
    EXPECT_EQ(outcome.code, 3) << words[1];
    EXPECT_EQ(outcome.err, kNotFound) << words[1];
    EXPECT_EQ(outcome.out, "") << words[1];
  }
  EXPECT_EQ(gradient({"experiments", "start", "--id", "x"}).err,
            "Failed to update resource: Experiment not found\nObject not found\n");
  EXPECT_EQ(gradient({"experiments", "delete", "--id", "x"}).err,
            "Failed to delete resource: Experiment not found\nObject not found\n");
  EXPECT_EQ(gradient({"projects", "details", "--id", "x"}).err,
            "Failed to fetch data: Project not found\nObject not found\n");
}

TEST_F(GradientCli, ReportsAWrongKeyInGradientsWords) {
  serve({.tls = true, .jobs = {job_at(1, "a", Phase::kRunning)}});
  ::setenv("MUSTER_SERVER", server_->url().c_str(), 1);
  ::setenv("MUSTER_FINGERPRINT", server_->fingerprint().c_str(), 1);

  const cli::Outcome refused = gradient({"experiments", "list", "--apiKey", "mst_wrong"});
  EXPECT_EQ(refused.code, 4);
  EXPECT_EQ(refused.err, "Failed to fetch data: Incorrect API Key provided\nForbidden\n");
  EXPECT_EQ(refused.out, "");

  const cli::Outcome taken = gradient({"experiments", "list", "--apiKey", server_->first_token()});
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_NE(taken.out.find("| ea |"), std::string::npos);
}

TEST_F(GradientCli, StartsAndStops) {
  serve({.jobs = {held(job_at(1, "a", Phase::kQueued))}});

  const cli::Outcome started = gradient({"experiments", "start", "--id", "ea"});
  EXPECT_EQ(started.code, 0);
  EXPECT_EQ(started.out, "Experiment started\n");
  // Starting again is not an error.
  EXPECT_EQ(gradient({"experiments", "start", "--id", "a"}).out, "Experiment started\n");

  EXPECT_EQ(gradient({"experiments", "stop", "--id", "a"}).out, "Experiment stopped\n");
  EXPECT_EQ(gradient({"experiments", "stop", "--id", "a"}).out, "Experiment stopped\n");

  const cli::Outcome ended = gradient({"experiments", "start", "--id", "a"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.err,
            "gradient: experiment ea has ended: canceled\n  create it again to run it again\n");
}

TEST_F(GradientCli, StartsAndFollows) {
  serve({.records = {{.task = "main", .text = "epoch 1"}},
         .jobs = {held(job_at(1, "a", Phase::kQueued))}});
  EXPECT_EQ(gradient({"experiments", "start", "--id", "a", "--logs"}).out,
            "Experiment started\nAwaiting logs...\nea\t1\tepoch 1\n");
}

TEST_F(GradientCli, DeletesEndedAndRunningExperiments) {
  serve({.jobs = {job_at(1, "a", Phase::kFailed), job_at(2, "b", Phase::kRunning),
                  held(job_at(3, "c", Phase::kQueued))}});
  for (const char* id : {"ea", "b", "ec"}) {
    const cli::Outcome outcome = gradient({"experiments", "delete", "--id", id});
    EXPECT_EQ(outcome.out, "Experiment deleted\n") << id;
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(gradient({"experiments", "delete", "--id", id}).code, 3) << id;
  }
  EXPECT_EQ(gradient({"experiments", "list"}).out, "No data found\n");
}

TEST_F(GradientCli, DeleteGivesTheTasksTimeToEnd) {
  serve({.jobs = {job_at(1, "b", Phase::kRunning)}});
  EXPECT_EQ(gradient({"experiments", "delete", "--id", "b"}).code, 0);
  EXPECT_EQ(count_of("POST /v1/jobs/eb/stop"), 1);
  EXPECT_EQ(count_of("POST /v1/jobs/eb/stop now"), 0);
}

TEST_F(GradientCli, DeleteWaitsForTheEndOfTheJobAndNotOfItsLogs) {
  serve({.runs_on = true, .jobs = {job_at(1, "b", Phase::kRunning)}, .settles_when_watched = true});
  EXPECT_EQ(gradient({"experiments", "delete", "--id", "b"}).code, 0);
  EXPECT_EQ(count_of("GET /v1/jobs/eb/logs"), 0);
  EXPECT_EQ(count_of("DELETE /v1/jobs/eb"), 1);
}

TEST_F(GradientCli, DeleteSucceedsIfAnotherClientDeletesTheExperimentAtTheSameTime) {
  for (const char* moment : {"POST /v1/jobs/eb/stop", "GET /v1/watch/jobs", "DELETE /v1/jobs/eb"}) {
    serve({.runs_on = true,
           .jobs = {job_at(1, "b", Phase::kRunning)},
           .vanishes_at = moment,
           .settles_when_watched = true});
    const cli::Outcome outcome = gradient({"experiments", "delete", "--id", "b"});
    EXPECT_EQ(outcome.code, 0) << moment << outcome.err;
    EXPECT_EQ(outcome.out, "Experiment deleted\n") << moment;
    server_.reset();
  }
}

TEST_F(GradientCli, AddsAndRemovesTags) {
  serve({.jobs = {with_tag(job_at(1, "a", Phase::kRunning), "old")}});

  EXPECT_EQ(gradient({"experiments", "tags", "add", "--id", "a", "--tag", "x", "--tag", "y",
                      "--tags", "z, x,,"})
                .out,
            "Tags added to experiment\n");
  EXPECT_NE(gradient({"experiments", "details", "--id", "a"}).out.find("| old, x, y, z "),
            std::string::npos);
  EXPECT_EQ(gradient({"experiments", "tags", "remove", "--id", "a", "--tags", "x,old"}).out,
            "Tags removed from experiment\n");
  EXPECT_NE(gradient({"experiments", "details", "--id", "a"}).out.find("| y, z "),
            std::string::npos);
}

TEST_F(GradientCli, RequiresTagsToAddOrRemove) {
  const cli::Outcome none = gradient({"experiments", "tags", "add", "--id", "a"});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.err, "No tags provided\n");
  EXPECT_EQ(gradient({"experiments", "tags", "remove", "--id", "a", "--tags", " ,"}).code, 2);

  const cli::Outcome both = gradient({"experiments", "tags", "add"});
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("--id: is missing; name the experiment"), std::string::npos);
  EXPECT_NE(both.err.find("No tags provided"), std::string::npos);
}

TEST_F(GradientCli, ShowsLogsAsATable) {
  serve({.records = {{.task = "main", .text = "epoch 1"}, {.task = "main", .text = "epoch 2"}},
         .jobs = {job_at(1, "a", Phase::kSucceeded)}});

  EXPECT_EQ(gradient({"experiments", "logs", "--id", "a"}).out,
            "+Experiment ea logs-------+\n"
            "| JOB ID | LINE | MESSAGE |\n"
            "+--------+------+---------+\n"
            "| ea     | 1    | epoch 1 |\n"
            "| ea     | 2    | epoch 2 |\n"
            "+--------+------+---------+\n");
  const std::string second =
      "+Experiment ea logs-------+\n"
      "| JOB ID | LINE | MESSAGE |\n"
      "+--------+------+---------+\n"
      "| ea     | 2    | epoch 2 |\n"
      "+--------+------+---------+\n";
  EXPECT_EQ(gradient({"experiments", "logs", "--id", "a", "--line", "2"}).out, second);
  EXPECT_EQ(gradient({"experiments", "logs", "--experimentId", "a", "--line", "2"}).out, second);
  EXPECT_EQ(gradient({"experiments", "logs", "--id", "a", "--line", "3"}).out, "No logs found\n");
  EXPECT_EQ(gradient({"experiments", "logs", "--id", "a", "--limit", "1"}).out.find("epoch 2"),
            std::string::npos);
}

TEST_F(GradientCli, NamesTheTaskOfALineIfThereAreSeveral) {
  job::Job job = job_at(1, "a", Phase::kSucceeded);
  job.spec.kind = job::Kind::kMpi;
  job.spec.workers = 1;
  job.tasks = job::tasks_of(job.spec);
  serve({.records = {{.task = "launcher", .host = "a-worker-0", .rank = 1, .text = "epoch 1"},
                     {.task = "worker-0", .text = "ready"}},
         .jobs = {job}});

  const std::string out = gradient({"experiments", "logs", "--id", "a"}).out;

  EXPECT_NE(out.find("| ea     | 1    | [1@a-worker-0] epoch 1 |"), std::string::npos) << out;
  EXPECT_NE(out.find("| ea     | 2    | [worker-0] ready       |"), std::string::npos) << out;
}

TEST_F(GradientCli, FollowsLogs) {
  serve({.records = {{.task = "main", .text = "epoch 1"}, {.task = "main", .text = "epoch 2"}},
         .jobs = {job_at(1, "a", Phase::kSucceeded)}});
  const std::string lines = "Awaiting logs...\nea\t1\tepoch 1\nea\t2\tepoch 2\n";

  EXPECT_EQ(gradient({"experiments", "logs", "--id", "a", "--follow", "true"}).out, lines);
  EXPECT_EQ(gradient({"experiments", "logs", "--id", "a", "--follow"}).out, lines);
  EXPECT_EQ(gradient({"experiments", "logs", "--id", "a", "--follow=true"}).out, lines);
  EXPECT_TRUE(gradient({"experiments", "logs", "--id", "a", "--follow", "False"})
                  .out.starts_with("+Experiment ea logs"));
}

TEST_F(GradientCli, AcceptsATruthValueOrNothingAfterFollow) {
  const cli::Outcome wrong = gradient({"experiments", "logs", "--id", "a", "--follow", "perhaps"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("'perhaps' is neither true nor false"), std::string::npos);
  EXPECT_NE(gradient({"experiments", "logs", "--id", "a", "true"}).err.find("unexpected 'true'"),
            std::string::npos);
}

TEST_F(GradientCli, ListsJobsAndShowsTheLogsOfOne) {
  serve({.records = {{.task = "main", .text = "epoch 1"}},
         .jobs = {job_at(1, "a", Phase::kSucceeded), job_at(2, "b", Phase::kRunning)}});

  const std::string all = gradient({"jobs", "list"}).out;
  EXPECT_LT(all.find("| eb/main | b main |"), all.find("| ea/main | a main |")) << all;
  const std::string one = gradient({"jobs", "list", "--experimentId", "a"}).out;
  EXPECT_NE(one.find("| ea/main | a main |"), std::string::npos) << one;
  EXPECT_EQ(one.find("eb/main"), std::string::npos);
  EXPECT_EQ(gradient({"jobs", "list", "--tag", "none"}).out, "No data found\n");

  EXPECT_EQ(gradient({"jobs", "logs", "--id", "ea/main"}).out,
            "+Job ea/main logs+\n"
            "| LINE | MESSAGE |\n"
            "+------+---------+\n"
            "| 1    | epoch 1 |\n"
            "+------+---------+\n");
  EXPECT_EQ(gradient({"jobs", "logs", "--id", "ea/main", "--follow"}).out,
            "Awaiting logs...\nea\t1\tepoch 1\n");
  EXPECT_EQ(gradient({"jobs", "logs", "--id", "x/main"}).err,
            "Failed to fetch data: Job not found\nObject not found\n");
}

std::vector<job::MetricSeries> measured() {
  const base::Time time{std::chrono::seconds(1'700'000'010)};
  return {{"cpu_percent", "main", {}, {{time, 93}}}, {"loss", "main", {}, {{time, 0.5}}}};
}

TEST_F(GradientCli, PrintsMetricsByGradientsNames) {
  serve({.jobs = {job_at(1, "a", Phase::kRunning)}, .metrics = measured()});

  const cli::Outcome usual = gradient({"experiments", "metrics", "get", "--id", "a"});
  EXPECT_EQ(usual.code, 0) << usual.err;
  EXPECT_EQ(usual.out,
            "{\n"
            "  \"cpuPercentage\": {\n"
            "    \"mljob-ea-0-worker\": [\n"
            "      {\n"
            "        \"time_stamp\": 1700000010,\n"
            "        \"value\": \"93\"\n"
            "      }\n"
            "    ]\n"
            "  }\n"
            "}\n");
  const std::string own =
      gradient({"experiments", "metrics", "get", "--id", "a", "--metric", "loss"}).out;
  EXPECT_NE(own.find("\"value\": \"0.5\""), std::string::npos) << own;
  EXPECT_EQ(gradient({"experiments", "metrics", "list", "--id", "a"}).out, own);
  EXPECT_EQ(gradient({"experiments", "metrics", "get", "--id", "a", "--metric", "gpuTemp"}).out,
            "{}\n");
}

TEST_F(GradientCli, ReportsAnExperimentWithoutMetrics) {
  serve({.jobs = {held(job_at(2, "b", Phase::kQueued))}});
  for (const char* verb : {"get", "list", "stream"}) {
    const cli::Outcome early = gradient({"experiments", "metrics", verb, "--id", "b"});
    EXPECT_EQ(early.code, 4) << verb;
    EXPECT_EQ(early.err, "Experiment has not started yet\n") << verb;
    EXPECT_EQ(early.out, "") << verb;
  }
}

TEST_F(GradientCli, StreamsMetricsUntilTheExperimentEnds) {
  serve({.jobs = {job_at(1, "a", Phase::kSucceeded)}, .metrics = measured()});
  const cli::Outcome stream = gradient({"experiments", "metrics", "stream", "--id", "a"});
  EXPECT_EQ(stream.code, 0) << stream.err;
  EXPECT_EQ(stream.out,
            "+-------------------+---------------+-------------+\n"
            "| Pod               | cpuPercentage | memoryUsage |\n"
            "+-------------------+---------------+-------------+\n"
            "| mljob-ea-0-worker | 93            |             |\n"
            "+-------------------+---------------+-------------+\n");
}

TEST_F(GradientCli, AStreamOfMetricsEndsWhenItsOutputIsClosed) {
  serve({.jobs = {job_at(1, "a", Phase::kSucceeded)}, .metrics = measured()});
  const base::UniqueFd before(::dup(STDOUT_FILENO));
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  ::dup2(ends[1], STDOUT_FILENO);
  ::close(ends[1]);

  const int code = gradient::run({"experiments", "metrics", "stream", "--id", "a"},
                                 {.serve = {}, .version = "1"});

  ::dup2(before.get(), STDOUT_FILENO);
  EXPECT_EQ(code, 141);
}

TEST_F(GradientCli, ReportsFaultsOfMetricsFlags) {
  const cli::Outcome outcome = gradient({"experiments", "metrics", "get", "--start", "yesterday"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--id: is missing"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--start: 'yesterday' is not a time"), std::string::npos);
  EXPECT_NE(gradient({"experiments", "metrics", "stream", "--id", "a", "--metric", "gpuTmp"})
                .err.find("did you mean 'gpuTemp'?"),
            std::string::npos);
}

TEST_F(GradientCli, CreatesListsAndDeletesProjects) {
  serve({});
  const cli::Outcome made = gradient(
      {"projects", "create", "--name", "My Project", "--repositoryUrl", "https://x.org/y"});
  EXPECT_EQ(made.out, "Project created with ID: my-project\n") << made.err;
  EXPECT_EQ(made.err,
            "--repositoryUrl has no effect\n"
            "in other commands, name the project 'my-project', not 'My Project'\n");
  EXPECT_NE(gradient({"projects", "list"}).out.find("| my-project | my-project | None "),
            std::string::npos);
  EXPECT_NE(gradient({"projects", "details", "--id", "my-project"}).out.find("| my-project |"),
            std::string::npos);
  EXPECT_EQ(gradient({"projects", "delete", "--id", "my-project"}).out, "Project deleted\n");
  EXPECT_EQ(gradient({"projects", "delete", "--id", "my-project"}).err,
            "Failed to delete resource: Project not found\nObject not found\n");
  EXPECT_EQ(gradient({"projects", "create"}).code, 2);
  const cli::Outcome nameless = gradient({"projects", "create", "--name", "会計"});
  EXPECT_EQ(nameless.code, 2);
  EXPECT_NE(nameless.err.find("--name must contain a letter a-z or a digit"), std::string::npos)
      << nameless.err;
}

TEST_F(GradientCli, ListsClustersAndMachineTypes) {
  serve({});
  EXPECT_EQ(gradient({"clusters", "list"}).out,
            "+---------+---------+--------+\n"
            "| ID      | Name    | Type   |\n"
            "+---------+---------+--------+\n"
            "| default | default | muster |\n"
            "+---------+---------+--------+\n");
  EXPECT_EQ(gradient({"clusters", "list", "-o", "1"}).out, "No data found\n");
  const std::string types = gradient({"clusters", "machineTypes", "list"}).out;
  EXPECT_NE(types.find("| Kind | CPU Count | RAM [Bytes] | GPU Count | GPU Model"),
            std::string::npos);
  EXPECT_NE(types.find("| p2.xlarge "), std::string::npos);
}

TEST_F(GradientCli, StoresSecretsOfProjects) {
  serve({});
  type("sesame\n");
  const cli::Outcome set =
      gradient({"secrets", "set", "project", "--id", "default", "--name", "HUB"});
  EXPECT_EQ(set.out, "Set project secret 'HUB'\n") << set.err;
  EXPECT_EQ(set.err, "");

  const cli::Outcome seen =
      gradient({"secrets", "set", "project", "--name", "KEY", "--value", "xyzzy"});
  EXPECT_EQ(seen.out, "Set project secret 'KEY'\n");
  EXPECT_NE(seen.err.find("other users of this machine can see --value"), std::string::npos);

  EXPECT_EQ(gradient({"secrets", "list", "project", "--id", "default"}).out,
            "+------+\n| Name |\n+------+\n| HUB  |\n| KEY  |\n+------+\n");
  EXPECT_EQ(gradient({"secrets", "delete", "project", "--name", "HUB"}).out,
            "Deleted project secret 'HUB'\n");
  EXPECT_EQ(gradient({"secrets", "delete", "project", "--name", "HUB"}).code, 3);
}

TEST_F(GradientCli, RefusesSecretsOfOtherOwners) {
  for (const char* owner : {"team", "cluster"}) {
    const cli::Outcome outcome = gradient({"secrets", "list", owner});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, "gradient: " + std::string(owner) +
                               " cannot own secrets in Muster; projects can: gradient secrets list "
                               "project --id PROJECT\n"
                               "  see: gradient secrets list --help\n");
  }
  EXPECT_NE(gradient({"secrets", "list", "projct"}).err.find("did you mean 'project'?"),
            std::string::npos);
  EXPECT_NE(gradient({"secrets", "list"}).err.find("give the owner of the secrets"),
            std::string::npos);
}

TEST_F(GradientCli, StoresAKeyAndForgetsIt) {
  const std::filesystem::path file = folder_ / ".paperspace" / "config.json";

  EXPECT_EQ(gradient({"apiKey", "mst_first"}).code, 0);
  EXPECT_EQ(*base::read_file(file), "{\n  \"apiKey\": \"mst_first\"\n}\n");
  type("mst_second\nmore\n");
  EXPECT_EQ(gradient({"apiKey"}).code, 0);
  EXPECT_EQ(*base::read_file(file), "{\n  \"apiKey\": \"mst_second\"\n}\n");

  EXPECT_EQ(gradient({"logout"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(gradient({"logout"}).code, 0);
}

TEST_F(GradientCli, RefusesAnInvalidKey) {
  type("\n");
  const cli::Outcome empty = gradient({"apiKey"});
  EXPECT_EQ(empty.code, 2);
  EXPECT_EQ(empty.err, "API Key cannot be empty.\n");
  const cli::Outcome odd = gradient({"apiKey", "two words"});
  EXPECT_EQ(odd.code, 2);
  EXPECT_EQ(odd.err.find("two words"), std::string::npos) << odd.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / ".paperspace"));
}

TEST_F(GradientCli, PrintsItsVersionWithoutAServer) {
  EXPECT_EQ(gradient({"version"}).out, "1\n");
  EXPECT_EQ(gradient({"--version"}).out, "1\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "server.log"));
}

TEST_F(GradientCli, PrintsTheHelpOfACommandThatOnlyGroupsOthers) {
  const cli::Outcome outcome = gradient({"experiments", "tags"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("usage: gradient experiments tags COMMAND"), std::string::npos);
  EXPECT_EQ(outcome.out, "");

  const cli::Outcome misspelt = gradient({"experiments", "lst"});
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_NE(misspelt.err.find("unknown command 'lst'; did you mean 'list'?"), std::string::npos);

  const cli::Outcome unknown = gradient({"experiments", "nothing", "list"});
  EXPECT_TRUE(unknown.err.starts_with("gradient: unknown command 'nothing'; the commands are: "));
  EXPECT_TRUE(unknown.err.ends_with("  see: gradient experiments --help\n")) << unknown.err;
}

TEST(GradientWords, AdviceNamesGradientsCommands) {
  using Kind = job::Obstacle::Kind;
  const auto translated = [](Kind kind) {
    return for_gradient({.what = "what",
                         .advice = "muster does it",
                         .faults = {{.field = "secrets[0].name", .what = "there is no secret"}},
                         .detail = job::obstacle(kind)});
  };
  for (const Kind kind : {Kind::kSeveralProjects, Kind::kNoSecret, Kind::kUnendedJobs}) {
    const std::string text = translated(kind).to_string();
    EXPECT_EQ(text.find("muster"), std::string::npos) << text;
    EXPECT_NE(text.find("gradient "), std::string::npos) << text;
  }
  EXPECT_EQ(translated(Kind::kNoSecret).to_string(),
            "what\n  there is no secret\n  gradient secrets set project --name NAME adds one");

  job::Job job = job_at(0, "mpi", job::Phase::kFailed);
  job.spec.workers = 2;
  job.spec.slots_per_worker = 4;
  job.failure = {.task = "launcher",
                 .cause = job::RanksAstray{.fault = job::RanksAstray::Fault::kNoneInAWorker},
                 .advice = "--allow-launcher-only"};
  EXPECT_EQ(for_gradient(job).failure->advice,
            "start the program by mpirun in --masterCommand (mpirun -np 8 PROGRAM), or create a "
            "singlenode experiment");
}

TEST_F(GradientCli, ReportsThatACommandOfGradientIsNotAvailable) {
  EXPECT_EQ(gradient({"experiments", "hyperparameters", "list"}).err,
            "gradient: the command 'hyperparameters' is not available in Muster\n"
            "  see: gradient experiments --help\n");
  EXPECT_EQ(gradient({"notebooks", "list"}).err,
            "gradient: the command 'notebooks' is not available in Muster\n"
            "  see: gradient --help\n");
  EXPECT_EQ(gradient({"jobs", "artifacts", "destroy"}).err,
            "gradient: the command 'destroy' is not available in Muster\n"
            "  see: gradient jobs artifacts --help\n");
}

}  // namespace

}  // namespace muster::dialects::gradient
