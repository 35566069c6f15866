// Requirements on every engine. There is one suite; each engine is a value of its parameter, at the
// end. Programs beside the task's own program are in conformance_exec_test.cc.
#include "engine/conformance.h"

#include "engine/host_facts.h"

namespace muster::engine {
namespace {

TEST_P(Conformance, ReportsTheExitCodeAndKeepsTheOutput) {
  const TaskEnded end = run(script("echo out; echo err >&2; exit 3"));

  EXPECT_EQ(end.status.code, 3);
  EXPECT_EQ(end.status.signal, 0);
  EXPECT_FALSE(end.status.stopped);
  EXPECT_EQ(log_of("main"), "out\n");
  EXPECT_EQ(log_of("main", job::LogStream::kError), "err\n");
}

TEST_P(Conformance, ReportsTheSignalThatEndedATask) {
  const TaskEnded end = run(script("kill -SEGV $$"));

  EXPECT_EQ(end.status.signal, SIGSEGV);
  EXPECT_EQ(end.status.shell_code(), 139);
}

TEST_P(Conformance, DistinguishesAMissingCommandFromOneThatCannotBeExecuted) {
  TaskPlan missing = script("");
  missing.argv = {"no-such-program", "x"};
  TaskPlan folder = script("", "other");
  folder.argv = {"/etc/passwd"};

  ASSERT_TRUE(bench_->start(gang_, {missing, folder}));

  EXPECT_EQ(bench_->wait_for_end("main").status.code, 127);
  EXPECT_EQ(bench_->wait_for_end("other").status.code, 126);
  EXPECT_NE(log_of("main", job::LogStream::kError).find("'no-such-program' was not found"),
            std::string::npos);
}

TEST_P(Conformance, ReportsAMissingWorkingFolder) {
  TaskPlan plan = script("true");
  plan.folder = "/no/such/folder";

  const TaskEnded end = run(plan);

  EXPECT_EQ(end.status.code, 126);
  EXPECT_NE(end.status.error.find("/no/such/folder"), std::string::npos);
}

TEST_P(Conformance, StartsAllTasksOrNone) {
  TaskPlan good = script("echo up; exec sleep " + marker_, "good");
  TaskPlan bad = script("echo up", "bad");
  bad.address = "192.0.2.1";  // of no machine: nothing can listen there
  bad.ssh = launch::SshService{.port = 22222, .command = {"/usr/sbin/sshd", "-i"}};

  const auto started = bench_->start(gang_, {good, bad});

  ASSERT_FALSE(started);
  EXPECT_NE(started.error().what.find("192.0.2.1:22222"), std::string::npos);
  EXPECT_TRUE(processes_with(marker_).empty());
}

TEST_P(Conformance, RefusesToStartATaskOfAnAttemptTwice) {
  run(script("true"));

  const auto again = bench_->start(gang_, {script("true")});

  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, base::ErrorCode::kConflict);
}

TEST_P(Conformance, AGracefulStopLetsTheProgramCleanUp) {
  ASSERT_TRUE(bench_->start(
      gang_, {script("trap 'echo cleaned; exit 0' TERM; echo up; while :; do sleep 0.01; done")}));
  wait_for_output("main");

  bench_->engine().stop(gang_, {"main"}, StopMode::kGraceful);
  const TaskEnded end = bench_->wait_for_end("main");

  EXPECT_EQ(end.status.code, 0);
  EXPECT_TRUE(end.status.stopped);
  EXPECT_EQ(log_of("main"), "up\ncleaned\n");
}

TEST_P(Conformance, AProgramThatIgnoresTheStopIsKilledAfterItsGrace) {
  TaskPlan plan = script("trap '' TERM; echo up; while :; do sleep 0.01; done");
  plan.grace = std::chrono::milliseconds(50);
  ASSERT_TRUE(bench_->start(gang_, {plan}));
  wait_for_output("main");

  bench_->engine().stop(gang_, {"main"}, StopMode::kGraceful);

  const TaskEnded end = bench_->wait_for_end("main");
  EXPECT_EQ(end.status.signal, SIGKILL);
  EXPECT_TRUE(end.status.stopped);
}

TEST_P(Conformance, ProcessesThatAStoppedProgramLeftBehindEndWithinItsGrace) {
  TaskPlan plan = script("(trap '' TERM; exec sleep " + marker_ + ") & echo up; wait");
  plan.grace = std::chrono::milliseconds(50);
  ASSERT_TRUE(bench_->start(gang_, {plan}));
  wait_for_output("main");

  bench_->engine().stop(gang_, {"main"}, StopMode::kGraceful);

  EXPECT_TRUE(bench_->wait_for_end("main").status.stopped);
  EXPECT_TRUE(processes_with(marker_).empty());
}

TEST_P(Conformance, AnotherGracefulStopLeavesTheProgramAllOfItsGrace) {
  const std::string go_on = (scratch_ / "go-on").string();
  TaskPlan plan = script("trap 'echo cleaning; until [ -e " + go_on +
                         " ]; do sleep 0.01; done; echo cleaned; exit 0' TERM; echo up; "
                         "while :; do sleep 0.01; done");
  plan.grace = std::chrono::hours(1);
  ASSERT_TRUE(bench_->start(gang_, {plan}));
  wait_for_output("main");

  bench_->engine().stop(gang_, {"main"}, StopMode::kGraceful);
  bench_->wait_until([&] { return log_of("main") == "up\ncleaning\n"; });
  bench_->engine().stop(gang_, {"main"}, StopMode::kGraceful);
  ASSERT_TRUE(base::write_file(go_on, ""));

  EXPECT_EQ(bench_->wait_for_end("main").status.code, 0);
  EXPECT_EQ(log_of("main"), "up\ncleaning\ncleaned\n");
}

TEST_P(Conformance, AStopAtOnceDoesNotWaitForTheGraceOfTheStopBefore) {
  TaskPlan plan = script("trap '' TERM; echo up; while :; do sleep 0.01; done");
  plan.grace = std::chrono::hours(1);
  ASSERT_TRUE(bench_->start(gang_, {plan}));
  wait_for_output("main");

  bench_->engine().stop(gang_, {"main"}, StopMode::kGraceful);
  bench_->engine().stop(gang_, {"main"}, StopMode::kNow);

  EXPECT_EQ(bench_->wait_for_end("main").status.signal, SIGKILL);
}

TEST_P(Conformance, OffersNodesWithUniqueNamesAndRoom) {
  std::set<std::string> names;
  for (const Node& node : bench_->engine().nodes()) {
    EXPECT_TRUE(names.insert(node.name).second) << node.name;
    EXPECT_GT(node.task_slots, 0);
    EXPECT_GT(node.cpu_milli, 0);
    EXPECT_GT(node.memory_bytes, 0);
    EXPECT_LE(node.gpus, kMaxGpus);
    EXPECT_FALSE(node.pool.empty());
  }
  EXPECT_FALSE(names.empty());
  EXPECT_NE(bench_->engine().watch_nodes([] {}), nullptr);
}

TEST_P(Conformance, StoppingIsIdempotentAndForgivesUnknownTasks) {
  ASSERT_TRUE(bench_->start(gang_, {script("echo up; exec sleep 1000")}));
  wait_for_output("main");

  for (int i = 0; i < 3; ++i) {
    bench_->engine().stop(gang_, {"main", "no-such-task"}, StopMode::kNow);
  }
  EXPECT_TRUE(bench_->wait_for_end("main").status.stopped);
  bench_->engine().stop(gang_, {"main"}, StopMode::kNow);

  EXPECT_EQ(bench_->reports_of("main"), 2);  // answered, ended
}

TEST_P(Conformance, NothingOfATaskOutlivesIt) {
  run(script("setsid sleep " + marker_ + " & (sleep " + marker_ + " &) ; exit 0"));

  EXPECT_TRUE(processes_with(marker_).empty());
}

TEST_P(Conformance, NothingOfATaskOutlivesItsShim) {
  ASSERT_TRUE(bench_->start(
      gang_, {script("setsid sleep " + marker_ + " & echo up; exec sleep " + marker_)}));
  wait_for_output("main");
  const auto shim = shim_above(processes_with(marker_).front());
  ASSERT_TRUE(shim);

  ::kill(*shim, SIGKILL);

  EXPECT_TRUE(bench_->wait_for_end("main").status.lost);
  bench_->engine().scrub(gang_);
  bench_->wait_until(
      [this] { return processes_with(marker_).empty() && GetParam().held_of_machine().empty(); });
  EXPECT_TRUE(processes_with(marker_).empty());
}

TEST_P(Conformance, KeepsEveryByteOfALongLineOfBinary) {
  const TaskEnded end =
      run(script("i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/urandom; i=$((i+1)); done | "
                 "tee \"$SCRATCH/copy\""));

  EXPECT_EQ(end.status.code, 0);
  EXPECT_TRUE(log_of("main") == *base::read_file(scratch_ / "copy"));
}

TEST_P(Conformance, GivesATaskItsFilesFoldersAndEnvironment) {
  TaskPlan plan = script(
      "cat \"$FOLDER/hostfile\"; stat -c %a \"$FOLDER/hostfile\" \"$FOLDER/ssh\"; echo \"$WEIRD\"");
  plan.files = {{.path = "hostfile", .content = "w slots=1\n"}};
  plan.folders = {"ssh"};
  plan.environment["FOLDER"] = bench_->engine().generated_folder(gang_, "main", sandbox());
  plan.environment["WEIRD"] = "two\nlines 'quoted'";

  run(plan);

  EXPECT_EQ(log_of("main"), "w slots=1\n600\n700\ntwo\nlines 'quoted'\n");
}

TEST_P(Conformance, HostileFilesInTheRanksFolderOfATaskDoNotBlockTheEngine) {
  TaskPlan plan = script(
      "cd \"$FOLDER/ranks\"; mkfifo 0; ln -s /dev/zero 1; mkdir 2; echo 4 > 3; echo 4 > more");
  plan.folders = {"ranks"};
  plan.takes_ranks = true;
  plan.environment["FOLDER"] = bench_->engine().generated_folder(gang_, "main", sandbox());
  run(plan);

  std::map<int, int> sizes;
  for (const RankPlace& place : bench_->engine().ranks(gang_, {"main"})) {
    sizes[place.rank] = place.world_size;
  }

  // Whether a volume without a size is accepted is up to the engine.
  std::erase_if(sizes, [](const auto& rank) { return rank.second == 0; });
  EXPECT_EQ(sizes, (std::map<int, int>{{3, 4}}));
}

TEST_P(Conformance, ScrubbingRemovesTheSecretsAndKeepsTheLog) {
  TaskPlan plan = script("echo printed");
  plan.files = {{.path = "key", .content = "98765404-secret", .secret = true}};
  plan.environment["TOKEN"] = "98765404-secret";
  run(plan);

  bench_->engine().scrub(gang_);

  EXPECT_EQ(log_of("main"), "printed\n");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(base::read_file(entry.path())->find("98765404-secret"), std::string::npos)
        << entry.path();
  }
  ASSERT_TRUE(bench_->engine().remove(kJob));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "jobs" / kJob));
}

