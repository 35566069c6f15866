// What a follower tells while the files in the folder are being written, by the same writers as in
// a shim.
#include "engine/shim/follow.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/rank_files.h"
#include "engine/shim/log_writer.h"
#include "engine/shim/metric_writer.h"
#include "engine/shim/shim_fixture.h"
#include "engine/test_metrics.h"

namespace muster::engine {
namespace {

class Follow : public testing::Test {
 protected:
  ~Follow() override {
    if (thread_.joinable()) thread_.join();
  }

  /// On a thread of its own, until the stream is dropped.
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

  /// Metrics as they are when `told` was heeded.
  static std::string metrics_after(const std::vector<FollowRecord>& told) {
    std::string metrics;
    for (const FollowRecord& record : told) {
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

TEST_F(Follow, TellsEachThingAsItComes) {
  FollowStream told = start();

  ASSERT_TRUE(base::write_file(task_.mpi(), "MPICH 4.0.2"));
  ASSERT_TRUE(base::write_file(task_.running(), "{}"));
  EXPECT_EQ(kinds_of(told.until(FollowKind::kRunning)), "mr");
  LogWriter log = log_writer();
  log.write(job::LogStream::kOutput, "one\n");
  EXPECT_EQ(output_in(told.until(FollowKind::kLog).back().bytes), "one\n");
  ASSERT_TRUE(base::write_file(task_.answered(), ""));
  EXPECT_EQ(kinds_of(told.until(FollowKind::kAnswered)), "a");
  MetricWriter metrics(task_.metrics());
  metrics.write(loss_at(1, 1));
  EXPECT_EQ(told.until(FollowKind::kMetrics).back().bytes, encode_sample(loss_at(1, 1)));
  end();
  const auto last = told.rest();

  ASSERT_EQ(kinds_of(last), "e");
  EXPECT_EQ(decode_exit(last.front().bytes)->status.code, 4);
}

TEST_F(Follow, TellsAllOfItBeforeTheEnd) {
  LogWriter log = log_writer();
  log.write(job::LogStream::kOutput, std::string(3 * kMaxFrame, 'x'));
  MetricWriter metrics(task_.metrics());
  metrics.write(loss_at(1, 1));
  ASSERT_TRUE(base::write_file(task_.running(), "{}"));
  ASSERT_TRUE(base::make_private_folder(task_.generated() / "ranks"));
  ASSERT_TRUE(sign_in(task_.generated() / "ranks", {.rank = 0, .world_size = 1}));
  ASSERT_TRUE(base::write_file(task_.plan(), encode(ShimPlan{.inner = {.takes_ranks = true}})));
  end();

  const auto told = start().rest();

  EXPECT_EQ(kinds_of(told), "rltke");
  EXPECT_EQ(output_in(bytes_of(told, FollowKind::kLog)).size(), 3 * kMaxFrame);
  EXPECT_EQ(bytes_of(told, FollowKind::kRank), "0 1");
}

TEST_F(Follow, HalfAFrameIsNotToldForItMayBeTakenBack) {
  const std::string frame = encode_frame(clock_.now(), job::LogStream::kOutput, "whole\n");
  ASSERT_TRUE(base::write_file(task_.log(), frame + frame.substr(0, 20)));
  end();

  EXPECT_EQ(bytes_of(start().rest(), FollowKind::kLog), frame);
}

TEST_F(Follow, SaysWhereALogBeginsWhoseFrontWasCut) {
  LogWriter log = log_writer({.bytes = 100'000, .start = task_.log_start()});
  for (int i = 0; i < 30; ++i) log.write(job::LogStream::kOutput, std::string(10'000, 'x'));
  const auto start_of_log = read_log_start(task_.log_start());
  ASSERT_TRUE(start_of_log);
  ASSERT_GT(start_of_log->offset, 0U);
  end();

  const auto told = start(10'016).rest();

  ASSERT_EQ(kinds_of(told), "sle");
  EXPECT_EQ(told[0].bytes, encode(*start_of_log));
  EXPECT_EQ(told[1].offset, start_of_log->offset);
}

TEST_F(Follow, OneWhoHasReadOnIsToldThatTheFrontWasCutAsWell) {
  FollowStream told = start();
  LogWriter log = log_writer({.bytes = 100'000, .start = task_.log_start()});
  std::vector<FollowRecord> records;
  while (kinds_of(records).find('s') == std::string::npos) {
    log.write(job::LogStream::kOutput, std::string(10'000, 'x'));
    records.push_back(*told.next());
  }
  end();

  for (FollowRecord& record : told.rest()) records.push_back(std::move(record));
  const uint64_t end_of_log = std::filesystem::file_size(task_.log());
  const auto last = std::find_if(records.rbegin(), records.rend(), [](const FollowRecord& record) {
    return record.kind == FollowKind::kLog;
  });
  EXPECT_EQ(last->offset + last->bytes.size(), end_of_log);
}

TEST_F(Follow, MetricsThatAreWrittenAnewAreToldAnew) {
  FollowStream told = start();
  std::vector<FollowRecord> records;
  {
    MetricWriter metrics(task_.metrics(), 4000);
    for (int i = 0; i < 500; ++i) metrics.write(loss_at(i, i));
  }
  end();
  for (FollowRecord& record : told.rest()) records.push_back(std::move(record));

  EXPECT_EQ(metrics_after(records), *base::read_file(task_.metrics()));
}

TEST_F(Follow, MetricsGoOnBehindTheLineThatWasTold) {
  MetricWriter metrics(task_.metrics());
  metrics.write(loss_at(1, 1));
  metrics.write(loss_at(2, 2));
  end();

  const auto told = start(0, encode_sample(loss_at(1, 1)).size()).rest();

  EXPECT_EQ(bytes_of(told, FollowKind::kMetrics), encode_sample(loss_at(2, 2)));
}

TEST_F(Follow, AnOffsetBehindTheMetricsThereAreBeginsAnew) {
  MetricWriter metrics(task_.metrics());
  metrics.write(loss_at(1, 1));
  end();

  EXPECT_EQ(bytes_of(start(0, 1'000'000).rest(), FollowKind::kMetrics),
            encode_sample(loss_at(1, 1)));
}

TEST_F(Follow, ARefusalIsTheLastWord) {
  ASSERT_TRUE(base::write_file(
      task_.refused(), refusal_text({.code = base::ErrorCode::kConflict, .what = "taken"})));

  const auto told = start().rest();

  ASSERT_EQ(kinds_of(told), "x");
  EXPECT_EQ(read_refusal(told.back().bytes).what, "taken");
}

TEST_F(Follow, AFolderThatIsNotThereIsSaidToBe) {
  EXPECT_EQ(follow({.folder = {folder_ / "nowhere"}}), 1);
}

}  // namespace
}  // namespace muster::engine
