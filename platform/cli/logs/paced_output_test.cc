#include "cli/logs/paced_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>

namespace muster::cli::logs {

namespace {

struct Pipe {
  base::UniqueFd read_end;
  base::UniqueFd write_end;

  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
    ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  }

  std::string take() const {
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(read_end.get(), bytes.data(), bytes.size());
    return count > 0 ? std::string(bytes.data(), static_cast<size_t>(count)) : "";
  }
};

bool becomes_readable(int fd, int timeout_ms) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, timeout_ms) == 1;
}

TEST(PacedOutput, WritesTheFirstLineAtOnceAndTheNextWithinThePatience) {
  const Pipe pipe;
  PacedOutput output(pipe.write_end.get(), std::chrono::seconds(5));

  output.buffer() += "first\n";
  ASSERT_TRUE(output.commit());
  EXPECT_EQ(pipe.take(), "first\n");

  output.buffer() += "second\n";
  ASSERT_TRUE(output.commit());
  EXPECT_EQ(pipe.take(), "");
  ASSERT_TRUE(becomes_readable(output.fd(), 60'000));
  ASSERT_TRUE(output.flush());
  EXPECT_EQ(pipe.take(), "second\n");
  EXPECT_FALSE(becomes_readable(output.fd(), 50));
}

TEST(PacedOutput, ReportsThatTheReaderIsGone) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.read_end.reset();
  PacedOutput output(pipe.write_end.get());

  output.buffer() += "x";
  const auto written = output.commit();

  std::signal(SIGPIPE, before);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, base::ErrorCode::kUnavailable);
}

/// A terminal that passes bytes unchanged, and its far end.
struct RawPair {
  base::UniqueFd far;
  base::UniqueFd near;

  RawPair() {
    far.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    if (::grantpt(far.get()) != 0 || ::unlockpt(far.get()) != 0) std::abort();
    near.reset(::open(::ptsname(far.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    termios mode{};
    if (::tcgetattr(near.get(), &mode) != 0) std::abort();
    ::cfmakeraw(&mode);
    ::tcsetattr(near.get(), TCSANOW, &mode);
  }

  std::string take() const {
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(far.get(), bytes.data(), bytes.size());
    return count > 0 ? std::string(bytes.data(), static_cast<size_t>(count)) : "";
  }
};

TEST(PacedOutput, WaitsForAPipe) {
  const Pipe pipe;
  PacedOutput output(pipe.write_end.get());

  EXPECT_FALSE(output.stop_waiting());
}

TEST(PacedOutput, DoesNotWaitForATerminalThatIsFull) {
  const RawPair terminal;
  PacedOutput output(terminal.near.get());
  ASSERT_TRUE(output.stop_waiting());
  const std::string piece = std::string(PacedOutput::kTerminalPiece - 1, 'x') + "\n";

  std::string all;
  do {
    output.buffer() += piece;
    all += piece;
    ASSERT_TRUE(output.commit());
    ASSERT_TRUE(output.write_some(false));
  } while (output.buffer().empty());

  EXPECT_EQ(::fcntl(terminal.near.get(), F_GETFL) & O_NONBLOCK, 0);
  std::string shown;
  while (shown.size() < all.size()) {
    shown += terminal.take();
    if (!becomes_readable(output.fd(), 0)) continue;
    ASSERT_TRUE(output.write_some(false));
  }
  EXPECT_TRUE(shown == all);
  EXPECT_TRUE(output.buffer().empty());
  EXPECT_FALSE(becomes_readable(output.fd(), 0));
}

TEST(PacedOutput, ATerminalWithRoomIsReportedToACallerWithMoreLines) {
  const RawPair terminal;
  PacedOutput output(terminal.near.get());
  ASSERT_TRUE(output.stop_waiting());
  output.buffer() += "first\n";

  ASSERT_TRUE(output.write_some(true));
  EXPECT_TRUE(becomes_readable(output.fd(), 0));

  ASSERT_TRUE(output.write_some(false));
  EXPECT_FALSE(becomes_readable(output.fd(), 0));
}

}  // namespace

}  // namespace muster::cli::logs