TEST_P(Conformance, ANewEngineTakesUpARunningTask) {
  ASSERT_TRUE(bench_->start(
      gang_, {script("echo up; until [ -e \"$SCRATCH/go\" ]; do sleep 0.01; done; exit 7")}));
  wait_for_output("main");
  open_bench();

  ASSERT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kRunning);
  ASSERT_TRUE(base::write_file(scratch_ / "go", ""));

  EXPECT_EQ(bench_->wait_for_end("main").status.code, 7);
}

TEST_P(Conformance, ANewEngineCanStopATaskItTookUp) {
  ASSERT_TRUE(bench_->start(gang_, {script("echo up; exec sleep " + marker_)}));
  wait_for_output("main");
  open_bench();
  ASSERT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kRunning);

  bench_->engine().stop(gang_, {"main"}, StopMode::kGraceful);

  EXPECT_EQ(bench_->wait_for_end("main").status.signal, SIGTERM);
  EXPECT_TRUE(processes_with(marker_).empty());
}

TEST_P(Conformance, ANewEngineReportsTheEndOfATaskThatEndedWithoutAnEngine) {
  run(script("exit 5"));
  open_bench();

  EXPECT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kEnded);
  EXPECT_EQ(bench_->wait_for_end("main").status.code, 5);
  EXPECT_EQ(bench_->engine().adopt(gang_, "never-started"), AdoptionResult::kNothing);
}

