// Gangs that change while they run: files of their tasks are replaced, tasks join and leave.
#include "engine/conformance.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

using launch::FileChange;
using launch::PlannedFile;

class Changes : public Conformance {
 protected:
  Result<void> change(std::vector<FileChange> changes) {
    std::optional<Result<void>> result;
    bench_->engine().change_files(gang_, std::move(changes),
                                  [&](const Result<void>& changed) { result = changed; });
    EXPECT_FALSE(result) << "answered at once";
    bench_->wait_until([&] { return result.has_value(); });
    return result.value_or(base::Error{.what = "change_files() was never answered"});
  }

  Result<void> change_file(const std::string& path, const std::string& content,
                           mode_t mode = 0600) {
    return change({{.task = "main",
                    .files = {{.path = path, .content = content, .mode = mode}},
                    .hosts = {}}});
  }

  /// A script that finds its generated folder as $FOLDER, and a hostfile in it.
  TaskPlan plan(const std::string& text, const std::string& name = "main") {
    TaskPlan plan = script(text, name);
    plan.files = {{.path = "hostfile", .content = "old\n"}};
    plan.environment["FOLDER"] = bench_->engine().generated_folder(gang_, name, sandbox());
    return plan;
  }

  void start(const TaskPlan& plan) {
    const auto started = bench_->start(gang_, {plan});
    ASSERT_TRUE(started) << started.error().to_string();
  }

  void start_and_wait(const TaskPlan& plan) {
    start(plan);
    wait_for_output(plan.task);
  }

  void go(const std::string& name = "go") { ASSERT_TRUE(base::write_file(scratch_ / name, "")); }

  static constexpr const char* kWait = "until [ -e \"$SCRATCH/go\" ]; do sleep 0.01; done; ";
};

TEST_P(Changes, AChangedFileIsSeenByATaskThatRuns) {
  start_and_wait(plan(std::string("cat \"$FOLDER/hostfile\"; ") + kWait +
                      "cat \"$FOLDER/hostfile\"; stat -c %a \"$FOLDER/hostfile\""));

  const auto changed = change_file("hostfile", "new\n", 0640);

  ASSERT_TRUE(changed) << changed.error().to_string();
  go();
  bench_->wait_for_end("main");
  EXPECT_EQ(log_of("main"), "old\nnew\n640\n");
}

TEST_P(Changes, AFileThatWasNotThereComesWithTheFoldersAboveIt) {
  start_and_wait(plan(std::string("echo up; ") + kWait +
                      "cat \"$FOLDER/a/b/c\"; stat -c %a \"$FOLDER/a\"; ls -A \"$FOLDER/a/b\""));

  ASSERT_TRUE(change_file("a/b/c", "here\n"));

  go();
  bench_->wait_for_end("main");
  EXPECT_EQ(log_of("main"), "up\nhere\n700\nc\n");
}

TEST_P(Changes, AReaderSeesTheOldFileOrTheNewFile) {
  // The length of a version is its number, and it consists of that number alone.
  const auto version = [](int number) {
    std::string text;
    for (int i = 0; i < 1000 * number; ++i) text += std::to_string(number) + "\n";
    return text;
  };
  TaskPlan reader = plan(
      "while [ ! -e \"$SCRATCH/go\" ]; do "
      "awk '$1 != n { ++kinds; n = $1 } END { if (kinds != 1 || NR != 1000 * n) print \"torn\", "
      "kinds, NR, n; else print n }' \"$FOLDER/hostfile\" 2>&1; done");
  reader.files[0].content = version(9);
  start_and_wait(reader);

  for (int number = 1; number <= 8; ++number) {
    const auto changed = change_file("hostfile", version(number));
    ASSERT_TRUE(changed) << changed.error().to_string();
    const std::string seen = std::to_string(number) + "\n";
    bench_->wait_until([&] { return log_of("main").ends_with(seen); });
  }

  go();
  bench_->wait_for_end("main");
  const std::string log = log_of("main");
  EXPECT_EQ(log.find_first_not_of("123456789\n"), std::string::npos) << log;
  EXPECT_TRUE(log.ends_with("8\n"));
}

