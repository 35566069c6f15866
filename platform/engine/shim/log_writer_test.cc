#include "engine/shim/log_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/log_frame.h"

namespace muster::engine {
namespace {

class Log : public testing::Test {
 protected:
  Log() : path_(testing::TempDir() + "writer" + std::to_string(::getpid())) {
    ::unlink(path_.c_str());
  }
  ~Log() override { ::unlink(path_.c_str()); }

  LogWriter writer() {
    return {base::UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT, 0600)), clock_};
  }

  /// "stream:bytes" of each frame.
  std::vector<std::string> frames() const {
    FileLogCursor reader(base::UniqueFd(::open(path_.c_str(), O_RDONLY)));
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

/// A disk that is full beyond `bytes`: the limit on the size of files, with its signal ignored.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_{};
};

TEST_F(Log, AppendsFramesInOrderAndCutsLongOnes) {
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

TEST_F(Log, GoesOnAtTheEndOfWhatIsThere) {
  writer().write(job::LogStream::kOutput, "first");
  writer().write(job::LogStream::kOutput, "second");

  EXPECT_EQ(frames(), (std::vector<std::string>{"0:first", "0:second"}));
}

TEST_F(Log, DropsWhatAFullDiskDoesNotTakeAndSaysHowMuchOnceThereIsRoom) {
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

TEST_F(Log, TellsOfOneLossOnceAlthoughTheShortLineThatTellsItWouldFitBetween) {
  LogWriter log = writer();
  {
    const FullDisk disk(1000);
    for (int i = 0; i < 5; ++i) log.write(job::LogStream::kOutput, std::string(900, 'a'));
    log.notice("the log ends early");
  }

  EXPECT_EQ(frames(), (std::vector<std::string>{"0:" + std::string(900, 'a')}));
  EXPECT_EQ(log.lost(), 3600U);
}

TEST_F(Log, IsReadRightByWhoSawTheHalfOfAFrameThatWasTakenBack) {
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

}  // namespace
}  // namespace muster::engine
