#include "cli/logs/logs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <vector>

namespace muster::cli::logs {

namespace {

using Records = std::vector<job::LogRecord>;

job::LogRecord line_of_attempt(const std::string& task, const std::string& text, int attempt = 1) {
  return {.task = task, .attempt = attempt, .text = text};
}

job::LogRecord piece(const std::string& task, const std::string& text) {
  job::LogRecord record = line_of_attempt(task, text);
  record.continues = true;
  return record;
}

/// The texts of the unseen records, with '|' for the end of a line.
std::string seen(LogCursor& cursor, const Records& records) {
  std::string texts;
  for (const job::LogRecord& each : records) {
    const job::LogRecord* const fresh = cursor.unseen(each);
    if (fresh != nullptr) texts += fresh->text + (fresh->continues ? "" : "|");
  }
  return texts;
}

TEST(LogCursor, PassesEverythingWithoutAnInterruption) {
  LogCursor cursor;
  EXPECT_EQ(seen(cursor,
                 {line_of_attempt("a", "1"), line_of_attempt("a", "1"), line_of_attempt("b", "")}),
            "1|1||");
  EXPECT_EQ(cursor.place(), "");
}

TEST(LogCursor, SkipsExactlyTheSeenBytesAfterARestart) {
  const Records all{line_of_attempt("a", "A"),    line_of_attempt("b", "B"),
                    line_of_attempt("a", "C"),    line_of_attempt("a", "C"),
                    line_of_attempt("b", "E"),    line_of_attempt("a", "F"),
                    line_of_attempt("c", "G", 2), line_of_attempt("c", "G", 1)};
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    LogCursor cursor;
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(cut);
    std::string texts = seen(cursor, {all.begin(), middle});
    cursor.restart();
    texts += seen(cursor, all);
    EXPECT_EQ(texts, "A|B|C|C|E|F|G|G|") << "cut after " << cut;
  }
}

TEST(LogCursor, GivesTheSameResultHoweverTheBytesAreSplitIntoRecords) {
  LogCursor cursor;
  EXPECT_EQ(seen(cursor, {line_of_attempt("a", "one"), piece("a", "tw"), piece("b", "x")}),
            "one|twx");
  cursor.restart();

  EXPECT_EQ(seen(cursor, {piece("a", "o"), line_of_attempt("a", "ne"), line_of_attempt("b", "xyz"),
                          line_of_attempt("a", "two")}),
            "yz|o|");
}

TEST(LogCursor, PassesTheMissingEndOfALine) {
  LogCursor cursor;
  seen(cursor, {piece("a", "one")});
  cursor.restart();

  EXPECT_EQ(seen(cursor, {line_of_attempt("a", "one")}), "|");
}

TEST(LogCursor, SurvivesASecondInterruptionWhileBytesAreRepeated) {
  LogCursor cursor;
  seen(cursor, {line_of_attempt("a", "1"), line_of_attempt("a", "1"), line_of_attempt("a", "2")});
  cursor.restart();
  seen(cursor, {line_of_attempt("a", "1")});
  cursor.restart();

  EXPECT_EQ(seen(cursor, {line_of_attempt("a", "1"), line_of_attempt("a", "1"),
                          line_of_attempt("a", "2"), line_of_attempt("a", "2")}),
            "2|");
}

TEST(LogCursor, ForgetsTheBytesBeforeAPlace) {
  LogCursor cursor;
  seen(cursor, {line_of_attempt("a", "1")});
  cursor.reach("p1");
  seen(cursor, {line_of_attempt("a", "2")});
  cursor.restart();

  EXPECT_EQ(cursor.place(), "p1");
  EXPECT_EQ(seen(cursor, {line_of_attempt("a", "2"), line_of_attempt("a", "3")}), "3|");
}

TEST(LogCursor, RemembersBytesBeyondAPlaceThatIsReachedAgain) {
  LogCursor cursor;
  seen(cursor, {line_of_attempt("a", "1"), line_of_attempt("a", "2"), line_of_attempt("a", "3")});
  cursor.restart();
  // This time the server sends the place earlier.
  seen(cursor, {line_of_attempt("a", "1")});
  cursor.reach("p1");
  EXPECT_EQ(seen(cursor, {line_of_attempt("a", "2")}), "");
  cursor.restart();

  EXPECT_EQ(seen(cursor,
                 {line_of_attempt("a", "2"), line_of_attempt("a", "3"), line_of_attempt("a", "4")}),
            "4|");
}

}  // namespace

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

}  // namespace

}  // namespace muster::cli::logs
