// Hosts that are away when the engine opens, that vanish, and that are cut off while they work.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/test_folder.h"
#include "engine/container/container_engine.h"
#include "engine/container/scripted_daemon.h"
#include "engine/container/task_table.h"
#include "engine/shim/plan.h"
#include "workspace/small_archive.h"

namespace muster::engine {
namespace {

using base::ErrorCode;
using base::Result;
using std::chrono::milliseconds;

/// An answer that begins and never continues.
class SilentBody : public http::BodyStream {
 public:
  explicit SilentBody(bool& begun) : begun_(begun) {}
  void pull(Deliver) override { begun_ = true; }

 private:
  bool& begun_;
};

class HostOutages : public testing::Test {
 protected:
  HostOutages() {
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
    return daemon;
  }

  Result<std::unique_ptr<ContainerEngine>> try_to_open(
      const std::vector<std::string>& hosts,
      const std::function<void(ContainerEngineOptions&)>& change = {}) {
    ContainerEngineOptions options;
    options.folder = folder_ / "jobs";
    options.programs = folder_.path();
    options.owner = "me";
    for (const std::string& host : hosts) {
      options.hosts.push_back(
          {.name = host, .endpoint = UnixEndpoint{socket_of(host)}, .address = {}, .pool = "big"});
    }
    if (change) change(options);
    return ContainerEngine::open(loop_, std::move(options));
  }

  std::unique_ptr<ContainerEngine> open(
      const std::vector<std::string>& hosts,
      const std::function<void(ContainerEngineOptions&)>& change = {}) {
    auto engine = try_to_open(hosts, change);
    EXPECT_TRUE(engine) << engine.error().to_string();
    if (!engine) return nullptr;
    (*engine)->listen([this](const TaskReport& report) {
      if (const auto* end = std::get_if<TaskEnded>(&report.what)) {
        ends_.emplace_back(report.task, *end);
      }
    });
    return *std::move(engine);
  }

  /// What an earlier server has stored about a task of kGang.
  TaskFolder leave_task(const ContainerRecord& record, const std::string& task) const {
    const TaskFolder left{folder_ / "jobs" / kGang.job_id / "1" / task};
    std::filesystem::create_directories(left.path);
    EXPECT_TRUE(base::write_file(left.running(), ""));
    EXPECT_TRUE(base::write_file(left.complete(), ""));
    EXPECT_TRUE(base::write_file(container_record_in(left), encode(record)));
    return left;
  }

  /// Closes all connections of the engine instead of answering the current request.
  void cut(ScriptedDaemon& daemon) {
    daemon.hang();
    loop_.post([&daemon] {
      daemon.die();
      daemon.hang(false);
      daemon.start();
    });
  }

  static std::string labels_of(const std::string& task) {
    std::string labels =
        R"("org.muster.owner":"me","org.muster.job":"job1","org.muster.attempt":"1")";
    if (!task.empty()) labels += R"(,"org.muster.task":")" + task + "\"";
    return "{" + labels + "}";
  }
  static std::string listed(const std::string& id, const std::string& state,
                            const std::string& task) {
    return R"({"Id":")" + id + R"(","State":")" + state + R"(","Labels":)" + labels_of(task) + "}";
  }
  static http::Response with_body(std::string body) {
    http::Response response;
    response.body = std::move(body);
    return response;
  }

  static launch::TaskPlan plan_on(const std::string& host, launch::Reach reach) {
    launch::TaskPlan plan;
    plan.task = plan.hostname = "main";
    plan.node = host;
    plan.reach = reach;
    plan.argv = {"true"};
    plan.image = "image";
    return plan;
  }

  static inline const GangId kGang{"job1", 1};

