// What an earlier server left on a host is listed before anything is created there: an object that
// a start creates during the listing would be removed as a leftover.
#include "engine/container/leftovers.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/test_folder.h"
#include "engine/container/container_engine.h"
#include "engine/container/scripted_daemon.h"
#include "engine/container/task_table.h"

namespace muster::engine {
namespace {

using base::Result;

class LeftoversTest : public testing::Test {
 protected:
  LeftoversTest() {
    for (const char* program : {"muster-shim", "muster-helper", "muster-rsh"}) {
      EXPECT_TRUE(base::write_file(folder_ / program, ""));
    }
  }

  std::string socket_of(const std::string& host) const { return (folder_ / host).string(); }

  /// An engine without any objects.
  std::unique_ptr<ScriptedDaemon> daemon(const std::string& host) {
    auto daemon = std::make_unique<ScriptedDaemon>(loop_, socket_of(host));
    daemon->answer("GET /containers/json", "[]");
    daemon->answer("GET /networks", "[]");
    daemon->answer("GET /volumes", R"({"Volumes":[]})");
    daemon->refuse("POST /networks/create", 500, "no more networks");
    return daemon;
  }

  std::unique_ptr<ContainerEngine> open(const std::vector<std::string>& hosts) {
    ContainerEngineOptions options;
    options.folder = folder_ / "jobs";
    options.programs = folder_.path();
    options.owner = "me";
    for (const std::string& host : hosts) {
      options.hosts.push_back(
          {.name = host, .endpoint = UnixEndpoint{socket_of(host)}, .address = {}});
    }
    auto engine = ContainerEngine::open(loop_, std::move(options));
    EXPECT_TRUE(engine) << engine.error().to_string();
    if (!engine) return nullptr;
    (*engine)->listen([](const TaskReport&) {});
    return *std::move(engine);
  }

  /// What an earlier server has stored about the running task "main" of a job.
  void leave_task(const std::string& job_id, const ContainerRecord& record, int attempt = 1) const {
    const TaskFolder left{folder_ / "jobs" / job_id / std::to_string(attempt) / "main"};
    std::filesystem::create_directories(left.path);
    EXPECT_TRUE(base::write_file(left.complete(), ""));
    EXPECT_TRUE(base::write_file(left.running(), ""));
    EXPECT_TRUE(base::write_file(container_record_in(left), encode(record)));
  }

  static std::string listed(const std::string& id, const std::string& job_id,
                            const std::string& more_labels = "", int attempt = 1) {
    return R"({"Id":")" + id + R"(","State":"running","Labels":{"org.muster.owner":"me",)" +
           R"("org.muster.attempt":")" + std::to_string(attempt) + R"(",)" +
           R"("org.muster.task":"main","org.muster.job":")" + job_id + "\"" + more_labels + "}}";
  }
  static std::string running(const std::string& id) {
    return R"({"Id":")" + id +
           R"(","Name":"/x","State":{"Status":"running"},"Config":{"Labels":{}}})";
  }

  base::TestFolder folder_;
  base::EventLoop loop_;
};

TEST_F(LeftoversTest, AHostIsListedOnceWhenTheEngineOpens) {
  const auto host = daemon("a");

  const auto engine = open({"a"});

  ASSERT_TRUE(engine);
  for (const char* list : {"GET /containers/json", "GET /networks", "GET /volumes"}) {
    EXPECT_EQ(host->count(list), 1) << list;
  }
}

TEST_F(LeftoversTest, ATaskOfAJobWithoutARecordIsFoundAndKept) {
  const std::string job = "3k2x5m9q7w1z";
  const auto host = daemon("a");
  // The last one has no record of a container: its job was deleted.
  host->answer("GET /containers/json", "[" + listed("c1", job) + "," +
                                           listed("c2", job, R"(,"org.muster.look":"x")") + "," +
                                           listed("c3", "aaaaaaaaaaaa") + "]");
  host->answer("GET /containers/c1/json", running("c1"));
  leave_task(job, {.host = "a",
                   .container = "c1",
                   .devices = {2, 3},
                   .gpu_share_milli = 1000,
                   .job_name = "train",
                   .project = "lab"});
  const auto engine = open({"a"});
  ASSERT_TRUE(engine);

  EXPECT_EQ(engine->jobs_with_tasks(), (std::vector<std::string>{job, "aaaaaaaaaaaa"}));
  EXPECT_EQ(engine->unknown_jobs([](const std::string&) { return false; }),
            std::vector<std::string>{job});
  EXPECT_EQ(engine->unknown_jobs([](const std::string&) { return true; }),
            std::vector<std::string>());
  const auto tasks = engine->running_tasks(job);
  ASSERT_TRUE(tasks);
  ASSERT_EQ(tasks->size(), 1U);
  EXPECT_EQ(tasks->front().gang, (GangId{job, 1}));
  EXPECT_EQ(tasks->front().task, "main");
  EXPECT_EQ(tasks->front().node, "a");
  EXPECT_EQ(tasks->front().devices, (std::vector<int>{2, 3}));
  EXPECT_EQ(tasks->front().gpu_share_milli, 1000);
  EXPECT_EQ(tasks->front().job_name, "train");
  EXPECT_EQ(tasks->front().project, "lab");
  EXPECT_EQ(engine->running_tasks("../jobs")->size(), 0U);
  ASSERT_EQ(engine->adopt({job, 1}, "main"), AdoptionResult::kRunning);

  ASSERT_TRUE(run_until(loop_, [&] { return host->count("DELETE /containers/c3") > 0; }));
  EXPECT_EQ(host->count("DELETE /containers/c1"), 0);
  EXPECT_EQ(host->count("DELETE /containers/c2"), 1)
      << "an earlier server inspected an image in it";
}

