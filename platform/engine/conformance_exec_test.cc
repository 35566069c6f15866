// Requirements on every engine for a program that runs in a task beside the task's own program.
#include <signal.h>

#include <memory>
#include <optional>

#include "engine/conformance.h"

namespace muster::engine {
namespace {

/// A running program, and its output and end so far.
struct HeardExec {
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

  Result<std::unique_ptr<Exec>> exec(const ExecPlan& plan, HeardExec& heard) {
    return bench_->engine().exec(gang_, "main", plan,
                                 {.on_output =
                                      [&heard](std::string_view bytes, bool is_error) {
                                        EXPECT_FALSE(heard.status) << "output after the exit";
                                        (is_error ? heard.error : heard.output) += bytes;
                                      },
                                  .on_exit =
                                      [&heard](const job::ExitStatus& status) {
                                        EXPECT_FALSE(heard.status) << "a second exit";
                                        heard.status = status;
                                      }});
  }

  void begin(const ExecPlan& plan, HeardExec& heard) {
    auto started = exec(plan, heard);
    ASSERT_TRUE(started) << started.error().to_string();
    heard.exec = *std::move(started);
  }

  /// Whether the program runs, which may be reported late. Its output is held back.
  Result<void> how_it_begins(const ExecPlan& plan, HeardExec& heard) {
    MUSTER_TRY(heard.exec, exec(plan, heard));
    heard.exec->pause(true);
    const auto told = std::make_shared<std::optional<Result<void>>>();
    heard.exec->when_begun([told](Result<void> how) { *told = std::move(how); });
    bench_->wait_until([&] { return told->has_value(); });
    return told->value_or(base::Error{.code = base::ErrorCode::kTimeout, .what = "never told"});
  }

  void wait_for_exit(const HeardExec& heard) {
    bench_->wait_until([&] { return heard.status.has_value(); });
    ASSERT_TRUE(heard.status) << "it never ended; so far: " << heard.output << heard.error;
  }

  void wait_for(const HeardExec& heard, const std::string& text) {
    bench_->wait_until([&] { return heard.output.find(text) != std::string::npos; });
    ASSERT_NE(heard.output.find(text), std::string::npos) << heard.output << heard.error;
  }

  void wait_until_none_has(const std::string& word) {
    bench_->wait_until([&] { return processes_with(word).empty(); });
    EXPECT_TRUE(processes_with(word).empty());
  }

  static ExecPlan shell(const std::string& text, bool terminal = false) {
    return {.argv = {"sh", "-c", text}, .environment = {}, .terminal = terminal};
  }

  HeardExec run_shell(const std::string& text, bool terminal = false) {
    HeardExec heard;
    begin(shell(text, terminal), heard);
    wait_for_exit(heard);
    return heard;
  }

