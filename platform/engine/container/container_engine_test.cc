// Behaviour of the container engine alone, on a real Docker or Podman.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/unique_fd.h"
#include "engine/conformance_containers.h"
#include "engine/container/labels.h"
#include "engine/shim/plan.h"
#include "workspace/small_archive.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

using base::ErrorCode;
using job::Volume;

/// A task that runs until it is stopped.
constexpr const char* kUp = "echo up; exec sleep ";

class Containers : public Conformance {
 protected:
  Containers() : outside_(outside_loop_, UnixEndpoint{test_socket()}) {}

  /// A request to the engine from another client.
  template <class Value>
  Result<Value> ask(const std::function<void(std::function<void(Result<Value>)>)>& call) {
    std::optional<Result<Value>> answer;
    call([&](Result<Value> came) {
      answer = std::move(came);
      outside_loop_.stop();
    });
    while (!answer) outside_loop_.run();
    return *std::move(answer);
  }

  std::vector<ContainerState> containers() {
    return *ask<std::vector<ContainerState>>([this](auto then) {
      outside_.list(as_filters({{kOwnerLabel, owner()}}), std::move(then));
    });
  }

  using Listed = std::vector<std::pair<std::string, std::map<std::string, std::string>>>;
  Listed networks() {
    return *ask<Listed>([this](auto then) {
      outside_.networks(as_filters({{kOwnerLabel, owner()}}), std::move(then));
    });
  }
  Listed volumes() {
    return *ask<Listed>([this](auto then) {
      outside_.volumes(as_filters({{kOwnerLabel, owner()}}), std::move(then));
    });
  }

  Result<void> kill_from_outside(const std::string& signal) {
    return ask<void>(
        [&](auto then) { outside_.kill(containers().front().id, signal, std::move(then)); });
  }

  /// A container of another owner.
  Result<std::string> make_strangers(const std::string& name) {
    ContainerConfig config;
    config.name = name;
    config.image = test_image();
    config.command = {"true"};
    return ask<std::string>([&](auto then) { outside_.create(config, std::move(then)); });
  }
  void remove_strangers(const std::string& id) {
    EXPECT_TRUE(ask<void>([&](auto then) { outside_.remove(id, std::move(then)); }));
  }

  /// Whether the shim in a container has recorded the end of its program.
  bool exit_is_written(const std::string& id) {
    std::string tar;
    std::shared_ptr<void> under_way;
    const auto got = ask<void>([&](auto then) {
      under_way = outside_.get_archive(
          id, "/muster/task/exit", [&](std::string_view piece) { tar += piece; }, std::move(then));
    });
    if (!got) return false;
    const auto entries = workspace::read_archive(tar, 1 << 20);
    return entries && !entries->empty() && decode_exit(entries->front().content);
  }

  void wait_outside(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kBound;
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      const auto tick =
          outside_loop_.after(std::chrono::milliseconds(20), [this] { outside_loop_.stop(); });
      outside_loop_.run();
    }
  }

  std::string owner() const { return test_owner(folder_ / "jobs"); }

  void expect_nothing_left() {
    const auto nothing = [this] {
      return containers().empty() && networks().empty() && volumes().empty();
    };
    bench_->wait_until(nothing);
    EXPECT_TRUE(containers().empty());
    EXPECT_TRUE(networks().empty());
    EXPECT_TRUE(volumes().empty());
  }

  /// Lets tests/containers_engine.py act on the engine itself.
  static void control_engine(const std::string& word) {
    const char* const path = std::getenv("MUSTER_ENGINE_CONTROL");
    ASSERT_NE(path, nullptr);
    const base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string(path).copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_TRUE(base::write_all(socket.get(), word + "\n"));
    std::array<char, 16> done{};
    ASSERT_GT(::read(socket.get(), done.data(), done.size()), 0) << word;
  }

  void start_one(TaskPlan plan) {
    const auto started = bench_->start(gang_, {std::move(plan)});
    ASSERT_TRUE(started) << started.error().to_string();
    wait_for_output("main");
  }

  void stop_one() {
    bench_->engine().stop(gang_, {"main"}, StopMode::kNow);
    bench_->wait_for_end("main");
  }

 private:
  base::EventLoop outside_loop_;

 protected:
  DockerClient outside_;
};

// --- isolation

