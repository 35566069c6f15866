#include "cli/common/typed_input.h"

#include <gtest/gtest.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/test_folder.h"
#include "cli/common/test_terminal.h"

namespace muster::cli {

namespace {

class TypedInput : public testing::Test {
 protected:
  Result<std::optional<std::string>> answer(const std::string& typed, Echo echo) {
    Interrupts interrupts;
    std::thread person([&] {
      questions_.wait_for("token: ");
      terminal_.type(typed);
    });
    auto line = ask(terminal_.fd(), "token: ", echo, interrupts);
    person.join();
    return line;
  }

  bool echoes() const {
    termios state{};
    return ::tcgetattr(terminal_.fd(), &state) == 0 && (state.c_lflag & ECHO) != 0;
  }

  TestTerminal terminal_;
  PipedStandardError questions_;
};

TEST_F(TypedInput, SecretIsReadWithoutEcho) {
  const auto line = answer("sesame\n", Echo::kOff);

  ASSERT_TRUE(line && *line);
  EXPECT_EQ(**line, "sesame");
  EXPECT_TRUE(echoes());
  EXPECT_EQ(terminal_.output(), "\r\n");
}

TEST_F(TypedInput, OrdinaryTextIsEchoed) {
  const auto line = answer("yes\n", Echo::kOn);

  ASSERT_TRUE(line && *line);
  EXPECT_EQ(**line, "yes");
  EXPECT_EQ(terminal_.output(), "yes\r\n");
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
    questions_.wait_for("token: ");
    ::kill(::getpid(), SIGINT);
  });

  const auto line = ask(terminal_.fd(), "token: ", Echo::kOff, interrupts);
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

TEST(ReadFlagFile, MissingFileIsAnInvalidArgument) {
  const base::TestFolder folder;
  const std::string file = folder / "job.yaml";
  const auto missing = read_flag_file(file);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, base::ErrorCode::kInvalid);
  EXPECT_NE(missing.error().to_string().find(file), std::string::npos)
      << missing.error().to_string();

  ASSERT_TRUE(base::write_file(file, "name: a\n"));
  EXPECT_EQ(*read_flag_file(file), "name: a\n");
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