  base::TestFolder folder_;
  base::EventLoop loop_;
  std::vector<std::pair<std::string, TaskEnded>> ends_;
};

// --- opening

TEST_F(HostOutages, AnEngineOpensWhileItsHostIsAway) {
  const auto engine = open({"a"});
  ASSERT_TRUE(engine);

  ASSERT_EQ(engine->nodes().size(), 1U);
  const Node away = engine->nodes().front();
  EXPECT_TRUE(is_silent(away));
  EXPECT_EQ(away.name, "a");
  EXPECT_EQ(away.pool, "big");
  EXPECT_EQ(away.cpu_milli, 0);
  EXPECT_EQ(away.task_slots, 0);
  EXPECT_NE(away.labels.at(kFault).find(socket_of("a")), std::string::npos);

  const auto host = daemon("a");
  ASSERT_TRUE(run_until(loop_, [&] { return !is_silent(engine->nodes().front()); }));
  EXPECT_EQ(engine->nodes().front().cpu_milli, 8000);
  ASSERT_TRUE(run_until(loop_, [&] { return host->count("GET /volumes") == 1; }));
}

TEST_F(HostOutages, AnEngineOpensWhileItsHostHangs) {
  const auto host = daemon("a");
  host->hang();
  const auto engine =
      open({"a"}, [](auto& options) { options.patience.meeting = milliseconds(50); });
  ASSERT_TRUE(engine);

  ASSERT_EQ(engine->nodes().size(), 1U);
  EXPECT_TRUE(is_silent(engine->nodes().front()));
  EXPECT_EQ(engine->nodes().front().labels.at(kFault), "host 'a' has not answered yet");

  host->go_on();
  ASSERT_TRUE(run_until(loop_, [&] { return !is_silent(engine->nodes().front()); }));
}

TEST_F(HostOutages, AHostThatCannotBeUsedAsItIsConfiguredIsRefused) {
  const auto host = daemon("a");
  host->answer("GET /info", R"({"OSType":"windows","Architecture":"amd64"})");

  const auto engine = try_to_open({"a"});

  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kInvalid);
}

// --- tasks of hosts that are away

TEST_F(HostOutages, AllTasksOfAHostThatNeverAnswersAreLost) {
  const auto host = daemon("a");
  leave_task({.host = "b", .container = "c0"}, "worker-0");
  leave_task({.host = "b", .container = "c1"}, "worker-1");
  const auto engine =
      open({"a", "b"}, [](auto& options) { options.patience.absence = milliseconds(200); });
  ASSERT_TRUE(engine);
  ASSERT_EQ(engine->adopt(kGang, "worker-0"), AdoptionResult::kRunning);
  ASSERT_EQ(engine->adopt(kGang, "worker-1"), AdoptionResult::kRunning);

  ASSERT_TRUE(run_until(loop_, [&] { return ends_.size() >= 2; }));

  ASSERT_EQ(ends_.size(), 2U);
  EXPECT_NE(ends_[0].first, ends_[1].first);
  for (const auto& [task, end] : ends_) {
    EXPECT_TRUE(end.status.lost) << task;
    EXPECT_EQ(end.status.error, "its host does not answer") << task;
  }
}

TEST_F(HostOutages, AStoppedTaskOfAHostThatNeverAnswersIsLostToo) {
  const auto host = daemon("a");
  leave_task({.host = "b", .container = "c0"}, "main");
  const auto engine =
      open({"a", "b"}, [](auto& options) { options.patience.absence = milliseconds(200); });
  ASSERT_TRUE(engine);
  ASSERT_EQ(engine->adopt(kGang, "main"), AdoptionResult::kRunning);

  engine->stop(kGang, {"main"}, StopMode::kGraceful);

  ASSERT_TRUE(run_until(loop_, [&] { return !ends_.empty(); }));
  EXPECT_TRUE(ends_.front().second.status.lost);
}

