#include <thread>

#include "engine/shim/modes.h"
#include "engine/shim/run_wire.h"
#include "engine/shim/shim_fixture.h"

namespace muster::engine {

namespace {

// muster-shim --run and --attach over streams, as an engine on another machine uses them.

/// The engine's end of `muster-shim --run` or `--attach`.
class Caller {
 public:
  Caller(const std::string& mode, const TaskFolder& folder) {
    auto stdin_pipe = make_input_pipe();
    auto stdout_pipe = make_output_pipe();
    EXPECT_TRUE(stdin_pipe && stdout_pipe);
    auto child = base::spawn(
        {.argv = {MUSTER_SHIM, mode, folder.path.string()},
         .environment = {},
         .descriptors = {{stdin_pipe->there.get(), 0}, {stdout_pipe->there.get(), 1}, {2, 2}},
         .new_session = true});
    EXPECT_TRUE(child);
    child_ = *std::move(child);
    to_ = std::move(stdin_pipe->here);
    from_ = std::move(stdout_pipe->here);
  }

  ~Caller() {
    hang_up();
    EXPECT_TRUE(is_readable(child_.pidfd)) << "the shim runs on";
    [[maybe_unused]] const auto ended = base::wait_for(child_);
  }

  void send(const RunMessage& message) {
    std::string text = encode_run(message);
    while (!text.empty()) {
      const ssize_t count = ::write(to_.get(), text.data(), text.size());
      if (count > 0) text.erase(0, static_cast<size_t>(count));
      if (count < 0 && errno != EAGAIN) return;
      pollfd watched{to_.get(), POLLOUT, 0};
      if (count < 0 && ::poll(&watched, 1, kBoundMs) <= 0) return;
    }
  }

  /// Whether the shim takes more input right now.
  bool takes_more() {
    pollfd watched{to_.get(), POLLOUT, 0};
    return ::poll(&watched, 1, 0) > 0;
  }

  void hang_up() { to_.reset(); }

  std::optional<RunMessage> next() {
    std::array<char, 64 << 10> buffer;
    while (true) {
      if (auto message = reader_.next()) return message;
      EXPECT_FALSE(reader_.is_broken());
      if (!is_readable(from_)) return std::nullopt;
      const ssize_t count = ::read(from_.get(), buffer.data(), buffer.size());
      if (count <= 0) return std::nullopt;
      reader_.add({buffer.data(), static_cast<size_t>(count)});
    }
  }

  /// Reads messages until the program has printed `word`.
  void await(const std::string& word) {
    while (output.find(word) == std::string::npos) {
      const auto message = next();
      ASSERT_TRUE(message) << "never printed: " << word;
      take(*message);
    }
  }

  /// Reads messages to the end. `ends`: the outputs that the program closed, in order.
  job::ExitStatus rest() {
    while (auto message = next()) {
      if (const auto* ended = std::get_if<RunEnded>(&*message)) return ended->record.status;
      take(*message);
    }
    ADD_FAILURE() << "no message reported the end";
    return {};
  }

  bool begins() {
    const auto message = next();
    if (message && std::holds_alternative<RunBegun>(*message)) return true;
    const auto* refused = message ? std::get_if<RunRefused>(&*message) : nullptr;
    ADD_FAILURE() << (refused ? refused->error.what : "another message arrived");
    return false;
  }

  std::string output;
  std::string error_output;
  std::string ends;
  uint64_t left_out = 0;

  const base::UniqueFd& pidfd() const { return child_.pidfd; }

 private:
  void take(const RunMessage& message) {
    if (const auto* text = std::get_if<AttachOutput>(&message)) {
      (text->is_error ? error_output : output) += text->bytes;
    } else if (const auto* end = std::get_if<RunOutputEnd>(&message)) {
      ends += end->is_error ? "x" : "o";
    } else if (const auto* gap = std::get_if<AttachLeftOut>(&message)) {
      left_out += gap->bytes;
    } else {
      ADD_FAILURE() << "an unexpected message: " << encode_run(message);
    }
  }