/// A whole MPI gang's plans, as the launch folder makes them. Its launcher runs a command in the
/// worker, which has two of the node's four GPUs.
launch::GangPlan mpi_gang(Engine& engine, const GangId& gang, const Ground& ground,
                          const std::filesystem::path& scratch,
                          const std::string& in_worker = R"('echo "$FROM_ME"')") {
  job::Job job{.id = gang.job_id,
               .spec = {.name = "dist",
                        .kind = job::Kind::kMpi,
                        .command = {"sh", "-c", "ssh -F \"$CONFIG\" dist-worker-0 " + in_worker},
                        .workers = 1,
                        .environment = {{"FROM_ME", "it's\nhere"}},
                        .folder = scratch.string(),
                        .sandbox = ground.sandbox},
               .attempt = gang.attempt};
  job.tasks = job::tasks_of(job.spec);
  for (job::Task& task : job.tasks) task.node = engine.nodes().front().name;
  job.tasks[1].devices = {1, 3};
  base::SystemRandom random;
  launch::Site site{.user = user_name(),
                    .generated_folder =
                        [&](std::string_view task) {
                          return engine.generated_folder(gang, task, ground.sandbox);
                        },
                    .gpus_of =
                        [&](const std::string&) {
                          return std::vector<std::string>(engine.nodes().front().gpus);
                        }};
  ground.fill_site(site, job);
  auto plan = launch::plan_gang(job, launch::make_seed(random), site);
  EXPECT_TRUE(plan);
  for (TaskPlan& task : plan->first) task = ground.placed(task, scratch);
  for (TaskPlan& task : plan->then) {
    task = ground.placed(task, scratch);
    task.environment["CONFIG"] =
        engine.generated_folder(gang, task.task, ground.sandbox) + "/ssh/config";
  }
  return *std::move(plan);
}