TEST_F(HostOutages, ATaskThatHasEndedKeepsItsEndWhenItsHostIsGone) {
  const auto host = daemon("a");
  const TaskFolder left =
      leave_task({.host = "b", .container = "c0", .artifacts = "/artifacts"}, "main");
  ASSERT_TRUE(base::write_file(left.exit(), encode(ExitRecord{.status = {.code = 0}})));
  const auto engine =
      open({"a", "b"}, [](auto& options) { options.patience.absence = milliseconds(200); });
  ASSERT_TRUE(engine);

  ASSERT_EQ(engine->adopt(kGang, "main"), AdoptionResult::kEnded);

  ASSERT_TRUE(run_until(loop_, [&] { return !ends_.empty(); }));
  const job::ExitStatus& status = ends_.front().second.status;
  EXPECT_FALSE(status.lost);
  EXPECT_EQ(status.code, 0);
  EXPECT_NE(status.error.find("its artifacts could not be fetched"), std::string::npos);
}

TEST_F(HostOutages, ArtifactsAreFetchedAfterALongRestartOfTheHost) {
  constexpr int kCuts = 6;
  const auto host = daemon("a");
  host->answer("GET /containers/json", "[" + listed("c1", "exited", "main") + "]");
  host->answer("GET /containers/c1/archive", [](const http::Request&) {
    http::Response response{.content_type = "application/x-tar"};
    response.body =
        workspace::make_archive({{.path = "model.txt", .content = "weights", .link = {}}});
    return response;
  });
  int fetches = 0;
  host->on_asked = [&](const std::string& what) {
    if (!what.starts_with("GET /containers/c1/archive")) return;
    if (++fetches <= kCuts) cut(*host);
  };
  const TaskFolder left =
      leave_task({.host = "a", .container = "c1", .artifacts = "/artifacts"}, "main");
  ASSERT_TRUE(base::write_file(left.exit(), encode(ExitRecord{.status = {.code = 0}})));
  const auto engine = open({"a"});
  ASSERT_TRUE(engine);

  ASSERT_EQ(engine->adopt(kGang, "main"), AdoptionResult::kEnded);

  ASSERT_TRUE(run_until(loop_, [&] { return !ends_.empty(); }));
  EXPECT_EQ(ends_.front().second.status.error, "");
  EXPECT_EQ(fetches, kCuts + 1);
  const auto model = base::read_file(folder_ / "jobs" / kGang.job_id / "artifacts" / "model.txt");
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(*model, "weights");
}

TEST_F(HostOutages, ArtifactsAreFetchedAgainWhileADiskIsFull) {
  const auto host = daemon("a");
  host->answer("GET /containers/json", "[" + listed("c1", "exited", "main") + "]");
  int fetches = 0;
  host->answer("GET /containers/c1/archive", [&](const http::Request&) {
    http::Response response{.content_type = "application/x-tar"};
    if (++fetches <= 2) {
      response.status = 500;
      response.body = R"({"message":"write /var/tmp/x: no space left on device"})";
      return response;
    }
    response.body = workspace::make_archive({{.path = "model", .content = "weights", .link = {}}});
    return response;
  });
  const TaskFolder left =
      leave_task({.host = "a", .container = "c1", .artifacts = "/artifacts"}, "main");
  ASSERT_TRUE(base::write_file(left.exit(), encode(ExitRecord{.status = {.code = 0}})));
  const auto engine = open({"a"});
  ASSERT_TRUE(engine);

  ASSERT_EQ(engine->adopt(kGang, "main"), AdoptionResult::kEnded);

  ASSERT_TRUE(run_until(loop_, [&] { return !ends_.empty(); }));
  EXPECT_EQ(ends_.front().second.status.error, "");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "jobs" / kGang.job_id / "artifacts" / "model"));
}

TEST_F(HostOutages, ArtifactsAboveTheLimitAreFetchedOnceAndTheirPlaceIsNamed) {
  const auto host = daemon("a");
  host->answer("GET /containers/json", "[" + listed("c1", "exited", "main") + "]");
  int fetches = 0;
  host->answer("GET /containers/c1/archive", [&](const http::Request&) {
    ++fetches;
    http::Response response{.content_type = "application/x-tar"};
    response.body = std::string(2000, 'x');
    return response;
  });
  const TaskFolder left =
      leave_task({.host = "a", .container = "c1", .artifacts = "/artifacts"}, "main");
  ASSERT_TRUE(base::write_file(left.exit(), encode(ExitRecord{.status = {.code = 0}})));
  const auto engine = open({"a"}, [](auto& options) { options.artifact_bytes = 1000; });
  ASSERT_TRUE(engine);

  ASSERT_EQ(engine->adopt(kGang, "main"), AdoptionResult::kEnded);

  ASSERT_TRUE(run_until(loop_, [&] { return !ends_.empty(); }));
  EXPECT_EQ(ends_.front().second.status.error,
            "its artifacts could not be fetched: the content exceeds the limit; they are left in "
            "the volume muster-job1-artifacts of host a");
  EXPECT_EQ(fetches, 1);
}

