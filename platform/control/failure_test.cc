#include "control/failure.h"

#include <gtest/gtest.h>

#include <csignal>

#include "control/test_launcher_words.h"
#include "engine/fake_engine.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

TEST(Failure, NamesTheTaskTheCauseAndARemedy) {
  job::Task task{.name = "worker-1", .role = job::TaskRole::kWorker};
  task.exit = job::ExitStatus{.signal = SIGKILL, .out_of_memory = true};

  const job::Failure failure = failure_of(task, {"last"});

  EXPECT_EQ(failure.task, "worker-1");
  EXPECT_EQ(failure.cause,
            "worker-1 was killed by signal 9 (SIGKILL): the kernel's out-of-memory killer ended a "
            "process on this machine");
  EXPECT_NE(failure.advice.find("memory"), std::string::npos);
  EXPECT_EQ(failure.last_lines, std::vector<std::string>{"last"});
}

TEST(Failure, DerivesAdviceFromTheMessageOfTheLauncher) {
  job::Task task{.name = "launcher", .role = job::TaskRole::kLauncher};
  task.exit = job::ExitStatus{.code = 1};

  const job::Failure failure =
      failure_of(task, {"There are not enough slots available in the system"});

  EXPECT_NE(failure.advice.find("--workers"), std::string::npos);
}

TEST(Failure, ShowsTheFirstMessageOfTheLauncherAndNotTheEndOfItsExplanation) {
  job::Task task{.name = "launcher", .role = job::TaskRole::kLauncher};
  task.exit = job::ExitStatus{.code = 1};
  std::vector<std::string> lines(50, "long explanation");
  lines[20] = "There are not enough slots available in the system";

  const job::Failure failure = failure_of(task, lines);

  EXPECT_EQ(failure.last_lines.size(), 12U);
  EXPECT_EQ(failure.last_lines.front(), lines[20]);
}

job::Task launcher(job::ExitStatus status) {
  job::Task task{.name = "launcher", .role = job::TaskRole::kLauncher, .hostname = "dist-launcher"};
  task.exit = std::move(status);
  return task;
}

job::Task worker_task(const std::string& name) {
  return {.name = name, .role = job::TaskRole::kWorker, .hostname = "dist-" + name, .node = "n2"};
}

TEST(Failure, NamesTheRankThatFailedFirstAndWhereItRan) {
  Evidence evidence{.task = launcher({.code = 3}), .lines = lines_of(kOpenMpiExit3)};
  evidence.rank = first_failed(evidence.lines);
  evidence.where = worker_task("worker-1");
  evidence.rank_lines = {"loading", "no such data set"};

  const job::Failure failure = failure_of(evidence);

  EXPECT_EQ(failure.task, "worker-1");
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.cause, "rank 1 on worker-1 exited with code 3");
  EXPECT_EQ(failure.last_lines, evidence.rank_lines);
}

TEST(Failure, OfARankIsExplainedByTheExceptionThatItPrinted) {
  Evidence evidence{.task = launcher({.code = 1}), .lines = lines_of(kOpenMpiExit3)};
  evidence.rank = RankEnd{.rank = 1, .host = {}, .status = {.code = 1}};
  evidence.where = worker_task("worker-1");
  evidence.rank_lines = LastLines(70, "epoch");
  for (const char* line :
       {"Traceback (most recent call last):", "  File \"train.py\", line 4, in <module>",
        "ValueError: no data", "cleaning up"}) {
    evidence.rank_lines.emplace_back(line);
  }

  const job::Failure failure = failure_of(evidence);

  EXPECT_EQ(failure.cause,
            "rank 1 on worker-1 exited with code 1: ValueError: no data (train.py, line 4)");
  EXPECT_EQ(failure.last_lines.size(), 12U);
}

TEST(Failure, WithALongTracebackShowsAllLinesOfTheException) {
  LastLines lines{"Traceback (most recent call last):"};
  for (int i = 0; i < 12; ++i) lines.emplace_back("  File \"train.py\", line 4, in f");
  for (const char* line :
       {"RuntimeError: Error(s) in loading:", "\tMissing key(s): \"a\"", "bye"}) {
    lines.emplace_back(line);
  }

  const job::Failure failure = failure_of(launcher({.code = 1}), lines);

  EXPECT_EQ(failure.last_lines.size(), 12U);
  EXPECT_EQ(failure.last_lines.back(), "\tMissing key(s): \"a\"");
}