  base::Child child_;
  base::UniqueFd to_;
  base::UniqueFd from_;
  RunReader reader_;
};

RunStart shell(const std::string& script) {
  return {.program = {.argv = {"sh", "-c", script}, .environment = {}, .folder = ""},
          .inherits = true};
}

class RunBeside : public ShimInContainer {
 protected:
  RunBeside() : follow_(start(script("echo up; exec sleep 1000"))) {
    ::signal(SIGPIPE, SIG_IGN);
    follow_.until(FollowKind::kLog);
  }

  FollowStream follow_;
};

TEST_F(RunBeside, SendsTheOutputAndTheEndOfTheProgram) {
  Caller caller("--run", task());
  caller.send(shell("echo out; echo err >&2; exit 3"));

  ASSERT_TRUE(caller.begins());
  EXPECT_EQ(caller.rest(), job::ExitStatus{.code = 3});
  EXPECT_EQ(caller.output, "out\n");
  EXPECT_EQ(caller.error_output, "err\n");
}

TEST_F(RunBeside, ReportsTheSignalThatEndedTheProgram) {
  Caller caller("--run", task());
  caller.send(shell("kill -USR1 $$"));

  ASSERT_TRUE(caller.begins());
  EXPECT_EQ(caller.rest(), job::ExitStatus{.signal = SIGUSR1});
}

TEST_F(RunBeside, InheritsTheTasksEnvironmentAndFolder) {
  RunStart start = shell("echo $WHO $MORE $PWD");
  start.program.environment = {"MORE=here"};
  Caller caller("--run", task());
  caller.send(start);

  ASSERT_TRUE(caller.begins());
  caller.rest();
  EXPECT_EQ(caller.output, "task here " + folder_.path().string() + "\n");
}

TEST_F(RunBeside, CanHaveOnlyItsOwnEnvironment) {
  Caller caller("--run", task());
  caller.send(RunStart{.program = {.argv = {"/usr/bin/env"}, .environment = {"A=1"}}});

  ASSERT_TRUE(caller.begins());
  caller.rest();
  EXPECT_EQ(caller.output, "A=1\n");
}

TEST_F(RunBeside, AMissingProgramIsRefused) {
  Caller caller("--run", task());
  caller.send(RunStart{.program = {.argv = {"nosuch"}, .environment = {}}, .inherits = true});

  const auto message = caller.next();
  ASSERT_TRUE(message && std::holds_alternative<RunRefused>(*message));
  EXPECT_EQ(std::get<RunRefused>(*message).error.code, base::ErrorCode::kNotFound);
  EXPECT_EQ(std::get<RunRefused>(*message).error.what, "the task has no program 'nosuch'");
  EXPECT_EQ(caller.next(), std::nullopt);
}

TEST_F(RunBeside, AnEndedTaskRefusesPrograms) {
  signal(SIGQUIT);
  follow_.until(FollowKind::kExit);
  Caller caller("--run", task());
  caller.send(shell("echo out"));

  const auto message = caller.next();
  ASSERT_TRUE(message && std::holds_alternative<RunRefused>(*message));
  EXPECT_EQ(std::get<RunRefused>(*message).error.code, base::ErrorCode::kConflict);
}

TEST_F(RunBeside, PassesItsInputUpToTheEnd) {
  Caller caller("--run", task());
  caller.send(shell("wc -c; echo rest >&2"));
  ASSERT_TRUE(caller.begins());
  const std::string piece(kAttachPiece, '\0');
  for (int i = 0; i < 100; ++i) caller.send(AttachInput{piece});
  caller.send(AttachInputEnd{});

  EXPECT_EQ(caller.rest(), job::ExitStatus{});
  EXPECT_EQ(std::stoul(caller.output), 100 * kAttachPiece);
}

TEST_F(RunBeside, ReportsAClosedOutputWhileTheProgramRuns) {
  Caller caller("--run", task());
  caller.send(shell("exec >&-; read x; exit 0"));
  ASSERT_TRUE(caller.begins());

  const auto message = caller.next();
  ASSERT_TRUE(message && std::holds_alternative<RunOutputEnd>(*message));
  EXPECT_FALSE(std::get<RunOutputEnd>(*message).is_error);
  caller.send(AttachInput{"\n"});
  EXPECT_EQ(caller.rest(), job::ExitStatus{});
}

TEST_F(RunBeside, MuchInputWaitsForTheProgram) {
  const std::string go = (folder_ / "go").string();
  ASSERT_EQ(::mkfifo(go.c_str(), 0600), 0);
  Caller caller("--run", task());
  caller.send(shell("read x < " + go + "; wc -c"));
  ASSERT_TRUE(caller.begins());
  constexpr size_t kPieces = 200;
  std::thread writer([&caller] {
    for (size_t i = 0; i < kPieces; ++i) caller.send(AttachInput{std::string(kAttachPiece, 'i')});
    caller.send(AttachInputEnd{});
  });

  const base::UniqueFd open_go(::open(go.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(::write(open_go.get(), "\n", 1), 1);

  EXPECT_EQ(caller.rest(), job::ExitStatus{});
  writer.join();
  EXPECT_EQ(std::stoul(caller.output), kPieces * kAttachPiece);
}

TEST_F(RunBeside, UnreadOutputBlocksTheProgram) {
  Caller caller("--run", task());
  caller.send(shell("head -c 3000000 /dev/zero; echo > " + (folder_ / "done").string()));
  ASSERT_TRUE(caller.begins());
  caller.await(std::string(100, '\0'));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "done"));

  EXPECT_EQ(caller.rest(), job::ExitStatus{});
  EXPECT_EQ(caller.output.size(), 3'000'000U);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "done"));
}