TEST_F(HostOutages, TheLastRunningTaskFetchesTheArtifactsWhileAnotherTaskIsBeingStarted) {
  const auto host = daemon("a");
  host->answer("GET /containers/json", "[" + listed("c1", "exited", "main") + "]");
  host->answer("GET /containers/c1/archive", [](const http::Request&) {
    http::Response response{.content_type = "application/x-tar"};
    response.body = workspace::make_archive({{.path = "model", .content = "weights", .link = {}}});
    return response;
  });
  host->refuse("POST /containers/create", 500, "no more containers");
  const TaskFolder left =
      leave_task({.host = "a", .container = "c1", .artifacts = "/artifacts"}, "main");
  ASSERT_TRUE(base::write_file(left.exit(), encode(ExitRecord{.status = {.code = 0}})));
  const auto engine = open({"a"});
  ASSERT_TRUE(engine);
  ASSERT_EQ(engine->adopt(kGang, "main"), AdoptionResult::kEnded);

  launch::TaskPlan joining = plan_on("a", launch::Reach::kHosts);
  joining.task = "worker-1";
  std::optional<Result<void>> started;
  engine->start(kGang, {joining}, [&](const Result<void>& result) { started = result; });

  ASSERT_TRUE(run_until(loop_, [&] { return started && !ends_.empty(); }));
  EXPECT_FALSE(*started);
  EXPECT_EQ(ends_.front().second.status.error, "");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "jobs" / kGang.job_id / "artifacts" / "model"));
}

TEST_F(HostOutages, AnImmediateStopIsNeitherSoftenedNorPostponed) {
  const auto host = daemon("a");
  host->answer("GET /containers/json", "[" + listed("c1", "running", "main") + "]");
  host->answer("GET /containers/c1/json",
               R"({"Id":"c1","Name":"/x","State":{"Status":"running"},"Config":{"Labels":{}}})");
  std::vector<std::string> signals;
  const auto sent = [&](const std::string& signal) {
    return std::count(signals.begin(), signals.end(), signal);
  };
  // The engine fails to send each signal once.
  host->answer("POST /containers/c1/kill", [&](const http::Request& request) {
    signals.push_back(request.query.find("signal")->second);
    if (sent(signals.back()) > 1) return http::Response{.status = 204};
    http::Response response{.status = 500};
    response.body = R"({"message":"the runtime failed"})";
    return response;
  });
  leave_task({.host = "a", .container = "c1"}, "main");
  const auto engine = open({"a"}, [](auto& options) { options.patience.kill = milliseconds(50); });
  ASSERT_TRUE(engine);
  ASSERT_EQ(engine->adopt(kGang, "main"), AdoptionResult::kRunning);

  engine->stop(kGang, {"main"}, StopMode::kNow);
  engine->stop(kGang, {"main"}, StopMode::kGraceful);

  ASSERT_TRUE(run_until(loop_, [&] { return sent("KILL") == 2; }));
  EXPECT_EQ(sent("QUIT"), 2);
  EXPECT_EQ(sent("TERM"), 0);
}

