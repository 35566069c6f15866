#include "engine/shim/follow.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>
#include <vector>

#include "base/files.h"
#include "base/test_folder.h"
#include "engine/rank_files.h"
#include "engine/shim/log_writer.h"
#include "engine/shim/shim_fixture.h"
#include "engine/shim/task_metrics.h"
#include "engine/test_metrics.h"

namespace muster::engine {

namespace {

// --- records

const std::vector<FollowRecord> kRecords{
    {.kind = FollowKind::kRunning, .bytes = R"({"pid":1})"},
    {.kind = FollowKind::kAnswered},
    {.kind = FollowKind::kLog, .offset = uint64_t{5} << 33, .bytes = std::string("a\0\xff\n", 4)},
    {.kind = FollowKind::kMetrics, .offset = 200, .bytes = std::string(kMaxFollowRecord, 'm')},
    {.kind = FollowKind::kExit, .bytes = R"({"code":3})"}};

std::string stream_of(const std::vector<FollowRecord>& records) {
  std::string stream;
  for (const FollowRecord& record : records) stream += encode(record);
  return stream;
}

std::vector<FollowRecord> records_in(FollowReader& reader) {
  std::vector<FollowRecord> records;
  while (auto record = reader.next()) records.push_back(*std::move(record));
  return records;
}

TEST(FollowWire, EncodesTheDocumentedHeader) {
  const std::string record =
      encode({.kind = FollowKind::kLog, .offset = 0x0102030405060708, .bytes = "abc"});

  EXPECT_EQ(record, std::string("l\x0b\0\0\0\x08\7\6\5\4\3\2\1", 13) + "abc");
}

TEST(FollowWire, RecordsSurviveAnyCutOfTheStream) {
  const std::string stream = stream_of(kRecords);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{16}, size_t{4099}, stream.size()}) {
    FollowReader reader;
    std::vector<FollowRecord> records;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.add(std::string_view(stream).substr(at, piece));
      for (FollowRecord& record : records_in(reader)) records.push_back(std::move(record));
    }
    EXPECT_EQ(records, kRecords) << "in pieces of " << piece;
    EXPECT_FALSE(reader.is_broken());
  }
}

TEST(FollowWire, AnIncompleteStreamHasItsWholeRecords) {
  const std::string stream = stream_of(kRecords);
  FollowReader reader;

  reader.add(std::string_view(stream).substr(0, stream.size() - 1));

  EXPECT_EQ(records_in(reader).size(), kRecords.size() - 1);
  EXPECT_FALSE(reader.is_broken());
}

TEST(FollowWire, ReadRecordsAreNotKeptInMemory) {
  FollowReader reader;
  for (int i = 0; i < 100; ++i) {
    for (const FollowRecord& record : kRecords) {
      reader.add(encode(record));
      EXPECT_EQ(records_in(reader).size(), 1U);
      EXPECT_EQ(reader.kept(), 0U);
    }
  }
}

TEST(FollowWire, AMalformedRecordBreaksTheStream) {
  std::string too_long = encode(kRecords[0]);
  too_long[3] = 1;
  too_long[4] = 1;
  for (const std::string& bad :
       {too_long, base::encode_frame('l', "1234567"), base::encode_frame('?', "12345678"),
        std::string("sh: not found, not at all\n")}) {
    FollowReader reader;
    reader.add(encode(kRecords[0]) + bad);

    EXPECT_EQ(records_in(reader), std::vector<FollowRecord>{kRecords[0]});
    EXPECT_TRUE(reader.is_broken());
    reader.add(encode(kRecords[0]));
    EXPECT_EQ(reader.next(), std::nullopt);
  }
}

// --- changes of folders

/// Whether the descriptor becomes readable in time.
bool becomes_readable(const FolderWatch& watch) {
  pollfd watched{watch.descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, 60'000) > 0;
}

TEST(FolderWatch, AtFirstAllFilesCountAsChanged) {
  const base::TestFolder folder;
  FolderWatch watch;
  ASSERT_TRUE(watch.add(folder));

  EXPECT_TRUE(watch.take(folder).has("anything"));
  EXPECT_FALSE(watch.take(folder).has("anything"));
}

TEST(FolderWatch, NamesTheChangedFilesOfEachFolder) {
  const base::TestFolder one;
  const base::TestFolder other;
  FolderWatch watch;
  ASSERT_TRUE(watch.add(one) && watch.add(other));
  watch.take(one);
  watch.take(other);

  ASSERT_TRUE(base::write_new_file(one / "a", "1"));
  ASSERT_TRUE(base::write_file(other / "b", "2"));

  ASSERT_TRUE(becomes_readable(watch));
  const FolderWatch::Changes of_one = watch.take(one);
  EXPECT_TRUE(of_one.has("a"));
  EXPECT_FALSE(of_one.has("b"));
  EXPECT_TRUE(watch.take(other).has("b"));
}

TEST(FolderWatch, KeepsChangesReadWithThoseOfAnotherFolder) {
  const base::TestFolder folder;
  const auto one = folder / "one";
  const auto other = folder / "other";
  ASSERT_TRUE(base::make_private_folder(one) && base::make_private_folder(other));
  FolderWatch watch;
  ASSERT_TRUE(watch.add(one) && watch.add(other));
  watch.take(one);
  watch.take(other);
  EXPECT_FALSE(watch.has_changes());

  ASSERT_TRUE(base::write_new_file(one / "a", "1"));
  watch.take(other);

  pollfd silent{watch.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&silent, 1, 0), 0) << "the kernel reports a change once";
  EXPECT_TRUE(watch.has_changes());
  EXPECT_TRUE(watch.take(one).has("a"));
  EXPECT_FALSE(watch.has_changes());
}