TEST_P(Containers, HasALockedRootNoCapabilitiesAndNothingOfTheServerInItsEnvironment) {
  TaskPlan plan = script(
      "touch /x 2>&1; touch /tmp/x /run/x && echo scratch; grep -E 'NoNewPrivs|CapBnd' "
      "/proc/self/status; ls -d $FOLDER");
  plan.environment["FOLDER"] = "/generated";

  run(plan);

  const std::string text = log_of("main");
  EXPECT_NE(text.find("Read-only file system"), std::string::npos) << text;
  EXPECT_NE(text.find("\nscratch\n"), std::string::npos) << text;
  EXPECT_NE(text.find("NoNewPrivs:\t1"), std::string::npos) << text;
  EXPECT_NE(text.find("CapBnd:\t00000000000400fb"), std::string::npos) << text;
}

TEST_P(Containers, RunsAsTheGivenAccountWhichOwnsItsFiles) {
  TaskPlan plan = script("id -u; id -g; cat /generated/key; stat -c %u /generated/key");
  plan.account = {.uid = 1234, .gid = 99, .name = "", .home = "/"};
  plan.folder = "/";
  plan.files = {{.path = "key", .content = "mine\n", .secret = true}};

  run(plan);

  EXPECT_EQ(log_of("main"), "1234\n99\nmine\n1234\n") << log_of("main", job::LogStream::kError);
}

TEST_P(Containers, ShowsNoSecretInAnInspectOfTheContainer) {
  TaskPlan plan = script(kUp + marker_);
  plan.environment["TOKEN"] = "98765404-secret";
  start_one(plan);

  for (const ContainerState& state : containers()) {
    for (const auto& [name, value] : state.labels) {
      EXPECT_EQ(value.find("98765404"), std::string::npos) << name;
    }
  }
  const auto shim = shim_above(processes_with(marker_).front());
  ASSERT_TRUE(shim);
  const auto environment = base::read_file("/proc/" + std::to_string(*shim) + "/environ");
  EXPECT_EQ(environment->find("98765404"), std::string::npos);
  stop_one();
}

TEST_P(Containers, FindsTheHostfileAtTheDocumentedPath) {
  TaskPlan plan = script("cat /etc/mpi/hostfile; ls -d /etc/passwd");
  plan.files = {{.path = "hostfile", .content = "dist-worker-0 slots=1\n"}};
  plan.also_at = {{"hostfile", "/etc/mpi/hostfile"}};

  run(plan);

  EXPECT_EQ(log_of("main"), "dist-worker-0 slots=1\n/etc/passwd\n");
}

TEST_P(Containers, CannotResolveTheNamesOfAnotherJob) {
  start_one(script(kUp + marker_));
  const GangId other{"job2", 1};
  TaskPlan asking = script(
      "getent hosts test-other > /dev/null && echo own; getent hosts test-main; exit 0", "other");

  ASSERT_TRUE(bench_->start(other, {asking}));
  bench_->wait_for_end("other");

  auto cursor = bench_->engine().open_log(other, "other");
  LogFrame frame;
  ASSERT_TRUE(cursor);
  ASSERT_TRUE(*(*cursor)->next(frame));
  EXPECT_EQ(frame.bytes, "own\n");
  bench_->engine().scrub(other);
  stop_one();
}

TEST_P(Containers, RefusesAVolumeThatContainsAHiddenPath) {
  TaskPlan plan = script("true");
  plan.volumes.push_back(
      {.kind = Volume::Kind::kHostPath, .source = folder_.string(), .target = "/x"});

  const auto started = bench_->start(gang_, {plan});

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().what, "cannot start main: volume /x: '" + folder_.string() +
                                      "' contains paths that are hidden from tasks");
}

TEST_P(Containers, RunsASingleTaskInAnImageWithoutAShell) {
  TaskPlan plan = script("");
  plan.image = "localhost/muster-test-noshell";
  plan.argv = {"/hello"};
  plan.folder = "/";

  const auto started = bench_->start(gang_, {plan});
  if (!started && started.error().what.find("noshell") != std::string::npos) {
    FAIL() << started.error().to_string();
  }
  ASSERT_TRUE(started) << started.error().to_string();

  EXPECT_EQ(bench_->wait_for_end("main").status.code, 0);
  EXPECT_EQ(log_of("main"), "hello from an image without a shell\n");
}

// --- artifacts