TEST_F(LeftoversTest, ATaskOfAnEarlierAttemptIsRemoved) {
  const std::string job = "3k2x5m9q7w1z";
  const auto host = daemon("a");
  host->answer("GET /containers/json",
               "[" + listed("c9", job, "", 9) + "," + listed("c10", job, "", 10) + "]");
  for (const char* id : {"c9", "c10"}) {
    host->answer(std::string("GET /containers/") + id + "/json", running(id));
  }
  leave_task(job, {.host = "a", .container = "c9"}, 9);
  leave_task(job, {.host = "a", .container = "c10"}, 10);
  const auto engine = open({"a"});
  ASSERT_TRUE(engine);

  const auto tasks = engine->running_tasks(job);

  ASSERT_TRUE(tasks);
  ASSERT_EQ(tasks->size(), 1U);
  EXPECT_EQ(tasks->front().gang, (GangId{job, 10}));
  ASSERT_EQ(engine->adopt({job, 10}, "main"), AdoptionResult::kRunning);
  ASSERT_TRUE(run_until(loop_, [&] { return host->count("DELETE /containers/c9") > 0; }));
  EXPECT_EQ(host->count("DELETE /containers/c10"), 0);
}

TEST_F(LeftoversTest, ATaskOfAJobWithoutARecordIsKeptOnAHostThatAnswersLate) {
  const std::string job = "3k2x5m9q7w1z";
  const auto first = daemon("a");
  leave_task(job, {.host = "b", .container = "c1"});
  const auto engine = open({"a", "b"});
  ASSERT_TRUE(engine);
  const auto tasks = engine->running_tasks(job);
  ASSERT_TRUE(tasks);
  ASSERT_EQ(tasks->size(), 1U);
  ASSERT_EQ(engine->adopt({job, 1}, "main"), AdoptionResult::kRunning);

  const auto late = daemon("b");
  late->answer("GET /containers/json", "[" + listed("c1", job) + "," +
                                           listed("c2", job, R"(,"org.muster.look":"x")") + "," +
                                           listed("c3", "aaaaaaaaaaaa") + "]");
  late->answer("GET /containers/c1/json", running("c1"));

  ASSERT_TRUE(run_until(loop_, [&] { return late->count("DELETE /containers/c3") > 0; }));
  EXPECT_EQ(late->count("DELETE /containers/c1"), 0);
  EXPECT_EQ(late->count("DELETE /containers/c2"), 0) << "an image may be being inspected in it";
}

TEST_F(LeftoversTest, AStartOnAHostThatAnswersLateWaitsForItsLists) {
  const auto first = daemon("a");
  const auto engine = open({"a", "b"});
  ASSERT_TRUE(engine);
  const auto late = daemon("b");
  late->on_asked = [&](const std::string& what) {
    if (what == "GET /volumes") late->hang();
  };
  ASSERT_TRUE(run_until(loop_, [&] { return late->count("GET /volumes") == 1; }));

  launch::TaskPlan plan;
  plan.task = plan.hostname = "main";
  plan.node = "b";
  plan.reach = launch::Reach::kNames;
  plan.argv = {"true"};
  plan.image = "image";
  std::optional<Result<void>> started;
  engine->start({"job1", 1}, {plan}, [&](const Result<void>& result) { started = result; });

  // A request that is sent now arrives after those of the start.
  DockerClient client(loop_, UnixEndpoint{socket_of("b")});
  const int pings = late->count("GET /_ping");
  client.info([](const Result<DockerInfo>&) {});
  ASSERT_TRUE(run_until(loop_, [&] { return late->count("GET /_ping") > pings; }));
  EXPECT_EQ(late->count("POST /networks/create"), 0);

  late->on_asked = nullptr;
  late->go_on();
  ASSERT_TRUE(run_until(loop_, [&] { return started.has_value(); }));
  EXPECT_EQ(late->count("POST /networks/create"), 1);
  ASSERT_FALSE(*started);
  EXPECT_NE(started->error().what.find("no more networks"), std::string::npos)
      << started->error().to_string();
}

}  // namespace
}  // namespace muster::engine