TEST_F(HostOutages, ALateRefusalOfAReplacedStopDoesNotKeepTheTaskFromBeingKilled) {
  const auto host = daemon("a");
  const std::string kill = "POST /containers/c1/kill";
  host->answer("GET /containers/json", "[" + listed("c1", "running", "main") + "]");
  host->answer("GET /containers/c1/json",
               R"({"Id":"c1","Name":"/x","State":{"Status":"running"},"Config":{"Labels":{}}})");
  bool is_killed = false;
  host->answer(kill, [&](const http::Request& request) {
    const std::string signal = request.query.find("signal")->second;
    is_killed = is_killed || signal == "KILL";
    if (signal != "TERM") return http::Response{.status = 204};
    http::Response response{.status = 500};
    response.body = R"({"message":"the runtime failed"})";
    return response;
  });
  // The first signal is answered late.
  host->on_asked = [&](const std::string& what) {
    host->hang(what == kill && host->count(kill) == 1);
  };
  leave_task({.host = "a", .container = "c1"}, "main");
  const auto engine = open({"a"}, [](auto& options) {
    options.patience.kill = milliseconds(1000);
    options.pace = {.interval = milliseconds(1), .first_pause = milliseconds(1)};
  });
  ASSERT_TRUE(engine);
  ASSERT_EQ(engine->adopt(kGang, "main"), AdoptionResult::kRunning);
  engine->stop(kGang, {"main"}, StopMode::kGraceful);
  ASSERT_TRUE(run_until(loop_, [&] { return host->count(kill) == 1; }));
  engine->stop(kGang, {"main"}, StopMode::kNow);
  ASSERT_TRUE(run_until(loop_, [&] { return host->count(kill) == 2; }));
  const int polls = host->count("GET /info");  // the client has read the second answer before these
  ASSERT_TRUE(run_until(loop_, [&] { return host->count("GET /info") >= polls + 5; }));

  host->on_asked = nullptr;
  host->go_on();

  EXPECT_TRUE(run_until(loop_, [&] { return is_killed; }));
}

TEST_F(HostOutages, ALateRefusalOfAStopDoesNotKeepTheArtifactsFromBeingFetched) {
  const auto host = daemon("a");
  const std::string kill = "POST /containers/c1/kill";
  std::string state = "running";
  bool fails = false;
  bool is_full = true;
  int fetches = 0;
  host->answer("GET /containers/json", "[" + listed("c1", "running", "main") + "]");
  host->answer("GET /containers/c1/json", [&](const http::Request&) {
    return with_body(R"({"Id":"c1","Name":"/x","State":{"Status":")" + state +
                     R"("},"Config":{"Labels":{}}})");
  });
  host->answer("GET /info", [&](const http::Request&) {
    if (!std::exchange(fails, false)) return with_body(R"({"NCPU":8,"OSType":"linux"})");
    http::Response broken{.status = 500};
    broken.body = R"({"message":"busy"})";
    return broken;
  });
  host->answer("GET /containers/c1/archive", [&](const http::Request& request) {
    if (request.query.find("path")->second.starts_with("/artifacts")) ++fetches;
    http::Response response{.content_type = "application/x-tar"};
    response.body = workspace::make_archive({{.path = "model", .content = "weights", .link = {}}});
    if (!is_full) return response;
    response.status = 500;
    response.body = R"({"message":"write /var/tmp/x: no space left on device"})";
    return response;
  });
  host->refuse(kill, 500, "the runtime failed");
  host->on_asked = [&](const std::string& what) {
    host->hang(what == kill && host->count(kill) == 1);
  };
  leave_task({.host = "a", .container = "c1", .artifacts = "/artifacts"}, "main");
  const auto engine = open({"a"}, [](auto& options) {
    options.pace = {.interval = milliseconds(1), .first_pause = milliseconds(1)};
  });
  ASSERT_TRUE(engine);
  ASSERT_EQ(engine->adopt(kGang, "main"), AdoptionResult::kRunning);
  engine->stop(kGang, {"main"}, StopMode::kGraceful);
  ASSERT_TRUE(run_until(loop_, [&] { return host->count(kill) == 1; }));
  state = "exited";
  fails = true;
  ASSERT_TRUE(run_until(loop_, [&] { return fetches == 3; }));
  const int polls = host->count("GET /info");  // the client has read the answer before these
  ASSERT_TRUE(run_until(loop_, [&] { return host->count("GET /info") >= polls + 5; }));

  host->on_asked = nullptr;
  host->go_on();
  is_full = false;

  ASSERT_TRUE(run_until(loop_, [&] { return !ends_.empty(); }));
  EXPECT_EQ(ends_.front().second.status.error.find("could not be fetched"), std::string::npos);
}

