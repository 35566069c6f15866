#include "engine/shim/log_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/files.h"
#include "engine/log_frame.h"
#include "engine/test_full_disk.h"

namespace muster::engine {
namespace {

class Log : public testing::Test {
 protected:
  Log() : path_(testing::TempDir() + "writer" + std::to_string(::getpid())) {
    ::unlink(path_.c_str());
  }
  ~Log() override {
    ::unlink(path_.c_str());
    ::unlink(start().c_str());
  }

  std::string start() const { return path_ + ".start"; }

  LogWriter writer(LogQuota quota = {}) {
    return {base::UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT, 0600)), clock_,
            std::move(quota)};
  }

  FileLogCursor cursor() const {
    return FileLogCursor(base::UniqueFd(::open(path_.c_str(), O_RDONLY)), start());
  }

  int64_t bytes_on_disk() const {
    struct stat found{};
    ::stat(path_.c_str(), &found);
    return found.st_blocks * 512;
  }

  /// The frames of the log, each as "STREAM:BYTES".
  std::vector<std::string> frames() const {
    FileLogCursor reader = cursor();
    std::vector<std::string> found;
    LogFrame frame;
    while (true) {
      const auto more = reader.next(frame);
      EXPECT_TRUE(more);
      if (!more || !*more) return found;
      found.push_back(std::to_string(static_cast<int>(frame.stream)) + ":" + frame.bytes);
    }
  }

  base::FakeClock clock_;
  std::string path_;
};

TEST_F(Log, AppendsFramesInOrderAndSplitsLongOutput) {
  LogWriter log = writer();
  log.write(job::LogStream::kOutput, "a");
  log.write(job::LogStream::kError, std::string(kMaxFrame + 1, 'x'));
  log.notice("note");

  const auto found = frames();

  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0], "0:a");
  EXPECT_EQ(found[1].size(), kMaxFrame + 2);
  EXPECT_EQ(found[2], "1:x");
  EXPECT_EQ(found[3], "2:note\n");
}

TEST_F(Log, ContinuesAtTheEndOfTheFile) {
  writer().write(job::LogStream::kOutput, "first");
  writer().write(job::LogStream::kOutput, "second");

  EXPECT_EQ(frames(), (std::vector<std::string>{"0:first", "0:second"}));
}

TEST_F(Log, ReportsBytesLostOnAFullDiskOnceThereIsRoom) {
  LogWriter log = writer();
  {
    const FullDisk disk(100);
    log.write(job::LogStream::kOutput, std::string(50, 'a'));
    log.write(job::LogStream::kOutput, std::string(50, 'b'));
    log.write(job::LogStream::kOutput, std::string(7, 'c'));
    EXPECT_EQ(log.lost(), 57U);
  }
  log.write(job::LogStream::kOutput, "after");

  EXPECT_EQ(log.lost(), 0U);
  EXPECT_EQ(frames(), (std::vector<std::string>{
                          "0:" + std::string(50, 'a'),
                          "2:57 bytes of output are lost here: the disk under the log was full\n",
                          "0:after"}));
}

TEST_F(Log, ReportsOneLossOnce) {
  LogWriter log = writer();
  {
    const FullDisk disk(1000);
    for (int i = 0; i < 5; ++i) log.write(job::LogStream::kOutput, std::string(900, 'a'));
    log.notice("the log ends early");
  }

  EXPECT_EQ(frames(), (std::vector<std::string>{"0:" + std::string(900, 'a')}));
  EXPECT_EQ(log.lost(), 3600U);
}

TEST_F(Log, ReportsALossAtTheEndInReservedSpace) {
  LogWriter log = writer();
  log.write(job::LogStream::kOutput, "a");
  EXPECT_GT(bytes_on_disk(), 0) << "no space is reserved";
  {
    const FullDisk disk(30);
    log.write(job::LogStream::kOutput, std::string(50, 'b'));
  }
  log.finish();

  EXPECT_EQ(log.lost_in_all(), 50U);
  EXPECT_EQ(frames(),
            (std::vector<std::string>{
                "0:a", "2:50 bytes of output are lost here: the disk under the log was full\n",
                "2:the log ends early\n"}));
}

