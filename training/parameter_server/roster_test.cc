#include "parameter_server/roster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

namespace muster::parameter_server {
namespace {

constexpr std::optional<std::uint64_t> kUnlimited = std::nullopt;

Clocks with_workers(std::optional<std::uint64_t> bound, int count) {
  Clocks clocks(bound, count);
  for (int worker = 0; worker < count; ++worker) clocks.join(worker);
  return clocks;
}

void advance(Clocks& clocks, int worker, int steps) {
  for (int i = 0; i < steps; ++i) clocks.advance(worker);
}

TEST(Clocks, AWorkerWaitsWhileItIsMoreThanTheBoundAhead) {
  struct Row {
    std::optional<std::uint64_t> bound;
    int ahead;
    bool may_proceed;
  };
  for (const Row& row : {Row{0, 0, true}, Row{0, 1, false}, Row{1, 1, true}, Row{1, 2, false},
                         Row{3, 3, true}, Row{3, 4, false}, Row{kUnlimited, 1'000, true}}) {
    Clocks clocks = with_workers(row.bound, 3);
    advance(clocks, 1, row.ahead);
    EXPECT_EQ(clocks.may_proceed(1), row.may_proceed) << row.ahead << " ahead";
    EXPECT_TRUE(clocks.may_proceed(0));
    EXPECT_TRUE(clocks.may_proceed(2));
  }
}

TEST(Clocks, TheSlowestWorkerReleasesAllOthers) {
  Clocks clocks = with_workers(0, 3);
  clocks.advance(0);
  clocks.advance(1);
  EXPECT_FALSE(clocks.may_proceed(0));
  clocks.advance(2);
  EXPECT_TRUE(clocks.may_proceed(0));
  EXPECT_TRUE(clocks.may_proceed(1));
}

TEST(Clocks, AWorkerThatHasLeftDelaysNoOther) {
  Clocks clocks = with_workers(1, 3);
  advance(clocks, 0, 5);
  advance(clocks, 1, 4);
  EXPECT_FALSE(clocks.may_proceed(0));
  clocks.leave(2);
  EXPECT_TRUE(clocks.may_proceed(0));
  EXPECT_FALSE(clocks.may_proceed(2));
}

TEST(Clocks, ALateWorkerBeginsAtTheStepOfTheSlowest) {
  Clocks clocks(0, 0);
  EXPECT_EQ(clocks.join(0), 0U);
  EXPECT_EQ(clocks.join(1), 0U);
  advance(clocks, 0, 7);
  advance(clocks, 1, 5);
  EXPECT_EQ(clocks.join(2), 5U);
}

TEST(Clocks, ALateWorkerMayBeginLaterThanTheSlowest) {
  Clocks clocks(0, 0);
  clocks.join(0);
  advance(clocks, 0, 5);
  clocks.join(1);
  clocks.begin_at(1, 7);
  EXPECT_EQ(clocks.present().at(1), 7U);
  EXPECT_FALSE(clocks.may_proceed(1));
  advance(clocks, 0, 2);
  EXPECT_TRUE(clocks.may_proceed(1));
  clocks.begin_at(1, 3);
  EXPECT_EQ(clocks.present().at(1), 7U);
  clocks.begin_at(2, 9);
  EXPECT_FALSE(clocks.present().contains(2));
}

TEST(Clocks, AWorkerThatJoinsAfterAllHaveLeftContinuesAtTheirStep) {
  Clocks clocks(0, 0);
  clocks.join(0);
  advance(clocks, 0, 7);
  clocks.leave(0);
  EXPECT_EQ(clocks.join(1), 7U);
}

TEST(Clocks, NoWorkerBeginsBeforeAllExpectedWorkersHaveJoined) {
  Clocks clocks(kUnlimited, 2);
  clocks.join(0);
  EXPECT_FALSE(clocks.is_complete());
  EXPECT_FALSE(clocks.may_proceed(0));
  // The same worker does not count twice.
  clocks.leave(0);
  clocks.join(0);
  EXPECT_FALSE(clocks.may_proceed(0));
  clocks.join(1);
  EXPECT_TRUE(clocks.may_proceed(0));
  clocks.leave(1);
  EXPECT_TRUE(clocks.may_proceed(0));
}

}  // namespace
namespace {

using collective::ErrorCode;
using collective::Status;

// Returns once the worker waits in a call. If it never waits, the test times out.
void until_it_waits(const Roster& roster, int worker) {
  while (true) {
    for (const WorkerStatus& one : roster.workers()) {
      if (one.worker == worker && one.waits) return;
    }
    std::this_thread::yield();
  }
}

std::future<Status> admit(Roster& roster, std::uint64_t session, std::uint64_t step) {
  return std::async(std::launch::async,
                    [&roster, session, step] { return roster.admit(session, step); });
}

class RosterTest : public ::testing::Test {
 protected:
  void start(std::optional<std::uint64_t> staleness, int workers) {
    roster_.emplace(staleness, workers);
    for (int worker = 0; worker < workers; ++worker) {
      sessions_.push_back(roster_->join(worker, [this] { ++dismissed_; }).session);
    }
  }

  std::optional<Roster> roster_;
  std::vector<std::uint64_t> sessions_;
  int dismissed_ = 0;
};

TEST_F(RosterTest, AFastWorkerWaitsUntilTheSlowestHasCaughtUp) {
  start(0, 3);
  roster_->advance(sessions_[0]);
  std::future<Status> fast = admit(*roster_, sessions_[0], 1);
  until_it_waits(*roster_, 0);
  roster_->advance(sessions_[1]);
  until_it_waits(*roster_, 0);
  roster_->advance(sessions_[2]);
  EXPECT_TRUE(fast.get());
}

TEST_F(RosterTest, AWorkerThatLeavesReleasesTheOthers) {
  start(0, 2);
  roster_->advance(sessions_[0]);
  std::future<Status> fast = admit(*roster_, sessions_[0], 1);
  until_it_waits(*roster_, 0);
  roster_->leave(sessions_[1]);
  EXPECT_TRUE(fast.get());
  EXPECT_EQ(roster_->departures().left, 1U);
}

TEST_F(RosterTest, AWorkerThatIsLostWhileItWaitsGetsAnError) {
  start(0, 2);
  roster_->advance(sessions_[0]);
  std::future<Status> fast = admit(*roster_, sessions_[0], 1);
  until_it_waits(*roster_, 0);
  roster_->lose(sessions_[0]);
  EXPECT_EQ(fast.get().error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(roster_->departures().lost, 1U);
}

TEST_F(RosterTest, ASecondWorkerOfANumberReplacesTheFirst) {
  start({}, 1);
  const Roster::Membership second = roster_->join(0, [] {});
  EXPECT_EQ(dismissed_, 1);
  EXPECT_EQ(roster_->admit(sessions_[0], 0).error().code, ErrorCode::kPeerLost);
  EXPECT_TRUE(roster_->admit(second.session, second.clock));
  // The end of the first worker's connection does not affect the second worker.
  roster_->lose(sessions_[0]);
  EXPECT_EQ(roster_->workers().size(), 1U);
  EXPECT_EQ(roster_->departures().lost, 1U);
}

TEST_F(RosterTest, RejectsAStepThatIsNotTheWorkers) {
  start({}, 1);
  roster_->advance(sessions_[0]);
  const Status again = roster_->admit(sessions_[0], 0);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kMismatch);
  EXPECT_EQ(again.error().message, "worker 0 sent step 0, but is in step 1");
}

TEST_F(RosterTest, AWorkerSendsValuesInOneCallAtATime) {
  start({}, 2);
  {
    const auto turn = roster_->begin_turn(sessions_[1]);
    ASSERT_TRUE(turn);
    EXPECT_EQ(turn->worker(), 1);
    EXPECT_TRUE(roster_->begin_turn(sessions_[0])) << "each worker may send";
    EXPECT_EQ(roster_->begin_turn(sessions_[1]).error().message,
              "worker 1 already sends values in another call");
  }
  const auto next = roster_->begin_turn(sessions_[1]);
  EXPECT_TRUE(next);
  roster_->lose(sessions_[1]);
  EXPECT_EQ(roster_->begin_turn(sessions_[1]).error().code, ErrorCode::kPeerLost);
}

TEST_F(RosterTest, LimitsTheWaitingCallsOfAWorker) {
  start(0, 2);
  roster_->advance(sessions_[0]);
  std::vector<std::future<Status>> waiting;
  for (int i = 0; i <= Roster::kMostWaiting; ++i) {
    waiting.push_back(admit(*roster_, sessions_[0], 1));
  }

  const auto is_refused = [](std::future<Status>& one) {
    return one.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  while (std::none_of(waiting.begin(), waiting.end(), is_refused)) std::this_thread::yield();
  roster_->advance(sessions_[1]);

  int refused = 0;
  for (std::future<Status>& one : waiting) {
    const Status status = one.get();
    refused += !status && status.error().code == ErrorCode::kBadArgument;
  }
  EXPECT_EQ(refused, 1);
}

TEST_F(RosterTest, StoppingDismissesAllWorkersAndEndsEveryWait) {
  start(0, 2);
  roster_->advance(sessions_[0]);
  std::future<Status> fast = admit(*roster_, sessions_[0], 1);
  until_it_waits(*roster_, 0);
  roster_->stop();
  EXPECT_EQ(fast.get().error().message, "the parameter server is stopping");
  EXPECT_EQ(dismissed_, 2);
  EXPECT_FALSE(roster_->wait_for_end());
}

TEST_F(RosterTest, WaitsForTheStopAlsoAfterAllWorkersHaveLeft) {
  start({}, 1);
  roster_->leave(sessions_[0]);
  EXPECT_TRUE(roster_->wait_for_end());
  std::future<void> stop = std::async(std::launch::async, [this] { roster_->wait_for_stop(); });
  roster_->stop();
  stop.get();
  roster_->wait_for_stop();
  EXPECT_TRUE(roster_->wait_for_end());
}

TEST_F(RosterTest, EndsWhenAllExpectedWorkersHaveJoinedAndLeft) {
  Roster expecting({}, 2);
  std::future<bool> end = std::async(std::launch::async, [&] { return expecting.wait_for_end(); });
  expecting.leave(expecting.join(0, [] {}).session);
  // One of two workers has left; the other may still join.
  expecting.lose(expecting.join(1, [] {}).session);
  EXPECT_TRUE(end.get());
}

}  // namespace
}  // namespace muster::parameter_server