TEST_P(Changes, ALinkThatTheTaskPutInThePlaceOfAFileIsReplacedAndNotFollowed) {
  ASSERT_TRUE(base::write_file(scratch_ / "victim", "untouched\n"));
  fs::create_directory(scratch_ / "elsewhere");
  TaskPlan hostile =
      plan(std::string(
               "cd \"$FOLDER\"; ln -sf \"$SCRATCH/victim\" hostfile; ln -s \"$SCRATCH/elsewhere\" "
               "ssh; mkfifo pipe; echo up; ") +
           kWait +
           "for f in hostfile ssh pipe; do [ -L $f -o -p $f ] && echo $f is left; done; "
           "cat hostfile ssh/config pipe");
  start_and_wait(hostile);

  ASSERT_TRUE(change_file("hostfile", "new\n"));
  ASSERT_TRUE(change_file("ssh/config", "Host *\n"));
  ASSERT_TRUE(change_file("pipe", "file\n"));

  go();
  bench_->wait_for_end("main");
  EXPECT_EQ(log_of("main"), "up\nnew\nHost *\nfile\n");
  EXPECT_EQ(*base::read_file(scratch_ / "victim"), "untouched\n");
  EXPECT_TRUE(fs::is_empty(scratch_ / "elsewhere"));
}

TEST_P(Changes, AFolderOfTheTasksOwnInTheWayIsReportedAndTheOthersAreStillChanged) {
  start_and_wait(
      plan("cd \"$FOLDER\"; rm hostfile; mkdir hostfile; echo up; exec sleep " + marker_));
  start_and_wait(plan(std::string("echo up; ") + kWait + "cat \"$FOLDER/hostfile\"", "other"));
  const std::vector<PlannedFile> files{{.path = "hostfile", .content = "new\n"}};

  const auto changed = change({{"main", files, {}}, {"other", files, {}}});

  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, base::ErrorCode::kConflict);
  EXPECT_NE(changed.error().what.find("cannot change the files of main: cannot write 'hostfile'"),
            std::string::npos)
      << changed.error().what;
  go();
  bench_->wait_for_end("other");
  EXPECT_EQ(log_of("other"), "up\nnew\n");
  bench_->engine().stop(gang_, {"main"}, StopMode::kNow);
  bench_->wait_for_end("main");
}

TEST_P(Changes, EndedAndUnknownTasksAreNoError) {
  run(plan("true"));

  EXPECT_TRUE(change({{"main", {{.path = "hostfile", .content = "new\n"}}, {}},
                      {"nobody", {{.path = "hostfile", .content = "new\n"}}, {}}}));
  EXPECT_TRUE(change({}));
}

TEST_P(Changes, OfATaskThatIsStillStartingAreRefused) {
  std::optional<Result<void>> started;
  bench_->begin_start(gang_, {plan("true")}, started);

  const auto changed = change_file("hostfile", "new\n");

  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, base::ErrorCode::kConflict);
  bench_->wait_until([&] { return started.has_value(); });
  EXPECT_TRUE(started && *started);
  bench_->wait_for_end("main");
}

TEST_P(Changes, OfATaskThatANewEngineHasAdopted) {
  start_and_wait(plan(std::string("echo up; ") + kWait + "cat \"$FOLDER/hostfile\""));
  open_bench();
  ASSERT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kRunning);

  const auto changed = change_file("hostfile", "new\n");

  ASSERT_TRUE(changed) << changed.error().to_string();
  go();
  bench_->wait_for_end("main");
  EXPECT_EQ(log_of("main"), "up\nnew\n");
}

TEST_P(Changes, AHostfileIsInTheWordsOfTheTasksMpi) {
  ASSERT_TRUE(base::write_new_file(
      scratch_ / "mpirun",
      "#!/bin/sh\necho 'Intel(R) MPI Library for Linux* OS, Version 2021.13 Build 1'\n", 0755));
  TaskPlan launcher = plan(std::string("cat \"$FOLDER/hostfile\"; ") + kWait +
                           "cat \"$FOLDER/hostfile\" \"$FOLDER/hostfile.intel\"");
  launcher.files.push_back({.path = "hostfile.intel", .content = "old intel\n"});
  launcher.environment["PATH"] = scratch_.string() + ":/usr/bin:/bin";
  launcher.mpi.emplace();
  launcher.mpi->variants[job::MpiKind::kIntel] = {.environment = {},
                                                  .files = {{"hostfile", "hostfile.intel"}}};
  start_and_wait(launcher);

  ASSERT_TRUE(change({{.task = "main",
                       .files = {{.path = "hostfile", .content = "new\n"},
                                 {.path = "hostfile.intel", .content = "new intel\n"}},
                       .hosts = {}}}));

  go();
  bench_->wait_for_end("main");
  EXPECT_EQ(log_of("main"), "old intel\nnew intel\nnew intel\n");
}

