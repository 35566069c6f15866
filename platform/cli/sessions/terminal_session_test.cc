#include "cli/sessions/terminal_session.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.h"

namespace muster::cli::sessions {

namespace {

TEST(DetachKeys, AreParsedFromTheirUsualNotation) {
  EXPECT_EQ(*parse_detach_keys("ctrl-p,ctrl-q"), "\x10\x11");
  EXPECT_EQ(*parse_detach_keys("ctrl-a,d"),
            "\x01"
            "d");
  EXPECT_EQ(*parse_detach_keys("ctrl-@"), std::string(1, '\0'));
  EXPECT_EQ(*parse_detach_keys("ctrl-]"), "\x1d");
  for (const char* none : {"", "ctrl-", "ctrl-1", "p,,q", "alt-x", "ctrl-p ctrl-q"}) {
    EXPECT_FALSE(parse_detach_keys(none)) << none;
  }
}

TEST(DetachKeys, HaveATextForMessages) {
  EXPECT_EQ(words_of_detach_keys("\x10\x11"), "ctrl-p ctrl-q");
  EXPECT_EQ(words_of_detach_keys("\x01"
                                 "d\x1d"),
            "ctrl-a d ctrl-]");
}

TEST(DetachKeys, DetachHoweverTheInputIsSplit) {
  DetachKeys keys("\x10\x11");

  EXPECT_EQ(keys.pass("ls\r\x10"), "ls\r");
  EXPECT_FALSE(keys.found());
  EXPECT_EQ(keys.pass("\x11more"), "");

  EXPECT_TRUE(keys.found());
}

TEST(DetachKeys, PassAllOtherInputOn) {
  DetachKeys keys("\x10\x11");

  EXPECT_EQ(keys.pass("\x10"), "");
  EXPECT_EQ(keys.pass("x\x10\x10"), "\x10x\x10");
  EXPECT_EQ(keys.pass("\x0e\x11"), "\x10\x0e\x11");
  EXPECT_FALSE(keys.found());
  EXPECT_EQ(DetachKeys("").pass("\x10\x11"), "\x10\x11");
}

TEST(DetachKeys, DetectASequenceThatContainsItsOwnBeginning) {
  DetachKeys keys("aab");

  EXPECT_EQ(keys.pass("aaab"), "a");
  EXPECT_TRUE(keys.found());
}

/// A server that takes what was sent only at the end of receive(), if at all.
class SlowServer : public http::WebSocketClient {
 public:
  /// Called when a message waits to be taken.
  std::function<void()> on_wait = [] {};

  Result<void> send(http::WebSocket::Kind /*kind*/, std::string_view message) override {
    sent_ += message;
    waiting_ += message.size();
    return {};
  }
  void queue_messages(std::function<void()> on_drain) override { on_drain_ = std::move(on_drain); }
  size_t waiting() const override { return waiting_; }
  Result<std::optional<Message>> receive(const http::Wake& wake) override {
    while (is_readable(wake.fd)) {
      if (!wake.on_wake()) return std::optional<Message>();
      if (waiting_ > 0) on_wait();
      if (is_readable(wake.fd)) continue;
      taken_ = sent_;
      waiting_ = 0;
      on_drain_();
    }
    return base::Error{.code = base::ErrorCode::kUnavailable, .what = "nothing happens any more"};
  }
  int close_code() const override { return 1000; }

  const std::string& taken() const { return taken_; }

 private:
  static bool is_readable(int fd) {
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) == 1;
  }

  std::string sent_;
  std::string taken_;
  size_t waiting_ = 0;
  std::function<void()> on_drain_;
};

/// While it exists, `text` is the standard input.
class PipedInput {
 public:
  explicit PipedInput(std::string_view text) : before_(::dup(STDIN_FILENO)) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const base::UniqueFd output(ends[0]);
    input_.reset(ends[1]);
    ::dup2(output.get(), STDIN_FILENO);
    EXPECT_EQ(::write(input_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  PipedInput(const PipedInput&) = delete;
  PipedInput& operator=(const PipedInput&) = delete;
  ~PipedInput() { ::dup2(before_.get(), STDIN_FILENO); }

 private:
  base::UniqueFd before_;
  base::UniqueFd input_;
};

TEST(Session, DetachesWhenTheServerHasTakenWhatWasTyped) {
  const PipedInput typed("make\r\x10\x11");
  SlowServer server;

  const auto end = run_session(server, {.detach_keys = "\x10\x11"});

  ASSERT_TRUE(end) << end.error().to_string();
  EXPECT_EQ(end->how, SessionEnd::How::kDetached);
  EXPECT_EQ(server.taken(), "make\r");
}

TEST(Session, ASignalEndsTheWaitForAServerThatTakesNothing) {
  const PipedInput typed("make\r\x10\x11");
  SlowServer server;
  server.on_wait = [] { ::raise(SIGINT); };

  const auto end = run_session(server, {.detach_keys = "\x10\x11"});

  ASSERT_TRUE(end) << end.error().to_string();
  EXPECT_EQ(end->how, SessionEnd::How::kInterrupted);
  EXPECT_EQ(end->signal, SIGINT);
  EXPECT_EQ(server.taken(), "");
}

}  // namespace

namespace {

/// The values passed to the shell: TERM or "", and the variables.
std::vector<std::string> taken_along(const std::map<std::string, std::string>& caller) {
  const std::vector<std::string> command = shell_command(caller);
  return {command.begin() + 4, command.end()};
}

TEST(ShellCommand, PassesOnlyTheTerminalTypeAndTheLocale) {
  EXPECT_EQ(
      taken_along({{"TERM", "screen"},
                   {"LANG", "de_DE.UTF-8"},
                   {"LC_TIME", "C"},
                   {"COLORTERM", "truecolor"},
                   {"PATH", "/secret"},
                   {"AWS_SECRET_ACCESS_KEY", "x"}}),
      (std::vector<std::string>{"screen", "COLORTERM=truecolor", "LANG=de_DE.UTF-8", "LC_TIME=C"}));
}

TEST(ShellCommand, UsesUtf8WithoutALocale) {
  EXPECT_EQ(taken_along({}), (std::vector<std::string>{"", "LANG=C.UTF-8"}));
  EXPECT_EQ(taken_along({{"LANG", ""}, {"LC_ALL", "C"}}),
            (std::vector<std::string>{"", "LC_ALL=C"}));
}

TEST(ShellCommand, PassesNoTerminalTypeWithoutATerminal) {
  for (const char* type : {"dumb", "../../etc/passwd", "a b", "x\ny", ""}) {
    EXPECT_EQ(taken_along({{"TERM", type}}).front(), "") << type;
  }
}

}  // namespace

}  // namespace muster::cli::sessions