TEST_F(Log, FreesTheReservedSpaceAtTheEnd) {
  LogWriter log = writer();
  EXPECT_GT(bytes_on_disk(), 0);
  log.finish();
  EXPECT_EQ(bytes_on_disk(), 0);
}

TEST_F(Log, AReaderOfARemovedHalfFrameReadsOnCorrectly) {
  LogWriter log = writer();
  log.write(job::LogStream::kOutput, "whole");
  FileLogCursor reader(base::UniqueFd(::open(path_.c_str(), O_RDONLY)));
  LogFrame frame;
  ASSERT_TRUE(*reader.next(frame));
  const auto half = encode_frame(clock_.now(), job::LogStream::kOutput, std::string(50, 'b'));
  const base::UniqueFd file(::open(path_.c_str(), O_WRONLY | O_APPEND));
  ASSERT_EQ(::write(file.get(), half.data(), 40), 40);
  EXPECT_FALSE(*reader.next(frame));

  ASSERT_EQ(::ftruncate(file.get(), kFrameHeader + 5), 0);
  log.write(job::LogStream::kOutput, "next");

  ASSERT_TRUE(*reader.next(frame));
  EXPECT_EQ(frame.bytes, "next");
}

// --- quotas

constexpr uint64_t kQuota = 1 << 20;

/// A line of 1,000 bytes that begins with its number.
std::string line(int number) {
  std::string text = std::to_string(number) + " ";
  text.resize(999, 'x');
  return text + "\n";
}