 private:
  bool started_ = false;
};

TEST_P(ExecConformance, ReportsBothOutputsSeparatelyAndTheExitCode) {
  start_task();

  const HeardExec heard = run_shell("echo out; echo err >&2; exit 3");

  EXPECT_EQ(heard.output, "out\n");
  EXPECT_EQ(heard.error, "err\n");
  EXPECT_EQ(heard.status->code, 3);
  EXPECT_EQ(heard.status->signal, 0);
}

TEST_P(ExecConformance, ReportsTheSignalThatEndedTheProgram) {
  start_task();

  EXPECT_EQ(run_shell("kill -SEGV $$").status->signal, SIGSEGV);
}

TEST_P(ExecConformance, RunsInTheTasksPlaceWithItsEnvironment) {
  start_task();
  HeardExec heard;
  begin({.argv = {"sh", "-c", "echo $SECRET/$EXTRA/$PATH; pwd; hostname"},
         .environment = {{"EXTRA", "more"}, {"PATH", "/bin:/usr/bin"}}},
        heard);

  wait_for_exit(heard);

  EXPECT_EQ(heard.output, "of the task/more//bin:/usr/bin\n" + scratch_.string() + "\n" +
                              (GetParam().is_set_apart ? "test-main" : host_name()) + "\n");
}

TEST_P(ExecConformance, GivesTheProgramAllInputAndThenItsEnd) {
  start_task();
  std::string input(1 << 20, 'x');
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<char>(i * 7);
  HeardExec heard;
  begin({.argv = {"cat"}}, heard);

  heard.exec->write(input);
  heard.exec->close_input();

  wait_for_exit(heard);
  EXPECT_EQ(heard.output.size(), input.size());
  EXPECT_EQ(heard.output, input);
  EXPECT_EQ(heard.status->code, 0);
}

TEST_P(ExecConformance, SurvivesInputThatTheProgramDoesNotRead) {
  start_task();
  HeardExec heard;
  begin(shell("exec 0<&-; echo closed; until [ -e $SCRATCH/go ]; do sleep 0.01; done; exit 7"),
        heard);
  wait_for(heard, "closed\n");

  heard.exec->write("nobody reads this");
  ASSERT_TRUE(base::write_file(scratch_ / "go", ""));

  wait_for_exit(heard);
  EXPECT_EQ(heard.status->code, 7);
}

TEST_P(ExecConformance, ReportsWhenItAcceptsMoreInput) {
  start_task();
  bool drained = false;
  HeardExec heard;
  auto started = bench_->engine().exec(
      gang_, "main", shell("read line; cat | wc -c"),
      {.on_output = [&](std::string_view bytes, bool) { heard.output += bytes; },
       .on_exit = [&](const job::ExitStatus& status) { heard.status = status; },
       .on_drain = [&] { drained = true; }});
  ASSERT_TRUE(started) << started.error().to_string();

  (*started)->write(std::string(1 << 20, 'x'));
  EXPECT_GT((*started)->waiting(), Exec::kHigh);
  (*started)->write("\n");
  (*started)->close_input();

  wait_for_exit(heard);
  EXPECT_TRUE(drained);
  EXPECT_EQ((*started)->waiting(), 0U);
}

TEST_P(ExecConformance, HoldsOutputBackWhileItIsPaused) {
  constexpr size_t kWhole = 10 << 20;
  start_task();
  HeardExec heard;
  begin(shell("head -c " + std::to_string(kWhole) + " /dev/zero"), heard);
  heard.exec->pause(true);
  const size_t before = heard.output.size();
  HeardExec other;
  begin(shell("echo meanwhile"), other);
  wait_for_exit(other);
  EXPECT_EQ(heard.output.size(), before);

  heard.exec->pause(false);

  wait_for_exit(heard);
  EXPECT_EQ(heard.output.size(), kWhole);
}

TEST_P(ExecConformance, GivesTheProgramATerminalOfTheRequestedSize) {
  start_task();
  ExecPlan plan = shell("stty size; test -t 0 && test -t 1 && test -t 2 && tty", true);
  plan.rows = 33;
  plan.columns = 101;
  HeardExec heard;

  begin(plan, heard);

  wait_for_exit(heard);
  EXPECT_TRUE(heard.output.starts_with("33 101\r\n/dev/pts/")) << heard.output;
  EXPECT_EQ(heard.error, "");
  EXPECT_EQ(heard.status->code, 0);
}

TEST_P(ExecConformance, ReportsAChangedTerminalSizeToTheProgram) {
  start_task();
  HeardExec heard;
  begin(shell("trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done", true),
        heard);
  wait_for(heard, "ready\r\n");

  heard.exec->resize(50, 132);

  wait_for_exit(heard);
  EXPECT_EQ(heard.output, "ready\r\n50 132\r\n");
}

TEST_P(ExecConformance, ItsTerminalControlsIt) {
  start_task();
  HeardExec heard;
  begin(
      shell("trap 'echo interrupted; exit 4' INT; echo ready; while :; do sleep 0.01; done", true),
      heard);
  wait_for(heard, "ready\r\n");

  heard.exec->write("\x03");  // as if Ctrl-C were pressed

  wait_for_exit(heard);
  EXPECT_EQ(heard.output, "ready\r\n^Cinterrupted\r\n");
  EXPECT_EQ(heard.status->code, 4);
}

TEST_P(ExecConformance, EndsTheInputOfATerminal) {
  start_task();
  HeardExec heard;
  begin({.argv = {"cat"}, .environment = {}, .terminal = true}, heard);
  heard.exec->write("line\n");
  wait_for(heard, "line\r\nline\r\n");

  heard.exec->close_input();

  wait_for_exit(heard);
  EXPECT_EQ(heard.status->code, 0);
}

TEST_P(ExecConformance, LosesNothingOfALongOutputOfATerminal) {
  start_task();

  const HeardExec heard =
      run_shell("i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done", true);

  EXPECT_TRUE(heard.output.ends_with("\r\n19999\r\n"));
  EXPECT_EQ(std::count(heard.output.begin(), heard.output.end(), '\n'), 20'000);
}

TEST_P(ExecConformance, EndsWithTheTask) {
  start_task();
  HeardExec heard;
  const std::string own = "7" + marker_;
  begin(shell("echo ready; sleep " + own), heard);
  wait_for(heard, "ready\n");

  bench_->engine().stop(gang_, {"main"}, StopMode::kNow);

  bench_->wait_for_end("main");
  wait_for_exit(heard);
  EXPECT_FALSE(heard.status->succeeded());
  wait_until_none_has(own);
}

TEST_P(ExecConformance, EndsWhenItsCallerIsGone) {
  start_task();
  for (const bool terminal : {false, true}) {
    HeardExec heard;
    const std::string own = (terminal ? "8" : "9") + marker_;
    begin(shell("trap '' TERM; echo ready; sleep " + own, terminal), heard);
    wait_for(heard, "ready");

    heard.exec.reset();

    wait_until_none_has(own);
    EXPECT_FALSE(heard.status);
  }
  EXPECT_FALSE(processes_with(marker_).empty());  // the task runs on
}

TEST_P(ExecConformance, KillsAProgramThatDoesNotHeedTheHangUp) {
  start_task();
  HeardExec heard;
  const std::string own = "6" + marker_;
  begin(shell("trap '' HUP; echo ready; sleep " + own), heard);
  wait_for(heard, "ready");

  heard.exec.reset();

  wait_until_none_has(own);
}

TEST_P(ExecConformance, MayBeDroppedByItsOwnCallbacks) {
  start_task();
  std::unique_ptr<Exec> first;
  bool heard_first = false;
  auto started = bench_->engine().exec(gang_, "main", shell("echo ready; sleep 5" + marker_),
                                       {.on_output =
                                            [&](std::string_view, bool) {
                                              heard_first = true;
                                              first.reset();
                                            },
                                        .on_exit = [](const job::ExitStatus&) { FAIL(); }});
  ASSERT_TRUE(started) << started.error().to_string();
  first = *std::move(started);

  bench_->wait_until([&] { return heard_first; });

  EXPECT_EQ(first, nullptr);
  wait_until_none_has("5" + marker_);
}

TEST_P(ExecConformance, RefusesAProgramThatTheTaskDoesNotHave) {
  start_task();
  HeardExec heard;

  for (const char* name : {"no-such-program", "/no/such/program", "./none"}) {
    const std::string words = "the task has no program '" + std::string(name) + "'";
    const auto begun = how_it_begins({.argv = {name}}, heard);
    ASSERT_FALSE(begun) << name;
    EXPECT_EQ(begun.error().code, base::ErrorCode::kNotFound);
    EXPECT_EQ(begun.error().what, words);
    EXPECT_FALSE(heard.status);
  }
}

TEST_P(ExecConformance, ReportsItsStartAlsoWhileItIsPaused) {
  start_task();
  HeardExec heard;

  ASSERT_TRUE(how_it_begins(shell("echo begun"), heard));
  EXPECT_EQ(heard.output, "");
  heard.exec->pause(false);

  wait_for_exit(heard);
  EXPECT_EQ(heard.output, "begun\n");
}

TEST_P(ExecConformance, AProgramThatNobodyAskedWhetherItBeganEndsInstead) {
  start_task();
  HeardExec heard;
  auto started = exec({.argv = {"no-such-program"}}, heard);
  if (!started) return;  // reported at once

  wait_for_exit(heard);

  EXPECT_EQ(heard.status->code, 127);
  EXPECT_EQ(heard.status->error, "the task has no program 'no-such-program'");
}

TEST_P(ExecConformance, RefusesATaskThatDoesNotRun) {
  HeardExec heard;
  EXPECT_EQ(exec({.argv = {"true"}}, heard).error().code, base::ErrorCode::kConflict);
  run(script("true"));

  const auto started = exec({.argv = {"true"}}, heard);

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

  const HeardExec heard = run_shell("ls /proc/self/fd");

  EXPECT_EQ(heard.output, "0\n1\n2\n3\n");  // 3: the folder that ls reads
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
  HeardExec heard;
  begin(shell("trap 'echo heard; head -n1 > $SCRATCH/saved; exit 0' TERM; echo up; sleep " +
              marker_ + " & wait"),
        heard);
  wait_for(heard, "up");

  bench_->engine().stop(gang_, {"main"}, StopMode::kGraceful);
  wait_for(heard, "heard");
  bench_->wait_until([&] { return std::filesystem::exists(scratch_ / "saved"); });
  // The task looks for further programs: it has seen `head` when it ends one that came after it.
  EXPECT_EQ(run_shell("exec sleep " + marker_).status->signal, SIGTERM);
  heard.exec->write("saved\n");

  const TaskEnded end = bench_->wait_for_end("main");
  EXPECT_EQ(end.status.signal, SIGTERM);
  EXPECT_TRUE(end.status.stopped);
  EXPECT_EQ(*base::read_file(scratch_ / "saved"), "saved\n");
}

TEST_P(StopOfATaskWithoutAShell, DoesNotWaitForProgramsOnATerminal) {
  start_empty_task();
  HeardExec heard;
  begin(shell("trap '' TERM; echo up; sleep " + marker_, true), heard);
  wait_for(heard, "up");

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