INSTANTIATE_TEST_SUITE_P(Engines, Changes, testing::ValuesIn(grounds()), ground_name);

// --- tasks with a root of their own

class ChangesSetApart : public Changes {
 protected:
  /// A task that sends its name to callers of its port, and calls other tasks on request.
  TaskPlan peer(const std::string& name, const std::vector<std::string>& asks) {
    std::string text = std::string("echo up; ") + kWait;
    for (const std::string& other : asks) {
      text += "bash -c 'exec 3<>/dev/tcp/test-" + other + "/22022; cat <&3' 2>&1; ";
    }
    TaskPlan task = plan(text + "until [ -e \"$SCRATCH/end\" ]; do sleep 0.01; done", name);
    const bool has_names = GetParam().is_container;
    task.address = has_names ? task.hostname : address_of(name);
    task.ssh = launch::SshService{.port = 22022,
                                  .command = {"/bin/sh", "-c", "echo SSH-2.0-this is " + name},
                                  .bind = has_names ? "0.0.0.0" : ""};
    if (!has_names) task.hosts = {host(name)};
    return task;
  }

  /// A loopback address that differs between processes, because the suites of several engines run at
  /// the same time.
  static std::string address_of(const std::string& name) {
    return "127." + std::to_string(100 + ::getpid() % 100) + "." +
           std::to_string(::getpid() / 100 % 250) + "." + std::to_string(name.front());
  }
  static std::pair<std::string, std::string> host(const std::string& name) {
    return {"test-" + name, address_of(name)};
  }

  void start_peer(const std::string& name, const std::vector<std::string>& asks) {
    TaskPlan task = peer(name, asks);
    if (!GetParam().is_container) {
      for (const std::string& other : asks) task.hosts.push_back(host(other));
    }
    start(task);
    bench_->wait_for_answer(name);
    wait_for_output(name);
  }
};

TEST_P(ChangesSetApart, AChangedFileIsSeenAtItsOtherPathToo) {
  const std::string place = "/etc/mpi-" + marker_ + "/hostfile";
  TaskPlan both = plan("cat " + place + "; " + kWait + "cat " + place + " \"$FOLDER/hostfile\"");
  both.also_at = {{"hostfile", place}};
  start_and_wait(both);

  ASSERT_TRUE(change_file("hostfile", "new\n"));

  go();
  bench_->wait_for_end("main");
  EXPECT_EQ(log_of("main"), "old\nnew\nnew\n");
}

TEST_P(ChangesSetApart, TasksThatJoinLaterReachTheOthersAndAreReachedByName) {
  start_peer("a", {"b", "c"});
  start_peer("b", {"a", "c"});
  // Another server has taken over before the third task joins.
  open_bench();
  for (const char* name : {"a", "b"}) {
    ASSERT_EQ(bench_->engine().adopt(gang_, name), AdoptionResult::kRunning);
  }
  ASSERT_TRUE(change({{"a", {}, {host("b"), host("c")}}, {"b", {}, {host("a"), host("c")}}}));
  start_peer("c", {"a", "b"});

  go();

  const auto log_with = [](const std::string& one, const std::string& other) {
    return "up\nSSH-2.0-this is " + one + "\nSSH-2.0-this is " + other + "\n";
  };
  const std::map<std::string, std::string> expected{
      {"a", log_with("b", "c")}, {"b", log_with("a", "c")}, {"c", log_with("a", "b")}};
  for (const auto& [name, text] : expected) {
    bench_->wait_until([&] { return log_of(name).size() >= text.size(); });
    EXPECT_EQ(log_of(name), text);
  }
  go("end");
  for (const auto& [name, text] : expected) EXPECT_EQ(bench_->wait_for_end(name).status.code, 0);
}