TEST_F(Log, RemovesItsOldestPartBeyondItsQuota) {
  LogWriter log = writer({.bytes = kQuota, .start = start()});
  for (int i = 0; i < 10'000; ++i) log.write(job::LogStream::kOutput, line(i));

  EXPECT_LE(bytes_on_disk(), static_cast<int64_t>(kQuota + 8192));
  const auto found = frames();
  ASSERT_GT(found.size(), 900U);
  EXPECT_LT(found.size(), 1'050U);
  EXPECT_EQ(found.front(),
            "2:" + readable_bytes(read_log_start(start())->offset) +
                " of output before this were cut: the log of a task may have 1 MiB (log_quota)\n");
  // The remaining lines are whole and continue to the end.
  const int first = 10'000 - static_cast<int>(found.size() - 1);
  for (size_t i = 1; i < found.size(); ++i) {
    ASSERT_EQ(found[i], "0:" + line(first + static_cast<int>(i) - 1));
  }
}

TEST_F(Log, KeepsAllBytesWithinItsQuota) {
  LogWriter log = writer({.bytes = kQuota, .start = start()});
  for (int i = 0; i < 1'000; ++i) log.write(job::LogStream::kOutput, line(i));

  EXPECT_EQ(frames().size(), 1'000U);
  EXPECT_NE(::access(start().c_str(), F_OK), 0);
}

TEST_F(Log, ReportsMissedBytesToASlowReader) {
  LogWriter log = writer({.bytes = kQuota, .start = start()});
  for (int i = 0; i < 600; ++i) log.write(job::LogStream::kOutput, line(i));
  FileLogCursor reader = cursor();
  LogFrame frame;
  ASSERT_TRUE(*reader.next(frame));
  for (int i = 600; i < 5'000; ++i) log.write(job::LogStream::kOutput, line(i));

  uint64_t at = kFrameHeader + frame.bytes.size();
  int number = 1;
  int notices = 0;
  while (*reader.next(frame)) {
    if (frame.cut > 0) {
      ++notices;
      EXPECT_EQ(frame.stream, job::LogStream::kNotice);
      at += frame.cut;
      number = static_cast<int>(at / (kFrameHeader + 1'000));
      continue;
    }
    ASSERT_EQ(frame.bytes, line(number++));
    at += kFrameHeader + frame.bytes.size();
  }
  EXPECT_EQ(notices, 1);
  EXPECT_EQ(number, 5'000);
}

TEST_F(Log, ASeekBeforeTheCutContinuesAfterIt) {
  LogWriter log = writer({.bytes = kQuota, .start = start()});
  for (int i = 0; i < 5'000; ++i) log.write(job::LogStream::kOutput, line(i));
  const uint64_t left = read_log_start(start())->offset;
  LogFrame frame;

  FileLogCursor before = cursor();
  ASSERT_TRUE(before.seek(10 * (kFrameHeader + 1'000)));
  ASSERT_TRUE(*before.next(frame));
  EXPECT_EQ(frame.cut, left - 10 * (kFrameHeader + 1'000));

  FileLogCursor behind = cursor();
  ASSERT_TRUE(behind.seek(left));
  ASSERT_TRUE(*behind.next(frame));
  EXPECT_EQ(frame.cut, 0U);

  FileLogCursor near_end = cursor();
  ASSERT_TRUE(near_end.seek_near_end(10'000));
  ASSERT_TRUE(*near_end.next(frame));
  EXPECT_EQ(frame.cut, 0U);
  EXPECT_GE(std::stoi(frame.bytes), 4'989);
}

TEST_F(Log, ReadersGetAllBytesOrNoticesWhileItIsCut) {
  constexpr int kLines = 10'000;
  std::thread writing([&] {
    LogWriter log = writer({.bytes = kQuota / 4, .start = start()});
    for (int i = 0; i < kLines; ++i) log.write(job::LogStream::kOutput, line(i));
  });
  while (::access(path_.c_str(), F_OK) != 0) std::this_thread::yield();
  FileLogCursor reader = cursor();
  LogFrame frame;
  uint64_t at = 0;
  int last = -1;
  while (last != kLines - 1) {
    const auto more = reader.next(frame);
    if (!more) {
      ADD_FAILURE() << more.error().what;
      break;
    }
    if (!*more) continue;
    if (frame.cut > 0) {
      at += frame.cut;
      continue;
    }
    const int number = std::stoi(frame.bytes);
    EXPECT_EQ(frame.bytes, line(number));
    EXPECT_EQ(at, static_cast<uint64_t>(number) * (kFrameHeader + 1'000));
    if (testing::Test::HasFailure()) break;
    at += kFrameHeader + frame.bytes.size();
    last = number;
  }
  writing.join();
}

TEST_F(Log, EndsWithANoticeAtItsQuotaIfItCannotBeCut) {
  {
    LogWriter log = writer(
        {.bytes = kQuota, .start = start(), .punch = [](int, int64_t, int64_t) { return false; }});
    for (int i = 0; i < 2'000; ++i) log.write(job::LogStream::kOutput, line(i));
    EXPECT_GT(log.lost(), 0U);
    log.notice("the log ends early");
    EXPECT_EQ(log.lost(), 0U);
  }

  const auto found = frames();
  const size_t kept = found.size() - 3;
  EXPECT_EQ(found[kept - 1], "0:" + line(static_cast<int>(kept) - 1));
  EXPECT_EQ(found[kept],
            "2:the log ends here at its limit of 1 MiB (log_quota): its file system cannot "
            "remove the oldest part\n");
  EXPECT_EQ(found[kept + 1], "2:" + std::to_string((2'000 - kept) * 1'000) +
                                 " bytes of output are lost here: the log is full\n");
  EXPECT_EQ(found[kept + 2], "2:the log ends early\n");
  EXPECT_NE(::access(start().c_str(), F_OK), 0);
}

TEST_F(Log, TheNextWriterCutsAnEarlierLog) {
  for (int i = 0; i < 3; ++i) {
    LogWriter log = writer({.bytes = kQuota, .start = start()});
    for (int j = 0; j < 2'000; ++j) log.write(job::LogStream::kOutput, line(j));
  }
  EXPECT_LE(bytes_on_disk(), static_cast<int64_t>(kQuota + 8192));
  EXPECT_EQ(frames().back(), "0:" + line(1'999));
}

TEST_F(Log, AHoleThatLogStartDoesNotMentionIsDamage) {
  LogWriter log = writer();
  for (int i = 0; i < 10; ++i) log.write(job::LogStream::kOutput, line(i));
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  ASSERT_EQ(::truncate(path_.c_str(), 5'000), 0);
  FileLogCursor reader = cursor();
  LogFrame frame;

  EXPECT_FALSE(reader.next(frame));
}

}  // namespace
}  // namespace muster::engine