TEST_P(Containers, ArtifactsAreFetchedBeforeTheEndIsReported) {
  TaskPlan plan = script(
      "mkdir -p /artifacts/deep; echo x > /artifacts/deep/made; ln -s /etc/passwd /artifacts/link");
  plan.volumes.insert(plan.volumes.begin(),
                      {.kind = Volume::Kind::kArtifacts, .target = "/artifacts"});
  run(plan);

  const auto folder = bench_->engine().artifacts_folder(kJob);
  ASSERT_TRUE(folder);
  EXPECT_EQ(*base::read_file(*folder / "deep/made"), "x\n");
  EXPECT_TRUE(fs::is_symlink(*folder / "link"));
  bench_->engine().scrub(gang_);
  ASSERT_TRUE(bench_->engine().remove(kJob));
  expect_nothing_left();
}

// --- failures

TEST_P(Containers, AContainerKilledFromOutsideIsLostAndKeepsItsLog) {
  start_one(script(kUp + marker_));

  ASSERT_TRUE(kill_from_outside("KILL"));

  const TaskEnded end = bench_->wait_for_end("main");
  EXPECT_TRUE(end.status.lost);
  EXPECT_EQ(end.status.signal, SIGKILL);
  EXPECT_NE(end.status.error.find("from outside"), std::string::npos) << end.status.error;
  EXPECT_EQ(log_of("main"), "up\n");
  bench_->engine().scrub(gang_);
  expect_nothing_left();
}

