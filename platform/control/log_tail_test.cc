#include "control/log_tail.h"

#include <gtest/gtest.h>

#include "control/test_logs.h"

namespace muster::control {
namespace {

const RunSplitter::Key kKey{std::nullopt, job::LogStream::kOutput};

class Tail : public testing::Test {
 protected:
  void add(LogTail& tail, std::string_view bytes) {
    tail.add({kKey, source_, kFirstFrame, bytes}, counts_);
  }

  static std::string all_of(LogTail& tail) {
    tail.trim();
    job::LogBatch batch;
    tail.take_some(batch, SIZE_MAX);
    return batch.bytes();
  }

  job::LogBatch::Source source_ = std::make_shared<const job::LogSource>();
  std::shared_ptr<LogCounts> counts_ = std::make_shared<LogCounts>();
};

TEST_F(Tail, KeepsTheLastLinesAlsoOfRunsOfMany) {
  LogTail tail(3);
  add(tail, "1\n2\n3\n4\n");
  add(tail, "5\n");
  add(tail, "6\n");

  EXPECT_EQ(all_of(tail), "4\n5\n6\n");
  EXPECT_TRUE(tail.empty());
}

TEST_F(Tail, KeepsAllWhereThereAreFewer) {
  LogTail tail(10);
  add(tail, "1\n2\n");
  add(tail, "half");

  EXPECT_EQ(all_of(tail), "1\n2\nhalf");
}

TEST_F(Tail, KeepsNothingWhereNothingIsAskedFor) {
  LogTail tail(0);
  add(tail, "1\n2\n");

  EXPECT_EQ(all_of(tail), "");
}

TEST_F(Tail, CountsWhatWentInFrontOfWhatIsKept) {
  LogTail tail(1);
  add(tail, "one\ntwo\n");
  add(tail, "three\nfour\n");
  tail.trim();
  EXPECT_EQ((*counts_)[kKey], 14U);

  job::LogBatch batch;
  tail.take_some(batch, 1);
  EXPECT_EQ(batch.bytes(), "four\n");
  EXPECT_EQ((*counts_)[kKey], 19U);
}

TEST_F(Tail, HoldsNoMoreThanItsBytes) {
  LogTail tail(1'000'000'000);
  const std::string line = std::string(99'999, 'x') + "\n";
  for (int i = 0; i < 300; ++i) add(tail, line);
  tail.trim();
  job::LogBatch batch;
  tail.take_some(batch, SIZE_MAX);

  EXPECT_EQ(batch.bytes().size(), kMostTailBytes / line.size() * line.size());
  EXPECT_EQ((*counts_)[kKey], 300 * line.size());
}

}  // namespace
}  // namespace muster::control