TEST_F(HostOutages, ATaskWhoseStopTheHostKeepsRefusingIsKilled) {
  const auto host = daemon("a");
  host->answer("GET /containers/json", "[" + listed("c1", "running", "main") + "]");
  host->answer("GET /containers/c1/json",
               R"({"Id":"c1","Name":"/x","State":{"Status":"running"},"Config":{"Labels":{}}})");
  bool is_killed = false;
  host->answer("POST /containers/c1/kill", [&](const http::Request& request) {
    is_killed = request.query.find("signal")->second == "KILL";
    if (is_killed) return http::Response{.status = 204};
    http::Response response{.status = 500};
    response.body = R"({"message":"the runtime failed"})";
    return response;
  });
  leave_task({.host = "a", .container = "c1"}, "main");
  const auto engine = open({"a"}, [](auto& options) { options.patience.kill = milliseconds(50); });
  ASSERT_TRUE(engine);
  ASSERT_EQ(engine->adopt(kGang, "main"), AdoptionResult::kRunning);

  engine->stop(kGang, {"main"}, StopMode::kNow);

  EXPECT_TRUE(run_until(loop_, [&] { return is_killed; }));
}

TEST_F(HostOutages, AnEndIsNoticedAfterAFaultAlthoughTheStreamStaysOpen) {
  const auto host = daemon("a");
  std::string state = "running";
  bool is_open = false;
  bool fails = false;
  host->answer("GET /containers/json", "[" + listed("c1", "running", "main") + "]");
  host->answer("GET /containers/c1/json", [&](const http::Request&) {
    return with_body(R"({"Id":"c1","Name":"/x","State":{"Status":")" + state +
                     R"("},"Config":{"Labels":{}}})");
  });
  host->answer("POST /containers/c1/exec", R"({"Id":"e1"})", 201);
  host->answer("POST /exec/e1/start", [&](const http::Request&) {
    http::Response response;
    response.stream = std::make_shared<SilentBody>(is_open);
    return response;
  });
  host->answer("GET /info", [&](const http::Request&) {
    if (!std::exchange(fails, false)) return with_body(R"({"NCPU":8,"OSType":"linux"})");
    http::Response broken{.status = 500};
    broken.body = R"({"message":"busy"})";
    return broken;
  });
  leave_task({.host = "a", .container = "c1"}, "main");
  const auto engine = open({"a"}, [](auto& options) {
    options.pace = {.interval = milliseconds(1), .first_pause = milliseconds(1)};
  });
  ASSERT_TRUE(engine);
  ASSERT_EQ(engine->adopt(kGang, "main"), AdoptionResult::kRunning);
  ASSERT_TRUE(run_until(loop_, [&] { return is_open; }));
  const int polls = host->count("GET /info");  // the client has read the answer before these
  ASSERT_TRUE(run_until(loop_, [&] { return host->count("GET /info") >= polls + 5; }));
  ASSERT_TRUE(ends_.empty());

  state = "exited";
  fails = true;

  ASSERT_TRUE(run_until(loop_, [&] { return !ends_.empty(); }));
  EXPECT_EQ(ends_.front().first, "main");
  EXPECT_TRUE(ends_.front().second.status.lost);
  EXPECT_EQ(host->count("POST /exec/e1/start"), 1);
}

// --- answers that are lost