TEST_P(Containers, ALinkInPlaceOfALogLeadsToNoFileOfTheServer) {
  const fs::path secret = folder_ / "secret";
  ASSERT_TRUE(base::write_file(secret, std::string(10'000, 's')));
  start_one(script("for file in log log.start metrics exit; do ln -sf " + secret.string() +
                   " /generated/link && mv -f /generated/link /muster/task/$file; done; " + kUp +
                   marker_));

  ASSERT_TRUE(kill_from_outside("KILL"));

  EXPECT_TRUE(bench_->wait_for_end("main").status.lost);
  EXPECT_EQ(log_of("main"), "up\n");
  for (const auto& file : fs::recursive_directory_iterator(folder_ / "jobs")) {
    if (!file.is_regular_file()) continue;
    EXPECT_EQ(base::read_file(file.path())->find("ssss"), std::string::npos) << file.path();
  }
}

TEST_P(Containers, AContainerStoppedFromOutsideIsLost) {
  start_one(script(kUp + marker_));

  ASSERT_TRUE(kill_from_outside("TERM"));

  const TaskEnded end = bench_->wait_for_end("main");
  EXPECT_TRUE(end.status.lost);
  EXPECT_NE(end.status.error.find("stopped from outside"), std::string::npos) << end.status.error;
}

TEST_P(Containers, ATaskThatBlocksItsShimIsStopped) {
  constexpr const char* kAttachToProcessOne = "perl -e 'syscall(101, 16, 1, 0, 0); sleep ";
  TaskPlan plan = script("echo up; exec " + (kAttachToProcessOne + marker_) + "'");
  plan.grace = std::chrono::milliseconds(100);
  start_one(std::move(plan));

  bench_->engine().stop(gang_, {"main"}, StopMode::kGraceful);

  EXPECT_TRUE(bench_->wait_for_end("main").status.stopped);
  bench_->engine().scrub(gang_);
  expect_nothing_left();
}

TEST_P(Containers, AnOutOfMemoryKillIsNamed) {
  TaskPlan plan = script("echo up; exec tail /dev/zero");  // stores the whole line in memory
  plan.resources.memory_bytes = 64 << 20;

  const TaskEnded end = run(plan);

  EXPECT_TRUE(end.status.out_of_memory) << job::explain(end.status);
}

TEST_P(Containers, AContainerNameOfAnotherOwnerIsNotUsed) {
  const auto stranger = make_strangers(container_name(gang_, "main"));
  ASSERT_TRUE(stranger) << stranger.error().to_string();

  const TaskEnded end = run(script("echo up"));

  EXPECT_EQ(end.status.code, 0);
  EXPECT_EQ(log_of("main"), "up\n");
  EXPECT_TRUE(
      ask<ContainerState>([&](auto then) { outside_.inspect(*stranger, std::move(then)); }));
  remove_strangers(*stranger);
}

TEST_P(Containers, AVolumeOfAnotherOwnerIsNotUsed) {
  const std::string name = volume_name(kJob, "artifacts");
  ASSERT_TRUE(ask<void>(
      [&](auto then) { outside_.create_volume(name, {{"whose", "theirs"}}, std::move(then)); }));
  TaskPlan plan = script("true");
  plan.volumes.insert(plan.volumes.begin(), {.kind = Volume::Kind::kArtifacts, .target = "/x"});

  const auto started = bench_->start(gang_, {plan});

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kConflict);
  EXPECT_NE(started.error().what.find("'" + name + "' that does not belong to this server"),
            std::string::npos)
      << started.error().what;
  EXPECT_TRUE(ask<void>([&](auto then) { outside_.remove_volume(name, std::move(then)); }));
  expect_nothing_left();
}

TEST_P(Containers, AFailedStartLeavesNothing) {
  TaskPlan good = script(kUp + marker_, "good");
  TaskPlan bad = script("true", "bad");
  bad.image = "localhost/no-such-image:1";
  for (TaskPlan* plan : {&good, &bad}) {
    plan->volumes.insert(plan->volumes.begin(),
                         {.kind = Volume::Kind::kArtifacts, .target = "/artifacts"});
  }

  const auto started = bench_->start(gang_, {good, bad});

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kNotFound) << started.error().to_string();
  EXPECT_TRUE(started.error().what.starts_with("cannot start bad: ")) << started.error().what;
  expect_nothing_left();
  EXPECT_TRUE(processes_with(marker_).empty());
}

TEST_P(Containers, AGangCanBeStoppedDuringItsStart) {
  std::optional<Result<void>> started;
  bench_->engine().start(gang_, {script(kUp + marker_, "one"), script(kUp + marker_, "two")},
                         [&](const Result<void>& result) { started = result; });

  bench_->engine().stop(gang_, {"two"}, StopMode::kNow);
  bench_->wait_until([&] { return started.has_value(); });

  ASSERT_TRUE(started);
  ASSERT_FALSE(*started);
  EXPECT_EQ(started->error().code, ErrorCode::kUnavailable);
  expect_nothing_left();
}

TEST_P(Containers, FiftyStartsAtOnceAllSucceed) {
  std::vector<GangId> gangs;
  for (int i = 0; i < 50; ++i) gangs.push_back({"many" + std::to_string(i), 1});
  size_t started = 0;
  for (const GangId& gang : gangs) {
    // On the host's network, because an engine has addresses for only about thirty networks.
    TaskPlan plan = script("echo up", "main-" + gang.job_id);
    plan.reach = launch::Reach::kHosts;
    bench_->engine().start(gang, {plan}, [&](const Result<void>& result) {
      EXPECT_TRUE(result) << result.error().to_string();
      ++started;
    });
  }
  // Starts take turns: the limit applies to each, and is extended while the gang makes progress.
  for (size_t before = 0; started < gangs.size(); before = started) {
    bench_->wait_until([&] { return started > before; });
    ASSERT_GT(started, before) << "nothing goes on any more";
  }

  for (const GangId& gang : gangs) {
    EXPECT_EQ(bench_->wait_for_end("main-" + gang.job_id).status.code, 0);
    bench_->engine().scrub(gang);
  }
  expect_nothing_left();
}

// --- restarts of engines and servers

TEST_P(Containers, ARestartOfTheEngineLosesNoLineOfARunningTask) {
  start_one(
      script("echo up; i=0; until [ -e $SCRATCH/go ]; do sleep 0.01; echo $i; i=$((i+1)); "
             "done; echo end; exit 4"));

  control_engine("kill");
  const size_t before = log_of("main").size();
  control_engine("start");
  bench_->wait_until([&] { return log_of("main").size() > before + 100; });
  ASSERT_TRUE(base::write_file(scratch_ / "go", ""));

  EXPECT_EQ(bench_->wait_for_end("main").status.code, 4);
  const std::string text = log_of("main");
  std::string expected = "up\n";
  const auto lines = std::count(text.begin(), text.end(), '\n') - 2;
  for (long i = 0; i < lines; ++i) expected += std::to_string(i) + "\n";
  EXPECT_EQ(text, expected + "end\n");
}

TEST_P(Containers, ATaskThatEndsWhileTheEngineIsAwayIsReportedWhenItIsBack) {
  start_one(script("echo up; until [ -e $SCRATCH/go ]; do sleep 0.01; done; echo end; exit 6"));

  control_engine("kill");
  ASSERT_TRUE(base::write_file(scratch_ / "go", ""));
  control_engine("start");

  EXPECT_EQ(bench_->wait_for_end("main").status.code, 6);
  EXPECT_EQ(log_of("main"), "up\nend\n");
}

TEST_P(Containers, ANewServerHasEveryByteOfTheLog) {
  start_one(
      script("echo up; until [ -e $SCRATCH/go ]; do sleep 0.01; done; "
             "head -c 3000000 /dev/urandom | tee $SCRATCH/copy; exit 7"));
  bench_.reset();
  ASSERT_TRUE(base::write_file(scratch_ / "go", ""));
  open_bench();

  ASSERT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kRunning);

  EXPECT_EQ(bench_->wait_for_end("main").status.code, 7);
  EXPECT_TRUE(log_of("main") == "up\n" + *base::read_file(scratch_ / "copy"));
}