TEST_P(Conformance, AWorkerAnswersSshWithTheJobsEnvironment) {
  launch::GangPlan plan = mpi_gang(bench_->engine(), gang_, GetParam(), scratch_);
  const auto started = bench_->start(gang_, plan.first);
  ASSERT_TRUE(started) << started.error().to_string();
  bench_->wait_for_answer("worker-0");

  ASSERT_TRUE(bench_->start(gang_, plan.then));
  const TaskEnded end = bench_->wait_for_end("launcher");

  EXPECT_EQ(end.status.code, 0) << log_of("launcher", job::LogStream::kError);
  EXPECT_EQ(log_of("launcher"), "it's\nhere\n");
  bench_->engine().stop(gang_, {"worker-0"}, StopMode::kNow);
  EXPECT_TRUE(bench_->wait_for_end("worker-0").status.stopped);
}

/// A launcher runs a program in a worker. The worker is stopped once that program has printed.
class StopOfAWorker : public Conformance {
 protected:
  void stop_while_it_runs(const std::string& program, std::chrono::milliseconds grace) {
    launch::GangPlan plan = mpi_gang(bench_->engine(), gang_, GetParam(), scratch_, program);
    plan.first[0].grace = grace;
    ASSERT_TRUE(bench_->start(gang_, plan.first));
    bench_->wait_for_answer("worker-0");
    ASSERT_TRUE(bench_->start(gang_, plan.then));
    wait_for_output("launcher");

    bench_->engine().stop(gang_, {"worker-0"}, StopMode::kGraceful);

    EXPECT_TRUE(bench_->wait_for_end("worker-0").status.stopped);
  }
};

TEST_P(StopOfAWorker, LetsProgramsOfTheLauncherOnTheWorkerCleanUp) {
  stop_while_it_runs(R"('trap "echo cleaned; exit 0" TERM; echo up; while :; do sleep 0.01; done')",
                     std::chrono::hours(1));

  EXPECT_EQ(bench_->wait_for_end("launcher").status.code, 0)
      << log_of("launcher", job::LogStream::kError);
  EXPECT_EQ(log_of("launcher"), "up\ncleaned\n");
}

TEST_P(StopOfAWorker, KillsProgramsOfTheLauncherOnTheWorkerAfterTheGrace) {
  stop_while_it_runs(R"('trap "" TERM; echo up; while :; do sleep 0.01; done')",
                     std::chrono::milliseconds(50));

  EXPECT_EQ(bench_->wait_for_end("launcher").status.code, 255);
}

