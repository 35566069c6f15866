// Requirements on every engine for a program that runs in a task beside the task's own program.
#include <signal.h>

#include <memory>
#include <optional>

#include "engine/conformance.h"

namespace muster::engine {
namespace {

/// A running program, and its output and end so far.
struct RecordedExec {
  std::string output;
  std::string error;
  std::optional<job::ExitStatus> status;
  std::unique_ptr<Exec> exec;
};

class ExecConformance : public Conformance {
 protected:
  ExecConformance() { ::signal(SIGPIPE, SIG_IGN); }

  void TearDown() override {
    if (!started_) return;
    bench_->engine().stop(gang_, {"main"}, StopMode::kNow);
    bench_->wait_for_end("main");
  }

  /// A task that runs until it is stopped.
  void start_task() {
    TaskPlan plan = script("echo up; sleep " + marker_);
    plan.environment["SECRET"] = "of the task";
    ASSERT_TRUE(bench_->start(gang_, {plan}));
    started_ = true;
    wait_for_output("main");
  }

  Result<std::unique_ptr<Exec>> exec(const ExecPlan& plan, RecordedExec& recorded) {
    return bench_->engine().exec(gang_, "main", plan,
                                 {.on_output =
                                      [&recorded](std::string_view bytes, bool is_error) {
                                        EXPECT_FALSE(recorded.status) << "output after the exit";
                                        (is_error ? recorded.error : recorded.output) += bytes;
                                      },
                                  .on_exit =
                                      [&recorded](const job::ExitStatus& status) {
                                        EXPECT_FALSE(recorded.status) << "a second exit";
                                        recorded.status = status;
                                      }});
  }

  void begin(const ExecPlan& plan, RecordedExec& recorded) {
    auto started = exec(plan, recorded);
    ASSERT_TRUE(started) << started.error().to_string();
    recorded.exec = *std::move(started);
  }

  /// Whether the program runs, which may be reported late. Its output is held back.
  Result<void> how_it_begins(const ExecPlan& plan, RecordedExec& recorded) {
    MUSTER_TRY(recorded.exec, exec(plan, recorded));
    recorded.exec->pause(true);
    const auto begun = std::make_shared<std::optional<Result<void>>>();
    recorded.exec->when_begun([begun](Result<void> how) { *begun = std::move(how); });
    bench_->wait_until([&] { return begun->has_value(); });
    return begun->value_or(
        base::Error{.code = base::ErrorCode::kTimeout, .what = "never reported"});
  }

  void wait_for_exit(const RecordedExec& recorded) {
    bench_->wait_until([&] { return recorded.status.has_value(); });
    ASSERT_TRUE(recorded.status) << "it never ended; so far: " << recorded.output << recorded.error;
  }

  void wait_for(const RecordedExec& recorded, const std::string& text) {
    bench_->wait_until([&] { return recorded.output.find(text) != std::string::npos; });
    ASSERT_NE(recorded.output.find(text), std::string::npos) << recorded.output << recorded.error;
  }

  void wait_until_none_has(const std::string& word) {
    bench_->wait_until([&] { return processes_with(word).empty(); });
    EXPECT_TRUE(processes_with(word).empty());
  }

  static ExecPlan shell(const std::string& text, bool terminal = false) {
    return {.argv = {"sh", "-c", text}, .environment = {}, .terminal = terminal};
  }

  RecordedExec run_shell(const std::string& text, bool terminal = false) {
    RecordedExec recorded;
    begin(shell(text, terminal), recorded);
    wait_for_exit(recorded);
    return recorded;
  }