TEST_P(Containers, ANewServerReportsAnEndThatNoServerSaw) {
  start_one(script("echo up; until [ -e $SCRATCH/go ]; do sleep 0.01; done; echo end; exit 8"));
  bench_.reset();
  ASSERT_TRUE(base::write_file(scratch_ / "go", ""));
  wait_outside([this] { return exit_is_written(containers().front().id); });
  ASSERT_TRUE(kill_from_outside("KILL"));  // its shim waited for a follower
  open_bench();

  EXPECT_NE(bench_->engine().adopt(gang_, "main"), AdoptionResult::kNothing);

  EXPECT_EQ(bench_->wait_for_end("main").status.code, 8);
  EXPECT_EQ(log_of("main"), "up\nend\n");
}

TEST_P(Containers, ContainersThatAreNotAdoptedAreRemoved) {
  TaskPlan plan = script(kUp + marker_);
  plan.volumes.insert(plan.volumes.begin(), {.kind = Volume::Kind::kArtifacts, .target = "/x"});
  start_one(plan);
  bench_.reset();
  fs::remove_all(folder_ / "jobs");

  open_bench();

  EXPECT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kNothing);
  expect_nothing_left();
  EXPECT_TRUE(processes_with(marker_).empty());
}

TEST_P(Containers, AContainerThatLacksItsFilesIsNotAdopted) {
  start_one(script(kUp + marker_));
  bench_.reset();
  const TaskFolder task{folder_ / "jobs" / gang_.job_id / std::to_string(gang_.attempt) / "main"};
  // As if the server had ended before it had put all files into the container.
  ASSERT_TRUE(fs::remove(task.running()));
  ASSERT_TRUE(fs::remove(task.complete()));

  open_bench();

  EXPECT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kNothing);
  expect_nothing_left();
  EXPECT_TRUE(processes_with(marker_).empty());
}

TEST_P(Containers, TasksOfAnotherServerAreNotTouched) {
  start_one(script(kUp + marker_));
  fs::create_directories(folder_ / "other");
  {
    Bench other(GetParam(), folder_ / "other" / "jobs");
    EXPECT_EQ(other.engine().adopt(gang_, "main"), AdoptionResult::kNothing);
    other.loop().post([&] { other.loop().stop(); });
    other.loop().run();
  }

  EXPECT_EQ(containers().size(), 1U);
  stop_one();
}

TEST_P(Containers, AnOlderAttemptIsNotMistakenForANewerOne) {
  start_one(script(kUp + marker_));
  open_bench();

  EXPECT_EQ(bench_->engine().adopt({kJob, 2}, "main"), AdoptionResult::kNothing);
  EXPECT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kRunning);
  stop_one();
}

/// An endpoint that accepts connections and never answers.
class Silence {
 public:
  explicit Silence(const fs::path& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket_.get(), 16), 0);
  }

 private:
  base::UniqueFd socket_;
};

TEST_P(Containers, AnEndpointThatHangsIsNamed) {
  const Silence silence(folder_ / "silent");
  base::EventLoop loop;
  ContainerEngineOptions options = test_options({.folder = folder_ / "other", .nvml = {}});
  options.hosts.front().endpoint = UnixEndpoint{folder_ / "silent"};
  options.patience.answer = std::chrono::milliseconds(200);

  const auto opened = ContainerEngine::open(loop, options);

  ASSERT_TRUE(opened) << opened.error().to_string();
  ASSERT_EQ((*opened)->nodes().size(), 1U);
  const std::string fault = (*opened)->nodes().front().labels.at(kFault);
  EXPECT_NE(fault.find((folder_ / "silent").string()), std::string::npos) << fault;
}

INSTANTIATE_TEST_SUITE_P(Engines, Containers, testing::ValuesIn(grounds()), ground_name);

}  // namespace
}  // namespace muster::engine