TEST(Failure, OfAKilledRankReportsWhetherTheKernelWasOutOfMemory) {
  Evidence evidence{.task = launcher({.code = 137}), .lines = lines_of(kOpenMpiKilled)};
  evidence.rank = first_failed(evidence.lines);
  evidence.where = worker_task("worker-1");
  evidence.where->exit = job::ExitStatus{.signal = SIGKILL, .stopped = true};

  EXPECT_EQ(failure_of(evidence).cause, "rank 1 on worker-1 was killed by signal 9 (SIGKILL)");
  EXPECT_NE(failure_of(evidence).advice.find("dmesg"), std::string::npos);

  evidence.where->exit->out_of_memory = true;
  EXPECT_EQ(failure_of(evidence).cause,
            "rank 1 on worker-1 was killed by signal 9 (SIGKILL): the kernel's out-of-memory "
            "killer ended a process on this machine");
}

TEST(Failure, OfARankWhoseOutputWentThroughTheLauncherShowsThatOutputWithoutTheLaunchersMessages) {
  Evidence evidence{.task = launcher({.code = 9}), .lines = lines_of(kMpichKilled)};
  evidence.rank = first_failed(evidence.lines);
  evidence.where = worker_task("worker-1");

  const job::Failure failure = failure_of(evidence);

  EXPECT_EQ(failure.task, "worker-1");
  EXPECT_FALSE(failure.rank);
  EXPECT_EQ(failure.cause, "a rank on worker-1 was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(failure.last_lines, (LastLines{"[launcher] rank 1 here", "[launcher] about to fail",
                                           "[launcher] ", "[launcher] rank 0 here"}));
}

TEST(Failure, OfARankThatPrintedNothingShowsNoLinesOfOtherRanks) {
  Evidence evidence{
      .task = launcher({.code = 1}),
      .lines = {"Traceback (most recent call last):", "  File \"train.py\", line 4, in f",
                "HorovodInternalError: it has left", "setting up"}};
  evidence.rank = RankEnd{.rank = 1, .host = {}, .status = {.code = 1}};
  evidence.where = worker_task("worker-1");
  evidence.untagged = LastLines{"setting up"};

  const job::Failure failure = failure_of(evidence);

  EXPECT_EQ(failure.cause, "rank 1 on worker-1 exited with code 1");
  EXPECT_EQ(failure.last_lines, LastLines{"[launcher] setting up"});
}

TEST(Failure, OfARankThatAbortedReportsThat) {
  Evidence evidence{.task = launcher({.code = 5}), .lines = lines_of(kMpichAbort)};
  evidence.rank = first_failed(evidence.lines);

  const job::Failure failure = failure_of(evidence);

  EXPECT_EQ(failure.cause, "rank 1 called MPI_Abort with error code 5");
  EXPECT_EQ(failure.task, "launcher");
  EXPECT_TRUE(failure.last_lines.empty());
}

TEST(Failure, OfAProgramThatMpirunDidNotFindDoesNotReadASignalIntoItsCode) {
  const job::Failure failure = failure_of(launcher({.code = 134}), lines_of(kOpenMpiNotFound));

  EXPECT_EQ(failure.cause, "launcher exited with code 134: mpirun did not find the program");
  EXPECT_NE(failure.advice.find("full path"), std::string::npos);
}

TEST(Failure, OfARankThatEndedWithoutMpiFinalizeNamesIt) {
  Evidence evidence{.task = launcher({.code = 1}), .lines = lines_of(kOpenMpiUnfinalized)};
  evidence.rank = first_failed(evidence.lines);
  evidence.where = worker_task("worker-1");
  evidence.rank_lines = {"no work for me"};

  const job::Failure failure = failure_of(evidence);

  EXPECT_EQ(failure.cause, "rank 1 on worker-1 ended without MPI_Finalize");
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.last_lines, evidence.rank_lines);
  EXPECT_NE(failure.advice.find("MPI_Finalize before every exit"), std::string::npos);
}

