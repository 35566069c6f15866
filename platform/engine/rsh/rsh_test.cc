// A command at the far end behaves towards its caller as if it ran here. The tests use the real
// program at both ends of real connections.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>

#include "base/test_port.h"
#include "base/text.h"
#include "engine/rsh/connection.h"
#include "engine/rsh/ends.h"
#include "engine/rsh/test_inetd.h"

namespace muster::engine::rsh {
namespace {

struct Ran {
  int code = 0;
  std::string output;
};

class Rsh : public testing::Test {
 protected:
  /// Runs a line of shell in the folder of the job; $RSH is the program. Only a hang reaches the
  /// time limit.
  Ran sh(const std::string& script) const {
    const std::string line = "cd " + base::shell_quoted(inetd_.folder().string()) +
                             "; RSH=" + base::shell_quoted(MUSTER_RSH) +
                             " MUSTER_GENERATED=$PWD timeout -s KILL 60 bash -c " +
                             base::shell_quoted(script);
    FILE* const pipe = ::popen(line.c_str(), "r");
    Ran ran;
    std::array<char, 4096> piece;
    size_t count = 0;
    while ((count = std::fread(piece.data(), 1, piece.size(), pipe)) > 0) {
      ran.output.append(piece.data(), count);
    }
    const int status = ::pclose(pipe);
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return ran;
  }