 private:
  bool started_ = false;
};

TEST_P(ExecConformance, ReportsBothOutputsSeparatelyAndTheExitCode) {
  start_task();

  const RecordedExec recorded = run_shell("echo out; echo err >&2; exit 3");

  EXPECT_EQ(recorded.output, "out\n");
  EXPECT_EQ(recorded.error, "err\n");
  EXPECT_EQ(recorded.status->code, 3);
  EXPECT_EQ(recorded.status->signal, 0);
}

TEST_P(ExecConformance, ReportsTheSignalThatEndedTheProgram) {
  start_task();

  EXPECT_EQ(run_shell("kill -SEGV $$").status->signal, SIGSEGV);
}

TEST_P(ExecConformance, RunsInTheTasksPlaceWithItsEnvironment) {
  start_task();
  RecordedExec recorded;
  begin({.argv = {"sh", "-c", "echo $SECRET/$EXTRA/$PATH; pwd; hostname"},
         .environment = {{"EXTRA", "more"}, {"PATH", "/bin:/usr/bin"}}},
        recorded);

  wait_for_exit(recorded);

  EXPECT_EQ(recorded.output, "of the task/more//bin:/usr/bin\n" + scratch_.string() + "\n" +
                                 (GetParam().is_set_apart ? "test-main" : host_name()) + "\n");
}

TEST_P(ExecConformance, GivesTheProgramAllInputAndThenItsEnd) {
  start_task();
  std::string input(1 << 20, 'x');
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<char>(i * 7);
  RecordedExec recorded;
  begin({.argv = {"cat"}}, recorded);

  recorded.exec->write(input);
  recorded.exec->close_input();

  wait_for_exit(recorded);
  EXPECT_EQ(recorded.output.size(), input.size());
  EXPECT_EQ(recorded.output, input);
  EXPECT_EQ(recorded.status->code, 0);
}

TEST_P(ExecConformance, SurvivesInputThatTheProgramDoesNotRead) {
  start_task();
  RecordedExec recorded;
  begin(shell("exec 0<&-; echo closed; until [ -e $SCRATCH/go ]; do sleep 0.01; done; exit 7"),
        recorded);
  wait_for(recorded, "closed\n");

  recorded.exec->write("nobody reads this");
  ASSERT_TRUE(base::write_file(scratch_ / "go", ""));

  wait_for_exit(recorded);
  EXPECT_EQ(recorded.status->code, 7);
}

TEST_P(ExecConformance, ReportsWhenItAcceptsMoreInput) {
  start_task();
  bool drained = false;
  RecordedExec recorded;
  auto started = bench_->engine().exec(
      gang_, "main", shell("read line; cat | wc -c"),
      {.on_output = [&](std::string_view bytes, bool) { recorded.output += bytes; },
       .on_exit = [&](const job::ExitStatus& status) { recorded.status = status; },
       .on_drain = [&] { drained = true; }});
  ASSERT_TRUE(started) << started.error().to_string();

  (*started)->write(std::string(1 << 20, 'x'));
  EXPECT_GT((*started)->waiting(), Exec::kHigh);
  (*started)->write("\n");
  (*started)->close_input();

  wait_for_exit(recorded);
  EXPECT_TRUE(drained);
  EXPECT_EQ((*started)->waiting(), 0U);
}

TEST_P(ExecConformance, HoldsOutputBackWhileItIsPaused) {
  constexpr size_t kWhole = 10 << 20;
  start_task();
  RecordedExec recorded;
  begin(shell("head -c " + std::to_string(kWhole) + " /dev/zero"), recorded);
  recorded.exec->pause(true);
  const size_t before = recorded.output.size();
  RecordedExec other;
  begin(shell("echo meanwhile"), other);
  wait_for_exit(other);
  EXPECT_EQ(recorded.output.size(), before);

  recorded.exec->pause(false);

  wait_for_exit(recorded);
  EXPECT_EQ(recorded.output.size(), kWhole);
}

TEST_P(ExecConformance, GivesTheProgramATerminalOfTheRequestedSize) {
  start_task();
  ExecPlan plan = shell("stty size; test -t 0 && test -t 1 && test -t 2 && tty", true);
  plan.rows = 33;
  plan.columns = 101;
  RecordedExec recorded;

  begin(plan, recorded);

  wait_for_exit(recorded);
  EXPECT_TRUE(recorded.output.starts_with("33 101\r\n/dev/pts/")) << recorded.output;
  EXPECT_EQ(recorded.error, "");
  EXPECT_EQ(recorded.status->code, 0);
}

TEST_P(ExecConformance, ReportsAChangedTerminalSizeToTheProgram) {
  start_task();
  RecordedExec recorded;
  begin(shell("trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done", true),
        recorded);
  wait_for(recorded, "ready\r\n");

  recorded.exec->resize(50, 132);

  wait_for_exit(recorded);
  EXPECT_EQ(recorded.output, "ready\r\n50 132\r\n");
}

TEST_P(ExecConformance, ItsTerminalControlsIt) {
  start_task();
  RecordedExec recorded;
  begin(
      shell("trap 'echo interrupted; exit 4' INT; echo ready; while :; do sleep 0.01; done", true),
      recorded);
  wait_for(recorded, "ready\r\n");

  recorded.exec->write("\x03");  // as if Ctrl-C were pressed

  wait_for_exit(recorded);
  EXPECT_EQ(recorded.output, "ready\r\n^Cinterrupted\r\n");
  EXPECT_EQ(recorded.status->code, 4);
}

TEST_P(ExecConformance, EndsTheInputOfATerminal) {
  start_task();
  RecordedExec recorded;
  begin({.argv = {"cat"}, .environment = {}, .terminal = true}, recorded);
  recorded.exec->write("line\n");
  wait_for(recorded, "line\r\nline\r\n");

  recorded.exec->close_input();

  wait_for_exit(recorded);
  EXPECT_EQ(recorded.status->code, 0);
}

TEST_P(ExecConformance, LosesNothingOfALongOutputOfATerminal) {
  start_task();

  const RecordedExec recorded =
      run_shell("i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done", true);

  EXPECT_TRUE(recorded.output.ends_with("\r\n19999\r\n"));
  EXPECT_EQ(std::count(recorded.output.begin(), recorded.output.end(), '\n'), 20'000);
}

TEST_P(ExecConformance, EndsWithTheTask) {
  start_task();
  RecordedExec recorded;
  const std::string own = "7" + marker_;
  begin(shell("echo ready; sleep " + own), recorded);
  wait_for(recorded, "ready\n");

  bench_->engine().stop(gang_, {"main"}, StopMode::kNow);

  bench_->wait_for_end("main");
  wait_for_exit(recorded);
  EXPECT_FALSE(recorded.status->succeeded());
  wait_until_none_has(own);
}

TEST_P(ExecConformance, EndsWhenItsCallerIsGone) {
  start_task();
  for (const bool terminal : {false, true}) {
    RecordedExec recorded;
    const std::string own = (terminal ? "8" : "9") + marker_;
    begin(shell("trap '' TERM; echo ready; sleep " + own, terminal), recorded);
    wait_for(recorded, "ready");

    recorded.exec.reset();

    wait_until_none_has(own);
    EXPECT_FALSE(recorded.status);
  }
  EXPECT_FALSE(processes_with(marker_).empty());  // the task runs on
}

TEST_P(ExecConformance, KillsAProgramThatDoesNotHeedTheHangUp) {
  start_task();
  RecordedExec recorded;
  const std::string own = "6" + marker_;
  begin(shell("trap '' HUP; echo ready; sleep " + own), recorded);
  wait_for(recorded, "ready");

  recorded.exec.reset();

  wait_until_none_has(own);
}

TEST_P(ExecConformance, MayBeDroppedByItsOwnCallbacks) {
  start_task();
  std::unique_ptr<Exec> first;
  bool has_output = false;
  auto started = bench_->engine().exec(gang_, "main", shell("echo ready; sleep 5" + marker_),
                                       {.on_output =
                                            [&](std::string_view, bool) {
                                              has_output = true;
                                              first.reset();
                                            },
                                        .on_exit = [](const job::ExitStatus&) { FAIL(); }});
  ASSERT_TRUE(started) << started.error().to_string();
  first = *std::move(started);

  bench_->wait_until([&] { return has_output; });

  EXPECT_EQ(first, nullptr);
  wait_until_none_has("5" + marker_);
}

TEST_P(ExecConformance, RefusesAProgramThatTheTaskDoesNotHave) {
  start_task();
  RecordedExec recorded;

  for (const char* name : {"no-such-program", "/no/such/program", "./none"}) {
    const std::string words = "the task has no program '" + std::string(name) + "'";
    const auto begun = how_it_begins({.argv = {name}}, recorded);
    ASSERT_FALSE(begun) << name;
    EXPECT_EQ(begun.error().code, base::ErrorCode::kNotFound);
    EXPECT_EQ(begun.error().what, words);
    EXPECT_FALSE(recorded.status);
  }
}

TEST_P(ExecConformance, ReportsItsStartAlsoWhileItIsPaused) {
  start_task();
  RecordedExec recorded;

  ASSERT_TRUE(how_it_begins(shell("echo begun"), recorded));
  EXPECT_EQ(recorded.output, "");
  recorded.exec->pause(false);

  wait_for_exit(recorded);
  EXPECT_EQ(recorded.output, "begun\n");
}

TEST_P(ExecConformance, AProgramThatNobodyAskedWhetherItBeganEndsInstead) {
  start_task();
  RecordedExec recorded;
  auto started = exec({.argv = {"no-such-program"}}, recorded);
  if (!started) return;  // reported at once

  wait_for_exit(recorded);

  EXPECT_EQ(recorded.status->code, 127);
  EXPECT_EQ(recorded.status->error, "the task has no program 'no-such-program'");
}

TEST_P(ExecConformance, RefusesATaskThatDoesNotRun) {
  RecordedExec recorded;
  EXPECT_EQ(exec({.argv = {"true"}}, recorded).error().code, base::ErrorCode::kConflict);
  run(script("true"));

  const auto started = exec({.argv = {"true"}}, recorded);

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, base::ErrorCode::kConflict);
  EXPECT_EQ(started.error().what, "task main does not run");
}

TEST_P(ExecConformance, LeavesNoDescriptorAndNoProcessBehind) {
  start_task();
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(std::filesystem::begin(all), std::filesystem::end(all));
  };
  const auto before = descriptors();
  constexpr int kRuns = 4;