TEST(Failure, OfAProgramThatMpirunMayNotExecuteNamesItAndTheWorker) {
  const job::Failure failure = failure_of(launcher({.code = 132}), lines_of(kOpenMpiNotExecutable));

  EXPECT_EQ(failure.cause,
            "launcher exited with code 132: mpirun could not execute './train' on dist-worker-0");
  EXPECT_NE(failure.advice.find("chmod +x"), std::string::npos);
  EXPECT_EQ(failure.last_lines.back(), "while attempting to start process rank 0.");
}

TEST(Failure, OfAnUnknownHostNamesItWithoutTheGuessesOfOpenMpi) {
  const job::Failure failure = failure_of(launcher({.code = 255}), lines_of(kOpenMpiUnknownHost));

  EXPECT_EQ(failure.cause, "launcher exited with code 255: ssh could not resolve host 'foo'");
  EXPECT_NE(failure.advice.find("remove -H"), std::string::npos);
  EXPECT_EQ(failure.last_lines,
            LastLines{"ssh: Could not resolve hostname foo: Name or service not known"});

  const job::Failure by_agent = failure_of(
      launcher({.code = 255}),
      {"muster-rsh: this job has no host 'foo'", "  its hosts are dist-worker-0, dist-worker-1"});
  EXPECT_EQ(by_agent.cause, "launcher exited with code 255: this job has no host 'foo'");
}

TEST(Failure, OfARefusedLoginShowsItBeforeTheReportOfMpirun) {
  const job::Failure failure = failure_of(launcher({.code = 255}), lines_of(kOpenMpiRefusedLogin));

  EXPECT_EQ(failure.cause, "launcher exited with code 255: an ssh login was refused");
  EXPECT_EQ(failure.last_lines, LastLines{"root@dist-worker-0: Permission denied (publickey)."});
}

TEST(Failure, OfAScriptWithoutItsInterpreterUnderMpirunNamesTheInterpreter) {
  const job::Failure failure = failure_of(launcher({.code = 131}), lines_of(kOpenMpiNoInterpreter));

  EXPECT_EQ(failure.cause,
            "launcher exited with code 131: the first line of a script names an interpreter that "
            "does not exist");
  EXPECT_EQ(failure.last_lines,
            LastLines{"  Error:             ./train.py has a bad interpreter on "
                      "the first line."});
}

TEST(Failure, ShowsNoWarningOfOpenMpiThatNothingFollowsFrom) {
  const std::string warning =
      "[dist-launcher:00003] plm:rsh: Warning: setpgid(8,8) failed in parent with "
      "errno=Permission denied(13)";

  EXPECT_EQ(failure_of(launcher({.code = 7}), {"epoch 1", warning, "bye"}).last_lines,
            (LastLines{"epoch 1", "bye"}));
}

TEST(Failure, OfAShellThatFindsNoInterpreterHasARemedy) {
  const struct {
    std::string line;
    std::string advice;
  } cases[] = {
      {"muster: cannot run the command: the first line of './a.py' names the interpreter "
       "'/usr/bin/pythn3', which does not exist",
       "correct that line"},
      {"bash: ./a.sh: /bin/sh^M: bad interpreter: No such file or directory", "convert its line"},
      {"/usr/bin/env: ‘python3\\r’: No such file or directory", "convert its line"},
      {"bash: ./a.sh: /bin/nosh: bad interpreter: No such file or directory", "correct that line"},
      {"bash: line 1: ./a.sh: cannot execute: required file not found", "correct that line"},
  };
  for (const auto& known : cases) {
    const job::Failure failure = failure_of(launcher({.code = 127}), {known.line});
    EXPECT_NE(failure.advice.find(known.advice), std::string::npos) << known.line;
    EXPECT_EQ(words::sentence(failure.cause).find("the command was not found"), std::string::npos)
        << failure.cause;
  }
}

TEST(Failure, ThatTheShimExplainsKeepsItsWordsAndItsAdvice) {
  job::Task task{.name = "main"};
  task.exit = job::ExitStatus{.code = 126,
                              .error = "cannot enter the working folder '/nope'",
                              .advice = "choose another folder"};

  const job::Failure failure = failure_of(
      task, {"muster: cannot enter the working folder '/nope': No such file or directory"});

  EXPECT_EQ(failure.cause, "main exited with code 126: cannot enter the working folder '/nope'");
  EXPECT_EQ(failure.advice, "choose another folder");
}

// --- in containers