TEST_F(HostOutages, AContainerWhoseCreationWasNotAnsweredIsRemoved) {
  const auto host = daemon("a");
  bool is_there = false;
  host->answer("GET /containers/json", [&](const http::Request&) {
    // The container of another task of the gang stays.
    return with_body(is_there ? "[" + listed("c8", "running", "worker-1") + "," +
                                    listed("c9", "created", "main") + "]"
                              : "[]");
  });
  host->answer("DELETE /containers/c9", [&](const http::Request&) {
    is_there = false;
    return http::Response{.status = 204};
  });
  host->on_asked = [&](const std::string& what) {
    if (what != "POST /containers/create") return;
    is_there = true;
    cut(*host);
  };
  const auto engine = open({"a"});
  ASSERT_TRUE(engine);

  std::optional<Result<void>> started;
  engine->start(kGang, {plan_on("a", launch::Reach::kHosts)},
                [&](const Result<void>& result) { started = result; });

  ASSERT_TRUE(
      run_until(loop_, [&] { return started && host->count("DELETE /containers/c9") > 0; }));
  EXPECT_FALSE(*started);
  EXPECT_FALSE(is_there);
  EXPECT_EQ(host->count("DELETE /containers/c8"), 0);
}

TEST_F(HostOutages, AStartDuringWhichTheHostHangsMayBeTriedAgain) {
  const auto host = daemon("a");
  host->on_asked = [&](const std::string& what) {
    if (what == "POST /containers/create") host->hang();
  };
  const auto engine =
      open({"a"}, [](auto& options) { options.patience.answer = milliseconds(100); });
  ASSERT_TRUE(engine);

  std::optional<Result<void>> started;
  engine->start(kGang, {plan_on("a", launch::Reach::kHosts)},
                [&](const Result<void>& result) { started = result; });

  ASSERT_TRUE(run_until(loop_, [&] { return started.has_value(); }));
  ASSERT_FALSE(*started);
  EXPECT_EQ(started->error().code, ErrorCode::kUnavailable) << started->error().to_string();
}

TEST_F(HostOutages, AHostWithoutAddressesForANetworkIsExhausted) {
  const auto host = daemon("a");
  const auto engine = open({"a"});
  ASSERT_TRUE(engine);
  const std::pair<int, std::string> cases[] = {
      {404,
       "could not find an available, non-overlapping IPv4 address pool among the defaults to "
       "assign to the network"},
      {400, "all predefined address pools have been fully subnetted"},
      {500, "could not find free subnet from subnet pools"},
  };
  for (const auto& [status, words] : cases) {
    host->refuse("POST /networks/create", status, words);
    std::optional<Result<void>> started;
    engine->start(kGang, {plan_on("a", launch::Reach::kNames)},
                  [&](const Result<void>& result) { started = result; });
    ASSERT_TRUE(run_until(loop_, [&] { return started.has_value(); }));
    ASSERT_FALSE(*started);
    EXPECT_EQ(started->error().code, ErrorCode::kExhausted) << started->error().to_string();
    EXPECT_NE(started->error().advice.find("default-address-pools"), std::string::npos);
  }
}

TEST_F(HostOutages, ANetworkWhoseCreationWasNotAnsweredIsRemoved) {
  const auto host = daemon("a");
  bool is_there = false;
  host->answer("GET /networks", [&](const http::Request&) {
    return with_body(is_there ? R"([{"Name":"muster-job1-1","Labels":)" + labels_of("") + "}]"
                              : "[]");
  });
  host->answer("DELETE /networks/muster-job1-1", [&](const http::Request&) {
    is_there = false;
    return http::Response{.status = 204};
  });
  host->on_asked = [&](const std::string& what) {
    if (what != "POST /networks/create") return;
    is_there = true;
    cut(*host);
  };
  const auto engine = open({"a"});
  ASSERT_TRUE(engine);

  std::optional<Result<void>> started;
  engine->start(kGang, {plan_on("a", launch::Reach::kNames)},
                [&](const Result<void>& result) { started = result; });

  ASSERT_TRUE(run_until(
      loop_, [&] { return started && host->count("DELETE /networks/muster-job1-1") > 0; }));
  EXPECT_FALSE(*started);
  EXPECT_FALSE(is_there);
}

}  // namespace
}  // namespace muster::engine