/// Writes to the output of another program until this is destroyed.
class BusyWriter {
 public:
  explicit BusyWriter(const std::string& program) {
    auto child = base::spawn({.argv = {"sh", "-c", "exec yes > /proc/" + program + "/fd/1"},
                              .environment = base::current_environment(),
                              .descriptors = {{2, 2}},
                              .new_session = true});
    EXPECT_TRUE(child);
    child_ = *std::move(child);
  }
  ~BusyWriter() {
    [[maybe_unused]] const auto sent = base::send_signal(child_.pidfd, SIGKILL);
    [[maybe_unused]] const auto ended = base::wait_for(child_);
  }

 private:
  base::Child child_;
};

TEST_F(RunBeside, EndsAlthoughAnotherProcessWritesWithoutEnd) {
  Caller caller("--run", task());
  caller.send(shell("echo $$; read x; exit 3"));
  ASSERT_TRUE(caller.begins());
  caller.await("\n");
  const BusyWriter writer(caller.output.substr(0, caller.output.find('\n')));
  caller.await("y\n");
  caller.send(AttachInput{"\n"});

  constexpr size_t kWithoutEnd = size_t{1} << 30;
  size_t bytes = 0;
  std::optional<job::ExitStatus> end;
  while (!end && bytes < kWithoutEnd) {
    const auto message = caller.next();
    ASSERT_TRUE(message);
    if (const auto* text = std::get_if<AttachOutput>(&*message)) bytes += text->bytes.size();
    if (const auto* ended = std::get_if<RunEnded>(&*message)) end = ended->record.status;
  }
  EXPECT_EQ(end, job::ExitStatus{.code = 3});
}

TEST_F(RunBeside, AHangUpEndsTheProgramAndItsChildren) {
  const std::string pid_file = (folder_ / "pid").string();
  base::UniqueFd below;
  {
    Caller caller("--run", task());
    caller.send(shell("sleep 1000 & echo $! > " + pid_file + "; echo up; wait"));
    ASSERT_TRUE(caller.begins());
    caller.await("up");
    auto pidfd = base::open_pidfd(std::stoi(*base::read_file(pid_file)));
    ASSERT_TRUE(pidfd);
    below = *std::move(pidfd);
  }
  EXPECT_TRUE(is_readable(below)) << "a process runs on";
}