job::Failure failure_in(const Container& container, job::ExitStatus status, LastLines lines = {}) {
  job::Task task{.name = "main"};
  task.exit = std::move(status);
  return failure_of({.task = task, .lines = std::move(lines), .container = container});
}

const Container kImage{.image = "tf:2"};
const Container kSmall{.image = "tf:2", .memory_bytes = int64_t{2} << 30};

TEST(FailureInAContainer, ThatRanOutOfMemoryNamesItsLimit) {
  for (const job::ExitStatus& killed : {job::ExitStatus{.signal = SIGKILL, .out_of_memory = true},
                                        job::ExitStatus{.code = 137, .out_of_memory = true}}) {
    const job::Failure failure = failure_in(kSmall, killed);
    EXPECT_EQ(failure.cause, "main was killed: out of memory (its limit is 2Gi)");
    EXPECT_NE(failure.advice.find("--memory"), std::string::npos);
  }
  EXPECT_EQ(failure_in(kSmall, {.code = 3, .out_of_memory = true}).cause,
            "main exited with code 3: out of memory (its limit is 2Gi)");
  EXPECT_EQ(failure_in(kImage, {.signal = SIGKILL, .out_of_memory = true}).cause,
            "main was killed by signal 9 (SIGKILL): the kernel's out-of-memory killer ended a "
            "process on this machine");
}

TEST(FailureInAContainer, ThatWasKilledFromOutsideStatesThatMusterDidNotKillIt) {
  const job::Failure failure = failure_in(kSmall, {.signal = SIGKILL});

  EXPECT_EQ(failure.cause, "main was killed by signal 9 (SIGKILL)");
  EXPECT_NE(failure.advice.find("a user ended the container"), std::string::npos);
}

TEST(FailureInAContainer, WhoseProgramIsNotInTheImageNamesTheImage) {
  const job::Failure failure = failure_in(kImage, {.code = 127, .error = "'train' was not found"});

  EXPECT_EQ(failure.cause,
            "main exited with code 127: the command was not found in image 'tf:2' ('train' was not "
            "found)");
  EXPECT_NE(failure.advice.find("an image that has the program"), std::string::npos);
}

TEST(FailureInAContainer, ThatCouldNotWriteNamesWritableFolders) {
  const LastLines lines{"sh: 1: cannot create /data/x: Read-only file system"};

  EXPECT_NE(failure_in(kImage, {.code = 2}, lines).advice.find("--writable-root"),
            std::string::npos);
  const Container writable{.image = "tf:2", .is_writable = true};
  EXPECT_EQ(failure_in(writable, {.code = 2}, lines).advice.find("--writable-root"),
            std::string::npos);
}

TEST(FailureInAContainer, ThatWasLostHasTheMessageOfTheEngine) {
  EXPECT_EQ(failure_in(kImage, {.lost = true, .error = "its container was removed"}).cause,
            "main was lost: its container was removed");
}

/// A job of two workers whose tasks have printed something.
class Gathered : public testing::Test {
 protected:
  Gathered() {
    job_.tasks = {launcher({.code = 3}), worker_task("worker-0"), worker_task("worker-1")};
    engine_.logs["launcher"] = [] {
      std::string text;
      for (const std::string& line : lines_of(kOpenMpiKilled)) text += line + "\n";
      return text;
    }();
  }

  Evidence gather() { return evidence_of(engine_, {"j1", 1}, job_, job_.tasks[0]); }

  base::EventLoop loop_;
  engine::FakeEngine engine_{loop_};
  job::Job job_{.id = "j1", .spec = {.name = "dist", .kind = job::Kind::kMpi, .workers = 2}};
};

TEST_F(Gathered, ARankIsLookedForWhereTheCensusSaw) {
  engine_.census = {{0, 2, "worker-1"}, {1, 2, "worker-0"}};

  const Evidence evidence = gather();

  EXPECT_EQ(evidence.rank->rank, 1);
  EXPECT_EQ(evidence.where->name, "worker-0");
  EXPECT_EQ(culprit_of(evidence).node, "n2");
  EXPECT_EQ(culprit_of(evidence).exit->code, 3);
}

TEST_F(Gathered, WithoutACensusTheHostThatTheLauncherNamesIsItsTask) {
  EXPECT_EQ(gather().where->name, "worker-1");
}

