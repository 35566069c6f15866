// Requirements on every engine for callers that are attached to a task's own program.
#include <signal.h>

#include <optional>
#include <string>
#include <string_view>

#include "engine/conformance.h"

namespace muster::engine {
namespace {

/// A caller that is attached, and the output that it has received.
struct Listener {
  std::string output;
  std::string error;
  std::optional<job::ExitStatus> status;
  std::unique_ptr<Exec> exec;
};

class AttachConformance : public Conformance {
 protected:
  AttachConformance() { ::signal(SIGPIPE, SIG_IGN); }

  void TearDown() override {
    if (!started_) return;
    bench_->engine().stop(gang_, {"main"}, StopMode::kNow);
    bench_->wait_for_end("main");
  }

  /// Runs `text` with a terminal, or with input alone, until it has printed a line.
  void start(const std::string& text, bool terminal) {
    TaskPlan plan = script(text);
    plan.input = true;
    plan.terminal = terminal;
    start(plan);
  }

  void start(const TaskPlan& plan) {
    ASSERT_TRUE(bench_->start(gang_, {plan}));
    started_ = true;
    wait_for_output("main");
  }

  void attach(Listener& listener) {
    auto attached =
        bench_->engine().attach(gang_, "main",
                                {.on_output =
                                     [&listener](std::string_view bytes, bool is_error) {
                                       EXPECT_FALSE(listener.status) << "output after the exit";
                                       (is_error ? listener.error : listener.output) += bytes;
                                     },
                                 .on_exit =
                                     [&listener](const job::ExitStatus& status) {
                                       EXPECT_FALSE(listener.status) << "a second exit";
                                       listener.status = status;
                                     }});
    ASSERT_TRUE(attached) << attached.error().to_string();
    listener.exec = *std::move(attached);
  }

  void wait_for(const Listener& listener, const std::string& text) {
    bench_->wait_until([&] { return listener.output.find(text) != std::string::npos; });
    ASSERT_NE(listener.output.find(text), std::string::npos) << listener.output << listener.error;
  }

  void wait_for_exit(const Listener& listener) {
    bench_->wait_until([&] { return listener.status.has_value(); });
    ASSERT_TRUE(listener.status) << "it never ended; so far: " << listener.output;
  }

  void wait_for_log(const std::string& text) {
    bench_->wait_until([&] { return log_of("main").find(text) != std::string::npos; });
    ASSERT_NE(log_of("main").find(text), std::string::npos) << log_of("main");
  }