TEST_P(Conformance, ATaskSeesTheDevicesThatItWasGivenAndWhatReachesItBySshSeesTheSame) {
  launch::GangPlan plan = mpi_gang(bench_->engine(), gang_, GetParam(), scratch_,
                                   R"('echo "worker $CUDA_VISIBLE_DEVICES of $MUSTER_GPUS"')");
  plan.then[0].argv[2] += "; echo \"launcher ${CUDA_VISIBLE_DEVICES-unset} of $MUSTER_GPUS\"";
  ASSERT_TRUE(bench_->start(gang_, plan.first));
  bench_->wait_for_answer("worker-0");

  ASSERT_TRUE(bench_->start(gang_, plan.then));
  bench_->wait_for_end("launcher");

  // The plan gives it GPUs 1 and 3 of its node.
  const std::string log = log_of("launcher");
  const size_t name = std::string_view("worker ").size();
  const std::string seen = GetParam().names_own_gpus && log.size() > name
                               ? log.substr(name, log.find(" of ") - name)
                               : "1,3";
  EXPECT_EQ(std::count(seen.begin(), seen.end(), ','), 1) << seen;
  EXPECT_EQ(log, "worker " + seen + " of 2\nlauncher  of 0\n")
      << log_of("launcher", job::LogStream::kError);
  bench_->engine().stop(gang_, {"worker-0"}, StopMode::kNow);
  bench_->wait_for_end("worker-0");
}

TEST_P(Conformance, AHostKeyThatIsNotTheJobsIsRefused) {
  launch::GangPlan plan = mpi_gang(bench_->engine(), gang_, GetParam(), scratch_);
  launch::GangPlan other = mpi_gang(bench_->engine(), gang_, GetParam(), scratch_);
  for (auto& file : plan.then[0].files) {
    if (file.path != "ssh/known_hosts") continue;
    const auto& files = other.then[0].files;
    file.content = std::find_if(files.begin(), files.end(), [](const auto& candidate) {
                     return candidate.path == "ssh/known_hosts";
                   })->content;
  }
  ASSERT_TRUE(bench_->start(gang_, plan.first));
  bench_->wait_for_answer("worker-0");
  ASSERT_TRUE(bench_->start(gang_, plan.then));

  EXPECT_EQ(bench_->wait_for_end("launcher").status.code, 255);
  EXPECT_NE(log_of("launcher", job::LogStream::kError).find("Host key verification failed"),
            std::string::npos);
  bench_->engine().stop(gang_, {"worker-0"}, StopMode::kNow);
  bench_->wait_for_end("worker-0");
}

INSTANTIATE_TEST_SUITE_P(Engines, Conformance, testing::ValuesIn(grounds()), ground_name);
INSTANTIATE_TEST_SUITE_P(Engines, StopOfAWorker, testing::ValuesIn(grounds()), ground_name);

// --- sandboxes

class Sandboxed : public Conformance {};

TEST_P(Sandboxed, HasItsOwnNameProcessesAndGeneratedFolder) {
  TaskPlan plan = script("hostname; echo $$ | wc -c; ls -d /generated; getent hosts test-main");
  plan.address = "127.99.0.1";
  plan.hosts = {{"test-main", "127.99.0.1"}};

  run(plan);

  EXPECT_EQ(log_of("main"), "test-main\n2\n/generated\n127.99.0.1      test-main\n");
  EXPECT_FALSE(std::filesystem::exists("/generated"));
}

TEST_P(Sandboxed, FindsNothingOfTheServersFilesAndOfOtherJobs) {
  ASSERT_TRUE(base::write_file(folder_ / "key", "sesame"));
  ASSERT_TRUE(base::make_private_folder(folder_ / "jobs" / "other"));

  TaskPlan plan = script("ls -A jobs; cat key; cat jobs/*/*/main/plan key; ls -d /generated");
  plan.folder = folder_.string();

  run(plan);

  EXPECT_EQ(log_of("main"), "/generated\n");
  EXPECT_EQ(*base::read_file(folder_ / "key"), "sesame");
}

TEST_P(Sandboxed, LeavesNoMountBehind) {
  run(script("true"));

  EXPECT_EQ(base::read_file("/proc/self/mounts")->find(folder_.string()), std::string::npos);
}

// Some test programs have no engine for this suite.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Sandboxed);
INSTANTIATE_TEST_SUITE_P(Engines, Sandboxed, testing::ValuesIn(grounds_where(&Ground::is_sandbox)),
                         ground_name);

}  // namespace
}  // namespace muster::engine