TEST(FolderWatch, AMissingFolderCanBeAddedLater) {
  const base::TestFolder folder;
  FolderWatch watch;
  EXPECT_FALSE(watch.add(folder / "later"));
  ASSERT_TRUE(base::make_private_folder(folder / "later"));

  EXPECT_TRUE(watch.add(folder / "later"));
  EXPECT_TRUE(watch.take(folder / "later").has("anything"));
}

TEST(FolderWatch, WithoutInotifyReportsAllFilesAgainAndAgain) {
  const base::TestFolder folder;
  FolderWatch watch(false);
  EXPECT_FALSE(watch.add(folder / "later"));
  ASSERT_TRUE(watch.add(folder));
  watch.take(folder);

  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(becomes_readable(watch));
    EXPECT_TRUE(watch.take(folder).has("anything"));
  }
}

// --- the follower
// The records of a follower while a shim's own writers write the files of the folder.

class Follow : public testing::Test {
 protected:
  ~Follow() override {
    if (thread_.joinable()) thread_.join();
  }

  /// Runs the follower on a thread of its own until the stream is dropped.
  FollowStream start(uint64_t log_offset = 0, uint64_t metrics_offset = 0) {
    ::signal(SIGPIPE, SIG_IGN);
    auto output = make_output_pipe();
    EXPECT_TRUE(output);
    thread_ = std::thread([this, log_offset, metrics_offset, end = std::move(output->there)] {
      code_ = follow({.folder = task_,
                      .log_offset = log_offset,
                      .metrics_offset = metrics_offset,
                      .output = end.get()});
    });
    return FollowStream(std::move(output->here));
  }