 private:
  bool started_ = false;
};

TEST_P(AttachConformance, TheProgramReceivesItsInputAndTheEndOfTheInput) {
  start("echo up; cat; echo err >&2; exit 3", false);
  Listener listener;
  attach(listener);
  std::string input(1 << 20, 'x');
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<char>(i * 7);

  listener.exec->write(input);
  listener.exec->close_input();

  wait_for_exit(listener);
  EXPECT_EQ(listener.status->code, 3);
  EXPECT_EQ(log_of("main"), "up\n" + input);
  EXPECT_EQ(log_of("main", job::LogStream::kError), "err\n");
}

TEST_P(AttachConformance, EveryCallerReceivesAllOutputAfterItsAttachment) {
  start("echo up; while read line; do echo \"got $line\"; done", false);
  Listener early;
  attach(early);
  early.exec->write("one\n");
  wait_for(early, "got one\n");
  Listener late;
  attach(late);

  late.exec->write("two\n");

  wait_for(early, "got two\n");
  wait_for(late, "got two\n");
  EXPECT_EQ(early.output, "got one\ngot two\n");
  EXPECT_EQ(late.output, "got two\n");
}

TEST_P(AttachConformance, TheProgramOutlivesACallerThatDetaches) {
  start("echo up; read first; echo \"then $first\"; read second; echo \"at last $second\"", false);
  {
    Listener gone;
    attach(gone);
    gone.exec->write("one\n");
    wait_for(gone, "then one\n");
  }
  Listener back;
  attach(back);

  back.exec->write("two\n");

  wait_for_exit(back);
  EXPECT_EQ(back.output, "at last two\n");
  EXPECT_TRUE(back.status->succeeded());
}

TEST_P(AttachConformance, ATerminalIsTheProgramsOwnAndControlsIt) {
  start(
      "test -t 0 && test -t 1 && test -t 2 && tty; trap 'echo interrupted; exit 4' INT; echo up;"
      " while :; do sleep 0.01; done",
      true);
  wait_for_log("up\n");
  Listener listener;
  attach(listener);

  listener.exec->write("\x03");  // as if Ctrl-C were pressed

  wait_for_exit(listener);
  EXPECT_EQ(listener.output, "^Cinterrupted\r\n");
  EXPECT_EQ(listener.status->code, 4);
  EXPECT_TRUE(log_of("main").starts_with("/dev/pts/")) << log_of("main");
  EXPECT_TRUE(log_of("main").ends_with("\nup\n^Cinterrupted\n")) << log_of("main");
}

TEST_P(AttachConformance, ATerminalHasTheLastReportedSize) {
  start("echo up; while read line; do stty size; done", true);
  Listener first;
  Listener second;
  attach(first);
  attach(second);

  first.exec->resize(50, 132);
  first.exec->write("\n");
  wait_for(first, "50 132\r\n");
  second.exec->resize(33, 101);
  second.exec->write("\n");

  wait_for(first, "33 101\r\n");
  wait_for(second, "33 101\r\n");
}

TEST_P(AttachConformance, ANewCallerMakesAFullScreenProgramRedraw) {
  start("trap 'echo drawn' WINCH; echo up; while :; do sleep 0.01; done", true);
  Listener listener;

  attach(listener);

  wait_for(listener, "drawn\r\n");
}

TEST_P(AttachConformance, EndsTheInputOfATerminal) {
  start("echo up; cat; echo done", true);
  Listener listener;
  attach(listener);
  listener.exec->write("line\n");
  wait_for(listener, "line\r\nline\r\n");

  listener.exec->close_input();

  wait_for_exit(listener);
  EXPECT_EQ(log_of("main"), "up\nline\nline\ndone\n");
}

TEST_P(AttachConformance, WithoutARequestTheProgramHasNoInputAndNoTerminal) {
  TaskPlan plan = script("test -t 1 || echo none; cat; echo end; sleep " + marker_);

  start(plan);
  wait_for_log("end\n");
  Listener listener;
  attach(listener);
  listener.exec->write("lost");
  listener.exec->resize(10, 10);

  EXPECT_EQ(log_of("main"), "none\nend\n");
}

/// The sum of the bytes that the notices in `errors` name.
size_t missed_bytes(const std::string& errors) {
  constexpr std::string_view kBefore = "muster: ";
  constexpr std::string_view kAfter = " bytes of output are left out here";
  size_t sum = 0;
  for (size_t at = errors.find(kAfter); at != std::string::npos; at = errors.find(kAfter, at + 1)) {
    sum += std::stoull(errors.substr(errors.rfind(kBefore, at) + kBefore.size()));
  }
  return sum;
}

TEST_P(AttachConformance, ASlowReaderDelaysNoOtherAndReceivesTheNumberOfMissedBytes) {
  constexpr size_t kWhole = 32 << 20;
  start("echo up; read line; echo begun; read line; head -c " + std::to_string(kWhole) +
            " /dev/zero; echo; echo all; read line; echo later; read line",
        false);
  Listener slow;
  Listener other;
  attach(slow);
  attach(other);
  slow.exec->write("begin\n");
  wait_for(slow, "begun\n");
  slow.exec->pause(true);

  other.exec->write("go\n");
  wait_for_log("all\n");
  slow.exec->pause(false);
  // Until it has caught up, later output may be left out as well.
  constexpr size_t kBeforeLater = sizeof("begun\n\nall\n") - 1 + kWhole;
  bench_->wait_until([&] { return slow.output.size() + missed_bytes(slow.error) >= kBeforeLater; });
  EXPECT_EQ(slow.output.size() + missed_bytes(slow.error), kBeforeLater) << slow.error;
  EXPECT_LT(slow.output.size(), kWhole);

  other.exec->write("on\n");
  wait_for(slow, "later\n");
}

TEST_P(AttachConformance, TakesUpWhereAnEarlierServerLeft) {
  start("echo up; read line; echo \"got $line\"; exit 5", false);
  open_bench();
  ASSERT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kRunning);
  Listener listener;
  attach(listener);

  listener.exec->write("again\n");

  wait_for_exit(listener);
  EXPECT_EQ(listener.output, "got again\n");
  EXPECT_EQ(listener.status->code, 5);
}

TEST_P(AttachConformance, LosesNothingOfALongOutputOfATerminal) {
  start("echo up; i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done", true);

  EXPECT_TRUE(bench_->wait_for_end("main").status.succeeded());

  const std::string text = log_of("main");
  EXPECT_TRUE(text.ends_with("\n19999\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 20'001);
}

TEST_P(AttachConformance, ReportsTheEndOfAStoppedTask) {
  start("echo up; sleep " + marker_, true);
  Listener listener;
  attach(listener);

  bench_->engine().stop(gang_, {"main"}, StopMode::kNow);

  wait_for_exit(listener);
  EXPECT_TRUE(listener.status->stopped);
}

TEST_P(AttachConformance, RefusesATaskThatDoesNotRun) {
  const auto never = bench_->engine().attach(gang_, "main", {});
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, base::ErrorCode::kConflict);
  run(script("true"));

  const auto ended = bench_->engine().attach(gang_, "main", {});

  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().what, "task main does not run");
}

INSTANTIATE_TEST_SUITE_P(Engines, AttachConformance, testing::ValuesIn(grounds()), ground_name);

}  // namespace
}  // namespace muster::engine