TEST_F(Gathered, TheContainerIsThatOfTheTaskWhereItWentWrong) {
  EXPECT_FALSE(gather().container);
  engine_.images = true;
  job_.spec.image = "workers:1";
  job_.spec.leader.image = "launcher:1";
  job_.spec.resources.memory_bytes = 100;

  EXPECT_EQ(gather().container->image, "workers:1");
  EXPECT_EQ(gather().container->memory_bytes, 100);
  job_.tasks[0].exit = job::ExitStatus{.lost = true};
  EXPECT_EQ(gather().container->image, "launcher:1");
}

TEST_F(Gathered, AWorkerWhoseDaemonEndedIsNamed) {
  job_.tasks[0].exit = job::ExitStatus{.code = 205};
  engine_.logs["launcher"] = std::string(kOpenMpiLostDaemon.substr(1));

  const job::Failure failure = failure_of(gather());

  EXPECT_EQ(failure.task, "worker-0");
  EXPECT_EQ(failure.cause,
            "worker-0: mpirun's daemon there (orted) or its remote shell session ended; launcher "
            "exited with code 205");
  EXPECT_EQ(culprit_of(gather()).node, "n2");
}

TEST_F(Gathered, AWorkerWhoseSshSessionEndedIsNamedByItsAddress) {
  job_.tasks[0].exit = job::ExitStatus{.code = 255};
  engine_.logs["launcher"] = std::string(kOpenMpiLostSession.substr(1));

  const auto failure = [&](const TasksByAddress& addresses) {
    return failure_of(evidence_of(engine_, {"j1", 1}, job_, job_.tasks[0], addresses));
  };

  EXPECT_EQ(failure({{"127.44.0.2", "worker-0"}, {"127.44.0.3", "worker-1"}}).task, "worker-1");
  // A server that recovered the job has not planned it, and has no addresses.
  EXPECT_EQ(failure({}).cause,
            "the worker at 127.44.0.3: mpirun's daemon there (orted) or its remote shell session "
            "ended; launcher exited with code 255");
}

class GatheredOfPyTorch : public Gathered {
 protected:
  GatheredOfPyTorch() {
    job_.spec.kind = job::Kind::kTorch;
    job_.tasks = {{.name = "master", .role = job::TaskRole::kMaster}, worker_task("worker-0")};
    job_.tasks[0].exit = job::ExitStatus{.code = 1};
    job_.tasks[0].ended = base::Time(std::chrono::seconds(20));
    job_.tasks[1].exit = job::ExitStatus{};
    job_.tasks[1].ended = base::Time(std::chrono::seconds(10));
    print("RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer");
  }

  void print(const std::string& exception) {
    engine_.logs["master"] =
        "Traceback (most recent call last):\n  File \"train.py\", line 28, in f\n" + exception +
        "\n";
  }
};

TEST_F(GatheredOfPyTorch, ATaskThatHadExitedWithCode0IsNamedIfTheFailureIsAConsequence) {
  const job::Failure failure = failure_of(gather());

  EXPECT_EQ(failure.task, "master");
  EXPECT_EQ(
      failure.cause,
      "master exited with code 1: RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection "
      "closed by peer (train.py, line 28); worker-0 had exited with code 0 before");
  EXPECT_TRUE(failure.advice.starts_with("the other tasks still needed worker-0"));
}

TEST_F(GatheredOfPyTorch, ATaskThatHadExitedWithCode0IsNotNamedWithoutAConsequence) {
  job_.tasks[1].ended = job_.tasks[0].ended;
  EXPECT_EQ(gather().exited_before, "") << "it did not end before";

  job_.tasks[1].ended = base::Time(std::chrono::seconds(10));
  EXPECT_EQ(gather().exited_before, "worker-0");
  job_.tasks[0].exit = job::ExitStatus{.signal = SIGKILL};
  EXPECT_EQ(gather().exited_before, "") << "the master was killed";

  job_.tasks[0].exit = job::ExitStatus{.code = 1};
  print("ValueError: no data");
  EXPECT_EQ(gather().exited_before, "") << "the error is the master's own";
}

TEST_F(Gathered, AStoppedOrLostTaskNamesNoRank) {
  job_.tasks[0].exit = job::ExitStatus{.lost = true};
  EXPECT_FALSE(gather().rank);
}

}  // namespace
}  // namespace muster::control