TEST_F(RunBeside, AHangUpCountsWhileInputWaits) {
  Caller caller("--run", task());
  caller.send(shell("echo $$; exec sleep 1000"));
  ASSERT_TRUE(caller.begins());
  caller.await("\n");
  const auto program = base::open_pidfd(std::stoi(caller.output));
  ASSERT_TRUE(program);
  while (caller.takes_more()) caller.send(AttachInput{std::string(100, 'i')});

  caller.hang_up();

  EXPECT_TRUE(is_readable(*program)) << "the program runs on";
}

TEST_F(RunBeside, TheEndOfTheTaskEndsTheProgram) {
  Caller caller("--run", task());
  caller.send(shell("echo up; exec sleep 1000"));
  ASSERT_TRUE(caller.begins());
  caller.await("up");

  signal(SIGQUIT);

  EXPECT_NE(caller.rest().signal, 0);
}

TEST_F(RunBeside, ItsTerminalHasTheRequestedSize) {
  RunStart start =
      shell("stty size; trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.1; done");
  start.program.terminal = true;
  start.rows = 50;
  start.columns = 132;
  Caller caller("--run", task());
  caller.send(start);
  ASSERT_TRUE(caller.begins());
  caller.await("up");

  caller.send(AttachSize{.rows = 20, .columns = 70});

  EXPECT_EQ(caller.rest(), job::ExitStatus{});
  EXPECT_EQ(caller.output, "50 132\r\nup\r\n20 70\r\n");
}

TEST_F(RunBeside, TheEndOfTheInputIsTypedIntoATerminal) {
  RunStart start = shell("stty -echo; echo up; cat; echo end");
  start.program.terminal = true;
  Caller caller("--run", task());
  caller.send(start);
  ASSERT_TRUE(caller.begins());
  caller.await("up");

  caller.send(AttachInput{"typed\n"});
  caller.send(AttachInputEnd{});

  EXPECT_EQ(caller.rest(), job::ExitStatus{});
  EXPECT_EQ(caller.output, "up\r\ntyped\r\nend\r\n");
}

TEST_F(RunBeside, AMalformedMessageEndsIt) {
  Caller caller("--run", task());
  caller.send(AttachInputEnd{});

  EXPECT_EQ(caller.next(), std::nullopt);
}

class RunAttach : public ShimInContainer {
 protected:
  RunAttach() { ::signal(SIGPIPE, SIG_IGN); }
};

TEST_F(RunAttach, ConnectsToTheTasksProgram) {
  ShimPlan plan = script("read line; echo got $line; exit 6");
  plan.inner.input = true;
  FollowStream stream = start(plan);
  stream.until(FollowKind::kRunning);
  Caller caller("--attach", task());
  ASSERT_TRUE(caller.begins());

  caller.send(AttachInput{"this\n"});

  EXPECT_EQ(caller.rest(), job::ExitStatus{.code = 6});
  EXPECT_EQ(caller.output, "got this\n");
}

TEST_F(RunAttach, TheProgramOutlivesAHangUp) {
  ShimPlan plan = script("read line; echo got $line");
  plan.inner.input = true;
  FollowStream stream = start(plan);
  stream.until(FollowKind::kRunning);
  {
    Caller first("--attach", task());
    ASSERT_TRUE(first.begins());
  }
  Caller caller("--attach", task());
  ASSERT_TRUE(caller.begins());
  caller.send(AttachInput{"this\n"});

  EXPECT_EQ(caller.rest(), job::ExitStatus{});
}

// Otherwise a thousand ended tasks would leave a thousand sockets.
TEST_F(RunAttach, TheSocketIsRemovedWithTheTask) {
  FollowStream stream = start(script("exit 0"));
  stream.rest();
  signal(SIGTERM);
  EXPECT_EQ(await_end(), 0);

  EXPECT_FALSE(std::filesystem::exists(task().attach()));
}

TEST_F(RunAttach, ATaskThatDoesNotRunIsRefused) {
  Caller caller("--attach", task());

  const auto message = caller.next();
  ASSERT_TRUE(message && std::holds_alternative<RunRefused>(*message));
  EXPECT_EQ(std::get<RunRefused>(*message).error.code, base::ErrorCode::kConflict);
}

}  // namespace

}  // namespace muster::engine
