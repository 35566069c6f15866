#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "cli/logs/log_stream.h"

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

TEST(PacedOutput, TheFirstLineGoesOutAtOnceAndTheNextWithinItsTime) {
  const Pipe pipe;
  PacedOutput output(pipe.write_end.get(), std::chrono::seconds(1));

  output.buffer() += "first\n";
  ASSERT_TRUE(output.commit());
  EXPECT_EQ(pipe.take(), "first\n");

  output.buffer() += "second\n";
  ASSERT_TRUE(output.commit());
  EXPECT_EQ(pipe.take(), "");
  ASSERT_TRUE(becomes_readable(output.timer_fd(), 5000));
  ASSERT_TRUE(output.flush());
  EXPECT_EQ(pipe.take(), "second\n");
  EXPECT_FALSE(becomes_readable(output.timer_fd(), 50));
}

TEST(PacedOutput, AReaderThatIsGoneIsAnErrorOfItsOwn) {
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

}  // namespace

}  // namespace muster::cli::logs