  TestInetd inetd_;
};

TEST_F(Rsh, PassesOnTheOutputAndTheExitCode) {
  const Ran ran = sh("$RSH w0 'echo out; echo err >&2; exit 7' 2>errors; echo $?; cat errors");

  EXPECT_EQ(ran.output, "out\n7\nerr\n");
}

TEST_F(Rsh, RunsTheCommandInTheFolderAndEnvironmentOfTheFarEnd) {
  const Ran ran = sh("GREETING=mine $RSH -x w0 'pwd; echo $GREETING'");

  EXPECT_EQ(ran.output, inetd_.folder().string() + "\nit's me\n");
}

TEST_F(Rsh, ResolvesTheAddressOfAHost) {
  EXPECT_EQ(sh("$RSH w1 echo there").output, "there\n");
}

TEST_F(Rsh, PassesOnTheInputAndItsEnd) {
  EXPECT_EQ(sh("printf 'a\\nb' | $RSH w0 'cat; echo .'").output, "a\nb.\n");
  EXPECT_EQ(sh("yes | $RSH -n w0 cat").output, "");
  EXPECT_EQ(sh("echo 'echo from input' | $RSH w0").output, "from input\n");
}

TEST_F(Rsh, CarriesLargeStreamsWithoutLoss) {
  const Ran ran =
      sh("seq 1500000 > all; $RSH w0 'tee /dev/fd/2' < all > out 2> err; "
         "cmp all out && cmp all err && wc -c < all");

  EXPECT_EQ(ran.output, "10888896\n");
}

TEST_F(Rsh, ReportsASignalAsAShellDoes) {
  EXPECT_EQ(sh("$RSH w0 'kill -9 $$'; echo $?").output, "137\n");
}

TEST_F(Rsh, PassesOnSignalsWhileTheInputIsNotRead) {
  const Ran ran = sh(R"(
    mkfifo ready
    yes | $RSH w0 'trap "echo got TERM; exit 3" TERM; echo > ready; while :; do sleep 0.01; done' &
    rsh=$!
    read line < ready
    kill -TERM $rsh; wait $rsh; echo $?)");

  EXPECT_EQ(ran.output, "got TERM\n3\n");
}

TEST_F(Rsh, EndsACommandWhoseOutputHasNoReader) {
  EXPECT_EQ(sh("$RSH w0 yes | head -1; echo ${PIPESTATUS[0]}").output, "y\n141\n");
}

TEST_F(Rsh, WorksWithItsOwnStreamsClosed) {
  EXPECT_EQ(sh("$RSH w0 'cat; echo fine' <&- 2>&-").output, "fine\n");
}

TEST_F(Rsh, SendsSighupToTheCommandWhenItIsKilled) {
  const Ran ran = sh(R"(
    mkfifo ready result
    $RSH w0 'trap "echo hung up > result; exit" HUP; echo > ready; while :; do sleep 0.01; done' &
    rsh=$!
    read line < ready
    kill -9 $rsh; cat result)");

  EXPECT_EQ(ran.output, "hung up\n");
}

TEST_F(Rsh, EndsWhenTheOtherEndIsGone) {
  const Ran ran = sh("$RSH w0 'kill -9 $PPID; echo never' 2>&1 < /dev/null; echo $?");

  EXPECT_EQ(ran.output, "muster-rsh: w0 was lost before the command had ended\n255\n");
}

TEST_F(Rsh, RunsNothingForAnotherKey) {
  inetd_.write("other/rsh/key", std::string(64, 'b') + "\n");
  inetd_.write("other/rsh/hosts", "w0 127.0.0.1 " + std::to_string(inetd_.port()) + "\n");

  const Ran ran = sh("MUSTER_GENERATED=$PWD/other $RSH w0 'touch ran' 2>&1; echo $?; ls");

  EXPECT_EQ(ran.output, "muster-rsh: w0 has another key\n255\nother\nrsh\n");
}

TEST_F(Rsh, ReportsAnUnusableHost) {
  const base::HeldPort port;
  inetd_.write("other/rsh/key", std::string(64, 'a') + "\n");
  inetd_.write("other/rsh/hosts", "gone 127.0.0.1 " + std::to_string(port.number()) + "\n");

  EXPECT_EQ(sh("$RSH w7 true 2>&1; echo $?").output,
            "muster-rsh: this job has no host 'w7'; its hosts are w0, w1\n255\n");
  EXPECT_EQ(sh("MUSTER_GENERATED=$PWD/other $RSH gone true 2>&1").output,
            "muster-rsh: gone: cannot connect to 127.0.0.1:" + std::to_string(port.number()) +
                ": Connection refused\n");
  EXPECT_EQ(
      sh("unset MUSTER_GENERATED; $RSH w0 true 2>&1").output,
      "muster-rsh: MUSTER_GENERATED is not set; muster-rsh works only within the tasks of a job\n");
}

/// The bytes that a client without the key gets after it has sent `words`.
std::string answer_to(int port, const std::string& words) {
  const auto socket = connect_to({.name = "w0", .address = "127.0.0.1", .port = port});
  EXPECT_TRUE(socket);
  ::send(socket->get(), words.data(), words.size(), MSG_NOSIGNAL);
  ::shutdown(socket->get(), SHUT_WR);
  std::string answer;
  std::array<char, 4096> piece;
  ssize_t count = 0;
  while ((count = ::recv(socket->get(), piece.data(), piece.size(), 0)) > 0) {
    answer.append(piece.data(), static_cast<size_t>(count));
  }
  return answer;
}

TEST_F(Rsh, SendsAStrangerOnlyTheGreeting) {
  EXPECT_EQ(answer_to(inetd_.port(), ""), "MUSTER-RSH 1\n");
  for (const std::string& words : {std::string("SSH-2.0-muster\r\n"), std::string(100'000, 'x')}) {
    const std::string answer = answer_to(inetd_.port(), words);
    // At most a TLS alert follows the greeting.
    EXPECT_TRUE(answer.empty() || answer.starts_with("MUSTER-RSH 1\n"));
    EXPECT_LE(answer.size(), 32U);
  }
}

// --- both ends in this process, with short time limits

constexpr Key kKey{1, 2, 3};

struct Ends {
  base::UniqueFd near;
  base::UniqueFd far;
};

Ends make_ends() {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

/// One round of a near end.
void turn(RshConnection& near) {
  pollfd watched = near.interest();
  ::poll(&watched, 1, -1);
  ASSERT_TRUE(near.turn(watched.revents));
}

FarOptions far_options() {
  return {.folder = "/", .environment = base::current_environment()};
}

base::Result<int> run_between(const std::string& command, const FarOptions& options) {
  Ends ends = make_ends();
  std::thread far([&] { serve(std::move(ends.far), kKey, options); });
  auto code = run_far(std::move(ends.near), kKey, command, {});
  far.join();
  return code;
}

TEST(FarEnd, ReportsAMissingShellOrFolder) {
  FarOptions without_shell = far_options();
  without_shell.shell = "/no/such/sh";
  const auto code = run_between("true", without_shell);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().what,
            "has no /no/such/sh: No such file or directory; every MPI starts its ranks by a shell: "
            "use an image that contains one");

  FarOptions without_folder = far_options();
  without_folder.folder = "/no/such/folder";
  const auto nowhere = run_between("true", without_folder);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().what,
            "cannot enter its working folder '/no/such/folder': No such file or directory");
}

TEST(FarEnd, WaitsForAStrangerForALimitedTime) {
  Ends ends = make_ends();
  FarOptions options = far_options();
  options.patience = std::chrono::milliseconds(1);

  serve(std::move(ends.far), kKey, options);  // returns although the other end stays connected
}

TEST(FarEnd, WaitsForASilentClientForALimitedTime) {
  Ends ends = make_ends();
  FarOptions options = far_options();
  options.patience = std::chrono::milliseconds(500);
  std::thread far([&] { serve(std::move(ends.far), kKey, options); });

  RshConnection near(End::kNear, std::move(ends.near), kKey);
  while (!near.lost()) turn(near);

  far.join();
}

TEST(FarEnd, KillsACommandThatIgnoresTheHangUp) {
  Ends ends = make_ends();
  FarOptions options = far_options();
  options.grace = std::chrono::milliseconds(1);
  std::array<int, 2> pipe{-1, -1};
  ASSERT_EQ(::pipe(pipe.data()), 0);  // only the command gets it, through /proc
  const base::UniqueFd reader(pipe[0]);
  base::UniqueFd writer(pipe[1]);
  const std::string held =
      "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(writer.get());
  std::thread far([&] { serve(std::move(ends.far), kKey, options); });
  std::optional<RshConnection> near(std::in_place, End::kNear, std::move(ends.near), kKey);
  while (!near->established()) turn(*near);
  near->send(Command{"exec 9> " + held + "; trap '' HUP; echo up; while :; do sleep 1000; done"});
  std::optional<Frame> up;
  while (!up) {
    turn(*near);
    up = *near->next();
  }
  EXPECT_EQ(*up, Frame(Data{Stream::kOutput, "up\n"}));

  near.reset();
  far.join();

  writer.reset();
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);  // no process holds the other end any more
}

TEST(FarEnd, DisconnectsAClientThatExceedsItsWindow) {
  Ends ends = make_ends();
  std::thread far([&] { serve(std::move(ends.far), kKey, far_options()); });
  RshConnection near(End::kNear, std::move(ends.near), kKey);
  while (!near.established()) turn(near);
  near.send(Command{"sleep 1000"});
  for (size_t sent = 0; sent <= 2 * kWindow; sent += kPiece) {
    near.send(Data{Stream::kInput, std::string(kPiece, 'x')});
  }

  while (!near.lost()) turn(near);

  far.join();
}

}  // namespace
}  // namespace muster::engine::rsh
