#include "engine/folder/mirror.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/test_folder.h"
#include "engine/folder/task_folder.h"
#include "engine/log_frame.h"
#include "engine/metric_log.h"
#include "engine/test_full_disk.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

const base::Time kNow{std::chrono::seconds(1'700'000'000)};

class MirrorOfATask : public testing::Test {
 protected:
  Mirror open() const {
    auto mirror = Mirror::open(folder_);
    EXPECT_TRUE(mirror) << mirror.error().to_string();
    return *std::move(mirror);
  }

  static FollowRecord record(FollowKind kind, std::string bytes, uint64_t offset = 0) {
    return {.kind = kind, .offset = offset, .bytes = std::move(bytes)};
  }

  static std::string frame(const std::string& text) {
    return encode_frame(kNow, job::LogStream::kOutput, text);
  }

  std::string printed() const {
    auto cursor = open_log_in(folder_, "main");
    EXPECT_TRUE(cursor);
    std::string text;
    LogFrame next;
    while (true) {
      const auto more = (*cursor)->next(next);
      EXPECT_TRUE(more);
      if (!more || !*more) return text;
      text += next.cut > 0 ? "[cut " + std::to_string(next.cut) + "]" : next.bytes;
    }
  }

  base::TestFolder where_;
  TaskFolder folder_{where_ / "job/1/main"};
};

TEST_F(MirrorOfATask, HasAnEmptyLogThatOnlyItsUserCanRead) {
  const Mirror mirror = open();

  EXPECT_EQ(mirror.log_offset(), 0U);
  EXPECT_EQ(mirror.metrics_offset(), 0U);
  EXPECT_EQ(printed(), "");
  EXPECT_EQ(fs::status(folder_.path).permissions(), fs::perms::owner_all);
  EXPECT_FALSE(fs::exists(folder_.metrics()));
}

TEST_F(MirrorOfATask, CopiesALogFromPiecesOfAnySize) {
  const std::string log = frame("one\n") + frame("two\n") + frame("three\n");
  for (size_t piece = 1; piece < log.size(); piece += 7) {
    fs::remove_all(folder_.path);
    Mirror mirror = open();
    for (size_t at = 0; at < log.size(); at += piece) {
      ASSERT_TRUE(mirror.take(record(FollowKind::kLog, log.substr(at, piece), at)));
    }
    EXPECT_EQ(mirror.log_offset(), log.size());
    EXPECT_EQ(printed(), "one\ntwo\nthree\n") << "in pieces of " << piece;
  }
}

TEST_F(MirrorOfATask, IsCompleteAlsoIfOtherCopiesTakeItsDescriptors) {
  const auto files = std::make_shared<OpenFiles>(1);
  auto mirror = Mirror::open(folder_, 0, files);
  auto other = Mirror::open({where_ / "job/1/other"}, 0, files);
  ASSERT_TRUE(mirror && other);
  for (int i = 0; i < 3; ++i) {
    const std::string line = frame("line " + std::to_string(i) + "\n");
    ASSERT_TRUE(mirror->take(record(FollowKind::kLog, line, mirror->log_offset())));
    ASSERT_TRUE(mirror->take(record(FollowKind::kMetrics, "1 - a=1\n", mirror->metrics_offset())));
    ASSERT_TRUE(other->take(record(FollowKind::kLog, line, other->log_offset())));
  }
  ASSERT_TRUE(mirror->take(record(FollowKind::kMetrics, "2 - a=2\n", 0)));  // a new file
  ASSERT_TRUE(other->take(record(FollowKind::kLog, frame("end\n"), other->log_offset())));
  ASSERT_TRUE(mirror->take(record(FollowKind::kMetrics, "3 - a=3\n", mirror->metrics_offset())));

  EXPECT_EQ(printed(), "line 0\nline 1\nline 2\n");
  EXPECT_EQ(*base::read_file(folder_.metrics()), "2 - a=2\n3 - a=3\n");
}

TEST_F(MirrorOfATask, SkipsBytesThatItHas) {
  const std::string log = frame("one\n") + frame("two\n");
  Mirror mirror = open();
  ASSERT_TRUE(mirror.take(record(FollowKind::kLog, log.substr(0, 30), 0)));

  ASSERT_TRUE(mirror.take(record(FollowKind::kLog, log.substr(0, 20), 0)));  // all of it
  ASSERT_TRUE(mirror.take(record(FollowKind::kLog, log.substr(10), 10)));    // a part

  EXPECT_EQ(*base::read_file(folder_.log()), log);
}

TEST_F(MirrorOfATask, AGapIsAnErrorAndChangesNothing) {
  Mirror mirror = open();
  ASSERT_TRUE(mirror.take(record(FollowKind::kLog, "abc", 0)));

  const auto taken = mirror.take(record(FollowKind::kLog, "x", 5));

  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().what, "the bytes from 3 to 5 of the task's log are missing");
  EXPECT_EQ(*base::read_file(folder_.log()), "abc");
  EXPECT_EQ(mirror.take(record(FollowKind::kMetrics, "x", 5)).error().what,
            "the bytes from 0 to 5 of the task's metrics are missing");
}

TEST_F(MirrorOfATask, ContinuesInTheMiddleOfAFrame) {
  const std::string log = frame("one\n") + frame("two\n");
  {
    Mirror earlier = open();
    ASSERT_TRUE(earlier.take(record(FollowKind::kLog, log.substr(0, 25), 0)));
    ASSERT_TRUE(earlier.take(record(FollowKind::kMetrics, "1 - a=1\n2 - a", 0)));
  }
  Mirror mirror = open();
  EXPECT_EQ(mirror.log_offset(), 25U);
  EXPECT_EQ(mirror.metrics_offset(), 13U);

  ASSERT_TRUE(mirror.take(record(FollowKind::kLog, log.substr(25), 25)));
  ASSERT_TRUE(mirror.take(record(FollowKind::kMetrics, "=2\n", 13)));

  EXPECT_EQ(printed(), "one\ntwo\n");
  EXPECT_EQ(MetricReader(folder_.metrics()).read()->samples.size(), 2U);
}

TEST_F(MirrorOfATask, AReaderGetsANoticeOfACutLog) {
  const std::string first = frame(std::string(20'000, 'a'));
  const std::string second = frame("rest\n");
  Mirror mirror = open();
  ASSERT_TRUE(mirror.take(record(FollowKind::kLog, first, 0)));
  ASSERT_TRUE(mirror.take(record(FollowKind::kLog, second, first.size())));

  ASSERT_TRUE(mirror.take(
      record(FollowKind::kLogStart, encode(LogStart{.offset = first.size(), .quota = 100}))));

  EXPECT_EQ(printed(), "[cut " + std::to_string(first.size()) + "]rest\n");
  struct stat status{};
  ASSERT_EQ(::stat(folder_.log().c_str(), &status), 0);
  EXPECT_EQ(static_cast<size_t>(status.st_size), first.size() + second.size());
  EXPECT_LT(status.st_blocks * 512, 12'000);
}

TEST_F(MirrorOfATask, AFrontThatWasCutBeforeItWasCopiedIsNoGap) {
  const std::string second = frame("rest\n");
  Mirror mirror = open();
  ASSERT_TRUE(mirror.take(record(FollowKind::kLog, frame("early\n").substr(0, 10), 0)));

  ASSERT_TRUE(
      mirror.take(record(FollowKind::kLogStart, encode(LogStart{.offset = 5000, .quota = 100}))));
  EXPECT_EQ(mirror.log_offset(), 5000U);
  ASSERT_TRUE(mirror.take(record(FollowKind::kLog, second, 5000)));

  EXPECT_EQ(printed(), "[cut 5000]rest\n");
}

TEST_F(MirrorOfATask, IgnoresARepeatedOrInvalidStart) {
  Mirror mirror = open();
  ASSERT_TRUE(
      mirror.take(record(FollowKind::kLogStart, encode(LogStart{.offset = 5000, .quota = 1}))));

  ASSERT_TRUE(
      mirror.take(record(FollowKind::kLogStart, encode(LogStart{.offset = 100, .quota = 1}))));
  for (const char* text : {"", "x", "1 2", "-1 2\n", "99999999999999999999 1\n"}) {
    EXPECT_FALSE(mirror.take(record(FollowKind::kLogStart, text))) << text;
  }

  EXPECT_EQ(read_log_start(folder_.log_start())->offset, 5000U);
  EXPECT_EQ(mirror.log_offset(), 5000U);
}

uint64_t bytes_on_disk(const fs::path& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return static_cast<uint64_t>(status.st_blocks) * 512;
}

TEST_F(MirrorOfATask, CutsALogThatItsShimDoesNotCut) {
  constexpr uint64_t kQuota = 100'000;
  auto mirror = Mirror::open(folder_, kQuota);
  ASSERT_TRUE(mirror);
  const std::string piece = frame(std::string(20'000, 'a'));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(mirror->take(record(FollowKind::kLog, piece, mirror->log_offset())));
    EXPECT_LT(bytes_on_disk(folder_.log()), 2 * kQuota + 2 * kMaxFollowRecord);
  }

  EXPECT_EQ(mirror->log_offset(), 100 * piece.size());
  EXPECT_GT(read_log_start(folder_.log_start())->offset, 0U);
  auto later = Mirror::open(folder_, kQuota);  // a server that is started anew
  ASSERT_TRUE(later);
  EXPECT_EQ(later->log_offset(), mirror->log_offset());
  ASSERT_TRUE(later->take(record(FollowKind::kLog, piece, later->log_offset())));
  EXPECT_LT(bytes_on_disk(folder_.log()), 2 * kQuota + 2 * kMaxFollowRecord);
}

TEST_F(MirrorOfATask, DropsEndlessMetrics) {
  Mirror mirror = open();
  ASSERT_TRUE(mirror.take(record(FollowKind::kMetrics, "1 - a=1\n", 0)));
  const std::string piece(kMaxFollowRecord, 'x');
  for (int64_t size = 0; size < 6 * kMaxMetricLog; size += kMaxFollowRecord) {
    ASSERT_TRUE(mirror.take(record(FollowKind::kMetrics, piece, mirror.metrics_offset())));
  }
  EXPECT_LT(fs::file_size(folder_.metrics()), 5 * kMaxMetricLog);

  ASSERT_TRUE(mirror.take(record(FollowKind::kMetrics, "2 - a=2\n", 0)));
  EXPECT_EQ(fs::file_size(folder_.metrics()), 8U);
}

TEST_F(MirrorOfATask, NewMetricsReplaceOldOnes) {
  Mirror mirror = open();
  MetricReader reader(folder_.metrics());
  ASSERT_TRUE(mirror.take(record(FollowKind::kMetrics, "1 - a=1\n", 0)));
  ASSERT_TRUE(mirror.take(record(FollowKind::kMetrics, "2 - a=2\n", 8)));
  EXPECT_EQ(reader.read()->samples.size(), 2U);

  ASSERT_TRUE(mirror.take(record(FollowKind::kMetrics, "2 - a=2\n", 0)));
  ASSERT_TRUE(mirror.take(record(FollowKind::kMetrics, "3 - a=3\n", 8)));

  const auto read = reader.read();
  EXPECT_TRUE(read->anew);
  EXPECT_EQ(read->samples.size(), 2U);
  EXPECT_EQ(read->samples.back().values.front().second, 3);
}

TEST_F(MirrorOfATask, StoresTheStartAndTheEndOfATask) {
  const ExitRecord end{.status = {.code = 3}, .ended = kNow};
  Mirror mirror = open();

  ASSERT_TRUE(mirror.take(record(FollowKind::kMpi, "Open MPI 4.1.4")));
  ASSERT_TRUE(mirror.take(record(FollowKind::kRunning, "{}")));
  ASSERT_TRUE(mirror.take(record(FollowKind::kAnswered, "")));
  ASSERT_TRUE(mirror.take(record(FollowKind::kExit, encode(end) + "   ")));

  EXPECT_EQ(*base::read_file(folder_.mpi()), "Open MPI 4.1.4");
  EXPECT_EQ(*base::read_file(folder_.running()), "{}");
  EXPECT_EQ(end_left_in(folder_).status.code, 3);
}

TEST_F(MirrorOfATask, RanksRegisterOnceAndOnlyAsNumbers) {
  Mirror mirror = open();
  for (const char* rank : {"0 4", "3 4", "3 8", "-1 1"}) {
    EXPECT_TRUE(mirror.take(record(FollowKind::kRank, rank))) << rank;
  }
  for (const char* rank : {"", "1", "1 ", "-3 4", "../x 4", "a 4", "1 4 4"}) {
    EXPECT_FALSE(mirror.take(record(FollowKind::kRank, rank))) << rank;
  }

  std::map<int, int> sizes;
  for (const RankPlace& place : ranks_in(folder_, "main")) sizes[place.rank] = place.world_size;
  EXPECT_EQ(sizes, (std::map<int, int>{{-1, 1}, {0, 4}, {3, 4}}));
}

TEST_F(MirrorOfATask, WritesAfterAFullDiskHasSpace) {
  const std::string log = frame("one\n") + frame("two\n");
  Mirror mirror = open();
  {
    const FullDisk full(25);
    const auto taken = mirror.take(record(FollowKind::kLog, log, 0));
    ASSERT_FALSE(taken);
    EXPECT_NE(taken.error().what.find("cannot write the task's log"), std::string::npos);
    EXPECT_EQ(mirror.log_offset(), 25U);
  }

  ASSERT_TRUE(
      mirror.take(record(FollowKind::kLog, log.substr(mirror.log_offset()), mirror.log_offset())));

  EXPECT_EQ(printed(), "one\ntwo\n");
}

}  // namespace
}  // namespace muster::engine