  LogWriter log_writer(LogQuota quota = {}) const {
    return LogWriter(
        base::UniqueFd(::open(task_.log().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), clock_,
        std::move(quota));
  }

  void end() const {
    ASSERT_TRUE(base::write_file(
        task_.exit(), encode(ExitRecord{.status = {.code = 4}, .ended = clock_.now()}) + "    "));
  }

  /// The metrics file that a reader of these records has.
  static std::string metrics_after(const std::vector<FollowRecord>& records) {
    std::string metrics;
    for (const FollowRecord& record : records) {
      if (record.kind != FollowKind::kMetrics) continue;
      if (record.offset == 0) metrics.clear();
      EXPECT_EQ(record.offset, metrics.size());
      metrics += record.bytes;
    }
    return metrics;
  }

  base::TestFolder folder_;
  const TaskFolder task_{folder_.path()};
  base::SystemClock clock_;
  int code_ = -1;

 private:
  std::thread thread_;
};

TEST_F(Follow, WritesEachRecordAtOnce) {
  FollowStream stream = start();

  ASSERT_TRUE(base::write_file(task_.mpi(), "MPICH 4.0.2"));
  ASSERT_TRUE(base::write_file(task_.running(), "{}"));
  EXPECT_EQ(kinds_of(stream.until(FollowKind::kRunning)), "mr");
  LogWriter log = log_writer();
  log.write(job::LogStream::kOutput, "one\n");
  EXPECT_EQ(output_in(stream.until(FollowKind::kLog).back().bytes), "one\n");
  ASSERT_TRUE(base::write_file(task_.answered(), ""));
  EXPECT_EQ(kinds_of(stream.until(FollowKind::kAnswered)), "a");
  MetricWriter metrics(task_.metrics());
  metrics.write(loss_at(1, 1));
  EXPECT_EQ(stream.until(FollowKind::kMetrics).back().bytes, encode_sample(loss_at(1, 1)));
  end();
  const auto last = stream.rest();

  ASSERT_EQ(kinds_of(last), "e");
  EXPECT_EQ(decode_exit(last.front().bytes)->status.code, 4);
}

TEST_F(Follow, WritesAllRecordsBeforeTheEnd) {
  LogWriter log = log_writer();
  log.write(job::LogStream::kOutput, std::string(3 * kMaxFrame, 'x'));
  MetricWriter metrics(task_.metrics());
  metrics.write(loss_at(1, 1));
  ASSERT_TRUE(base::write_file(task_.running(), "{}"));
  ASSERT_TRUE(base::make_private_folder(task_.generated() / "ranks"));
  ASSERT_TRUE(sign_in(task_.generated() / "ranks", {.rank = 0, .world_size = 1}));
  ASSERT_TRUE(base::write_file(task_.plan(), encode(ShimPlan{.inner = {.takes_ranks = true}})));
  end();

  const auto records = start().rest();

  EXPECT_EQ(kinds_of(records), "rltke");
  EXPECT_EQ(output_in(bytes_of(records, FollowKind::kLog)).size(), 3 * kMaxFrame);
  EXPECT_EQ(bytes_of(records, FollowKind::kRank), "0 1");
}

TEST_F(Follow, AnIncompleteFrameOfTheLogIsNotWritten) {
  const std::string frame = encode_frame(clock_.now(), job::LogStream::kOutput, "whole\n");
  ASSERT_TRUE(base::write_file(task_.log(), frame + frame.substr(0, 20)));
  end();

  EXPECT_EQ(bytes_of(start().rest(), FollowKind::kLog), frame);
}

TEST_F(Follow, ReportsThatTheFrontOfTheLogWasCut) {
  LogWriter log = log_writer({.bytes = 100'000, .start = task_.log_start()});
  for (int i = 0; i < 30; ++i) log.write(job::LogStream::kOutput, std::string(10'000, 'x'));
  const auto start_of_log = read_log_start(task_.log_start());
  ASSERT_TRUE(start_of_log);
  ASSERT_GT(start_of_log->offset, 0U);
  end();

  const auto records = start(10'016).rest();

  ASSERT_EQ(kinds_of(records), "sle");
  EXPECT_EQ(records[0].bytes, encode(*start_of_log));
  EXPECT_EQ(records[1].offset, start_of_log->offset);
}

TEST_F(Follow, ReportsTheCutToAReaderThatIsBeyondIt) {
  FollowStream stream = start();
  LogWriter log = log_writer({.bytes = 100'000, .start = task_.log_start()});
  std::vector<FollowRecord> records;
  while (kinds_of(records).find('s') == std::string::npos) {
    log.write(job::LogStream::kOutput, std::string(10'000, 'x'));
    records.push_back(*stream.next());
  }
  end();

  for (FollowRecord& record : stream.rest()) records.push_back(std::move(record));
  const uint64_t end_of_log = std::filesystem::file_size(task_.log());
  const auto last = std::find_if(records.rbegin(), records.rend(), [](const FollowRecord& record) {
    return record.kind == FollowKind::kLog;
  });
  EXPECT_EQ(last->offset + last->bytes.size(), end_of_log);
}

TEST_F(Follow, RewrittenMetricsAreWrittenAgain) {
  FollowStream stream = start();
  std::vector<FollowRecord> records;
  {
    MetricWriter metrics(task_.metrics(), 4000);
    for (int i = 0; i < 500; ++i) metrics.write(loss_at(i, i));
  }
  end();
  for (FollowRecord& record : stream.rest()) records.push_back(std::move(record));

  EXPECT_EQ(metrics_after(records), *base::read_file(task_.metrics()));
}

TEST_F(Follow, MetricsContinueAfterTheLastLine) {
  MetricWriter metrics(task_.metrics());
  metrics.write(loss_at(1, 1));
  metrics.write(loss_at(2, 2));
  end();

  const auto records = start(0, encode_sample(loss_at(1, 1)).size()).rest();

  EXPECT_EQ(bytes_of(records, FollowKind::kMetrics), encode_sample(loss_at(2, 2)));
}

TEST_F(Follow, AnOffsetBeyondTheMetricsStartsOver) {
  MetricWriter metrics(task_.metrics());
  metrics.write(loss_at(1, 1));
  end();

  EXPECT_EQ(bytes_of(start(0, 1'000'000).rest(), FollowKind::kMetrics),
            encode_sample(loss_at(1, 1)));
}

TEST_F(Follow, ARefusalIsTheLastRecord) {
  ASSERT_TRUE(base::write_file(
      task_.refused(), refusal_text({.code = base::ErrorCode::kConflict, .what = "taken"})));

  const auto records = start().rest();

  ASSERT_EQ(kinds_of(records), "x");
  EXPECT_EQ(read_refusal(records.back().bytes).what, "taken");
}

TEST_F(Follow, AMissingFolderIsReported) {
  EXPECT_EQ(follow({.folder = {folder_ / "nowhere"}}), 1);
}

}  // namespace

}  // namespace muster::engine