TEST_P(ChangesSetApart, ATaskThatLeavesLeavesTheOthersTheirVolumesAndTheirNetwork) {
  const job::Volume shared{
      .kind = job::Volume::Kind::kArtifacts, .source = {}, .target = "/artifacts"};
  TaskPlan stays = peer("a", {"b"});
  stays.argv.back() = "echo kept > /artifacts/file; " + stays.argv.back() + "; cat /artifacts/file";
  TaskPlan leaves = plan("echo up; exec sleep " + marker_, "l");
  TaskPlan joins = peer("b", {});
  if (!GetParam().is_container) stays.hosts.push_back(host("b"));
  for (TaskPlan* task : {&stays, &leaves, &joins}) task->volumes.push_back(shared);
  ASSERT_TRUE(bench_->start(gang_, {stays, leaves}));
  bench_->wait_for_answer("a");
  wait_for_output("l");

  bench_->engine().stop(gang_, {"l"}, StopMode::kNow);
  bench_->wait_for_end("l");

  EXPECT_TRUE(processes_with(marker_).empty());
  start(joins);
  bench_->wait_for_answer("b");
  go();
  bench_->wait_until([&] { return log_of("a") == "up\nSSH-2.0-this is b\n"; });
  go("end");
  EXPECT_EQ(bench_->wait_for_end("a").status.code, 0);
  EXPECT_EQ(log_of("a"), "up\nSSH-2.0-this is b\nkept\n");
  bench_->wait_for_end("b");
}

INSTANTIATE_TEST_SUITE_P(Engines, ChangesSetApart,
                         testing::ValuesIn(grounds_where(&Ground::is_set_apart)), ground_name);

TEST_P(Changes, AFailedStartOfMoreTasksLeavesThoseThatRunAndCanBeTriedAgain) {
  start_and_wait(plan(std::string("echo up; ") + kWait + "cat \"$FOLDER/hostfile\""));
  TaskPlan bad = plan("echo up", "late");
  bad.address = "192.0.2.1";  // of no machine: nothing can listen there
  bad.ssh = launch::SshService{.port = 22222, .command = {"/bin/true"}, .bind = "192.0.2.1"};
  TaskPlan good = plan("echo beside", "good");

  ASSERT_FALSE(bench_->start(gang_, {good, bad}));

  bad.ssh.reset();
  const auto again = bench_->start(gang_, {good, bad});
  ASSERT_TRUE(again) << again.error().to_string();
  go();
  for (const char* name : {"main", "good", "late"}) {
    EXPECT_EQ(bench_->wait_for_end(name).status.code, 0) << name;
  }
  EXPECT_EQ(log_of("main"), "up\nold\n");
  EXPECT_EQ(log_of("good"), "beside\n");
}

// --- sandboxes

class ChangedHosts : public Changes {};

TEST_P(ChangedHosts, AReaderAlwaysFindsCompleteLinesAndEveryHost) {
  TaskPlan reader = plan(
      "while [ ! -e \"$SCRATCH/go\" ]; do awk '/worker/ { ++n; if ($2 != \"worker-\" n - 1 "
      "\"-end\" "
      "|| NF != 2) print \"torn\", $0 } END { if (n < last) print \"fewer\"; print n }' "
      "/etc/hosts; done");
  const auto host = [](int i) {
    return std::pair("worker-" + std::to_string(i) + "-end", "127.77.1." + std::to_string(i));
  };
  reader.hosts = {host(0)};
  start_and_wait(reader);

  std::vector<std::pair<std::string, std::string>> hosts{host(0)};
  for (int i = 1; i < 250; ++i) {  // more lines than fit into a page of memory
    hosts.push_back(host(i));
    ASSERT_TRUE(change({{"main", {}, hosts}}));
  }
  bench_->wait_until([&] { return log_of("main").ends_with("250\n"); });
  go();
  bench_->wait_for_end("main");

  const std::string log = log_of("main");
  EXPECT_EQ(log.find_first_not_of("0123456789\n"), std::string::npos) << log;
  EXPECT_TRUE(log.ends_with("250\n"));
}

// Some test programs have no engine for this suite.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ChangedHosts);
INSTANTIATE_TEST_SUITE_P(Engines, ChangedHosts,
                         testing::ValuesIn(grounds_where(&Ground::is_sandbox)), ground_name);

}  // namespace
}  // namespace muster::engine