  for (int run = 0; run < kRuns; ++run) {
    for (const bool terminal : {false, true}) run_shell("true", terminal);
  }

  // An engine opens and closes some descriptors in the meantime, for example to query Slurm.
  bench_->wait_until([&] { return descriptors() < before + kRuns; });
  EXPECT_LT(descriptors(), before + kRuns);
}

TEST_P(ExecConformance, HandsOnlyItsThreeDescriptorsDown) {
  start_task();

  const RecordedExec recorded = run_shell("ls /proc/self/fd");

  EXPECT_EQ(recorded.output, "0\n1\n2\n3\n");  // 3: the folder that ls reads
}

/// A task without a program and without a remote shell: srun brings the ranks into its sandbox.
class StopOfATaskWithoutAShell : public ExecConformance {
 protected:
  void start_empty_task() {
    TaskPlan plan = script("");
    plan.argv.clear();
    plan.grace = std::chrono::hours(1);
    const auto started = bench_->start(gang_, {plan});
    ASSERT_TRUE(started) << started.error().to_string();
  }
};

TEST_P(StopOfATaskWithoutAShell, WaitsForProgramsFromOutside) {
  start_empty_task();
  RecordedExec recorded;
  begin(shell("trap 'echo stopping; head -n1 > $SCRATCH/saved; exit 0' TERM; echo up; sleep " +
              marker_ + " & wait"),
        recorded);
  wait_for(recorded, "up");

  bench_->engine().stop(gang_, {"main"}, StopMode::kGraceful);
  wait_for(recorded, "stopping");
  bench_->wait_until([&] { return std::filesystem::exists(scratch_ / "saved"); });
  // The task looks for further programs: it has seen `head` when it ends one that came after it.
  EXPECT_EQ(run_shell("exec sleep " + marker_).status->signal, SIGTERM);
  recorded.exec->write("saved\n");

  const TaskEnded end = bench_->wait_for_end("main");
  EXPECT_EQ(end.status.signal, SIGTERM);
  EXPECT_TRUE(end.status.stopped);
  EXPECT_EQ(*base::read_file(scratch_ / "saved"), "saved\n");
}

TEST_P(StopOfATaskWithoutAShell, DoesNotWaitForProgramsOnATerminal) {
  start_empty_task();
  RecordedExec recorded;
  begin(shell("trap '' TERM; echo up; sleep " + marker_, true), recorded);
  wait_for(recorded, "up");

  bench_->engine().stop(gang_, {"main"}, StopMode::kGraceful);

  EXPECT_EQ(bench_->wait_for_end("main").status.signal, SIGTERM);
  wait_until_none_has(marker_);
}

TEST_P(StopOfATaskWithoutAShell, EndsTheOrphansOfPrograms) {
  start_empty_task();
  ASSERT_EQ(run_shell("sleep " + marker_ + " < /dev/null > /dev/null 2>&1 & exit 0").status->code,
            0);
  ASSERT_FALSE(processes_with(marker_).empty());

  bench_->engine().stop(gang_, {"main"}, StopMode::kGraceful);

  EXPECT_EQ(bench_->wait_for_end("main").status.signal, SIGTERM);
  wait_until_none_has(marker_);
}

// Some test programs have no engine for this suite.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StopOfATaskWithoutAShell);
INSTANTIATE_TEST_SUITE_P(Engines, StopOfATaskWithoutAShell,
                         testing::ValuesIn(grounds_where(&Ground::is_sandbox)), ground_name);
INSTANTIATE_TEST_SUITE_P(Engines, ExecConformance, testing::ValuesIn(grounds()), ground_name);

}  // namespace
}  // namespace muster::engine
