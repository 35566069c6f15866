#include "cli/common/typed_input.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/unique_fd.h"

namespace muster::cli {

namespace {

/// A terminal, and standard error as a pipe, so that the typing thread can wait for the question.
class TypedInput : public testing::Test {
 protected:
  void SetUp() override {
    int keyboard = -1;
    int terminal = -1;
    ASSERT_EQ(::openpty(&keyboard, &terminal, nullptr, nullptr, nullptr), 0);
    keyboard_.reset(keyboard);
    terminal_.reset(terminal);
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    questions_.reset(ends[0]);
    before_.reset(::dup(STDERR_FILENO));
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
  }

  void TearDown() override { give_back_standard_error(); }

  void give_back_standard_error() {
    if (before_) ::dup2(before_.get(), STDERR_FILENO);
    before_.reset();
  }

  void wait_for(std::string_view question) const {
    std::string text;
    char letter = 0;
    while (!text.ends_with(question) && ::read(questions_.get(), &letter, 1) == 1) text += letter;
  }

  Result<std::optional<std::string>> answer(const std::string& typed, Echo echo) {
    Interrupts interrupts;
    std::thread person([&] {
      wait_for("token: ");
      static_cast<void>(base::write_all(keyboard_.get(), typed));
    });
    auto line = ask(terminal_.get(), "token: ", echo, interrupts);
    person.join();
    return line;
  }

  /// The terminal's output so far.
  std::string shown() {
    terminal_.reset();  // then reading ends
    std::string text;
    std::array<char, 256> bytes{};
    ssize_t count = 0;
    while ((count = ::read(keyboard_.get(), bytes.data(), bytes.size())) > 0) {
      text.append(bytes.data(), static_cast<size_t>(count));
    }
    return text;
  }

  bool echoes() const {
    termios state{};
    return ::tcgetattr(terminal_.get(), &state) == 0 && (state.c_lflag & ECHO) != 0;
  }

  base::UniqueFd keyboard_;
  base::UniqueFd terminal_;
  base::UniqueFd questions_;
  base::UniqueFd before_;
};

TEST_F(TypedInput, SecretIsReadWithoutEcho) {
  const auto line = answer("sesame\n", Echo::kOff);

  ASSERT_TRUE(line && *line);
  EXPECT_EQ(**line, "sesame");
  EXPECT_TRUE(echoes());
  EXPECT_EQ(shown(), "\r\n");
}

TEST_F(TypedInput, OrdinaryTextIsEchoed) {
  const auto line = answer("yes\n", Echo::kOn);

  ASSERT_TRUE(line && *line);
  EXPECT_EQ(**line, "yes");
  EXPECT_EQ(shown(), "yes\r\n");
}

TEST_F(TypedInput, CtrlDEndsTheInputAndRestoresTheTerminal) {
  const auto line = answer("\x04", Echo::kOff);

  ASSERT_TRUE(line);
  EXPECT_FALSE(*line);
  EXPECT_TRUE(echoes());
}

TEST_F(TypedInput, CtrlCEndsTheInputAndRestoresTheTerminal) {
  Interrupts interrupts;
  // This terminal does not control the test's process, so its Ctrl-C reaches no process. The test
  // sends the signal itself.
  std::thread person([this] {
    wait_for("token: ");
    ::kill(::getpid(), SIGINT);
  });

  const auto line = ask(terminal_.get(), "token: ", Echo::kOff, interrupts);
  person.join();

  ASSERT_TRUE(line);
  EXPECT_FALSE(*line);
  EXPECT_TRUE(echoes());
}

TEST_F(TypedInput, LineThatATerminalWouldTruncateIsRefused) {
  const auto line = answer(std::string(5000, 'x') + "\n", Echo::kOff);

  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, base::ErrorCode::kInvalid);
  EXPECT_EQ(line.error().to_string().find("xxx"), std::string::npos);
}

TEST(ReadToEnd, ReadsEverythingUpToALimit) {
  for (const size_t size : {size_t{0}, size_t{7}, size_t{64 << 10}}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    std::thread writer([&] {
      static_cast<void>(base::write_all(ends[1], std::string(size, 'x')));
      ::close(ends[1]);
    });
    const auto text = read_to_end(ends[0], 1000);
    writer.join();
    ::close(ends[0]);
    EXPECT_EQ(text.ok(), size <= 1000) << size;
    if (text) {
      EXPECT_EQ(text->size(), size);
    }
  }
}

TEST(WithoutLastNewline, RemovesOneNewlineOnly) {
  EXPECT_EQ(without_last_newline("a\n"), "a");
  EXPECT_EQ(without_last_newline("a\r\n"), "a");
  EXPECT_EQ(without_last_newline("a\n\n"), "a\n");
  EXPECT_EQ(without_last_newline("a"), "a");
  EXPECT_EQ(without_last_newline(""), "");
}

}  // namespace

}  // namespace muster::cli
