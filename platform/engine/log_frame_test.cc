#include "engine/log_frame.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "base/files.h"

namespace muster::engine {
namespace {

const base::Time kTime{std::chrono::nanoseconds(1'700'000'000'123'456'789)};

class LogFile : public testing::Test {
 protected:
  LogFile() : path_(testing::TempDir() + "log" + std::to_string(::getpid())) {
    file_ = base::UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
  }
  ~LogFile() override { ::unlink(path_.c_str()); }

  void write(const std::string& bytes) { ASSERT_TRUE(base::write_all(file_.get(), bytes)); }
  FileLogCursor cursor() const {
    return FileLogCursor(base::UniqueFd(::open(path_.c_str(), O_RDONLY)));
  }

  std::string path_;
  base::UniqueFd file_;
};

TEST_F(LogFile, GivesBackFramesAsTheyWereWritten) {
  const LogFrame output{.time = kTime, .bytes = std::string("a\0b\n", 4)};
  const LogFrame error{.time = kTime, .stream = job::LogStream::kError, .bytes = "oops"};
  write(encode_frame(output.time, output.stream, output.bytes) +
        encode_frame(error.time, error.stream, error.bytes));

  FileLogCursor reader = cursor();
  LogFrame frame;
  ASSERT_TRUE(*reader.next(frame));
  EXPECT_EQ(frame, output);
  ASSERT_TRUE(*reader.next(frame));
  EXPECT_EQ(frame, error);
  EXPECT_FALSE(*reader.next(frame));
}

TEST_F(LogFile, WaitsForTheRestOfAFrameWhereverItWasCut) {
  const std::string whole = encode_frame(kTime, job::LogStream::kOutput, "hello");
  FileLogCursor reader = cursor();
  LogFrame frame;
  for (const char byte : whole) {
    const auto more = reader.next(frame);
    ASSERT_TRUE(more);
    EXPECT_FALSE(*more);
    write(std::string(1, byte));
  }
  ASSERT_TRUE(*reader.next(frame));
  EXPECT_EQ(frame.bytes, "hello");
}

TEST_F(LogFile, ReportsADamagedLog) {
  write(std::string(64, '\xff'));
  FileLogCursor reader = cursor();
  LogFrame frame;

  const auto more = reader.next(frame);

  ASSERT_FALSE(more);
  EXPECT_NE(more.error().what.find("damaged"), std::string::npos);
}

TEST_F(LogFile, TriesAgainWhenTooManyFilesWereOpen) {
  write(encode_frame(kTime, job::LogStream::kOutput, "one"));
  FileLogCursor reader(base::UniqueFd(::open(path_.c_str(), O_RDONLY)), path_ + ".start");
  LogFrame frame;
  ASSERT_TRUE(*reader.next(frame));
  write(encode_frame(kTime, job::LogStream::kOutput, "two"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  for (int i = 0; i < 2; ++i) {
    const auto more = reader.next(frame);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code, base::ErrorCode::kExhausted);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);

  ASSERT_TRUE(*reader.next(frame));
  EXPECT_EQ(frame.bytes, "two");
}

TEST_F(LogFile, FindsAFrameNearTheEndWithoutTheRest) {
  for (int i = 0; i < 5000; ++i) {
    write(encode_frame(kTime, job::LogStream::kOutput, "line " + std::to_string(i) + "\n"));
  }
  FileLogCursor reader = cursor();
  ASSERT_TRUE(reader.seek_near_end(100));

  LogFrame frame;
  std::vector<std::string> lines;
  while (*reader.next(frame)) lines.push_back(frame.bytes);

  ASSERT_FALSE(lines.empty());
  EXPECT_LE(lines.size(), 4U);
  EXPECT_EQ(lines.back(), "line 4999\n");
}

TEST_F(LogFile, StartsAtTheBeginningWhenItIsShort) {
  write(encode_frame(kTime, job::LogStream::kOutput, "only"));
  FileLogCursor reader = cursor();
  ASSERT_TRUE(reader.seek_near_end(1000));
  LogFrame frame;
  ASSERT_TRUE(*reader.next(frame));
  EXPECT_EQ(frame.bytes, "only");
}

TEST_F(LogFile, FindsAFrameByTheNumberOfBytesBeforeIt) {
  uint64_t offset = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string frame = encode_frame(kTime, job::LogStream::kOutput, std::to_string(i));
    if (i < 700) offset += frame.size();
    write(frame);
  }
  // As the file has it, and as a cursor without a seek of its own does.
  class Plain : public LogCursor {
   public:
    explicit Plain(FileLogCursor file) : file_(std::move(file)) {}

    base::Result<bool> next(LogFrame& frame) override { return file_.next(frame); }
    base::Result<void> seek_near_end(size_t bytes) override { return file_.seek_near_end(bytes); }
    uint64_t size() const override { return file_.size(); }

   private:
    FileLogCursor file_;
  };
  FileLogCursor file = cursor();
  Plain plain(cursor());
  for (LogCursor* reader : std::initializer_list<LogCursor*>{&file, &plain}) {
    ASSERT_TRUE(reader->seek(offset));
    LogFrame frame;
    ASSERT_TRUE(*reader->next(frame));
    EXPECT_EQ(frame.bytes, "700");
  }
}

TEST_F(LogFile, HasTheSizeOfWhatWasNotCut) {
  const std::string frame = encode_frame(kTime, job::LogStream::kOutput, "0123456789");
  write(frame + frame + frame);
  EXPECT_EQ(cursor().size(), 3 * frame.size());
  const std::string start = path_ + ".start";
  std::ofstream(start) << encode(LogStart{.offset = frame.size(), .quota = 1000});
  const FileLogCursor reader(base::UniqueFd(::open(path_.c_str(), O_RDONLY)), start);
  EXPECT_EQ(reader.size(), 2 * frame.size());
}

TEST_F(LogFile, FindsNothingBehindItsEnd) {
  write(encode_frame(kTime, job::LogStream::kOutput, "only"));
  FileLogCursor reader = cursor();
  ASSERT_TRUE(reader.seek(1'000'000));
  LogFrame frame;
  EXPECT_FALSE(*reader.next(frame));
}

}  // namespace
}  // namespace muster::engine
