// The order of the lines of several tasks in a merged log.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "control/test_logs.h"
#include "control/test_parts.h"
#include "logs/log_follower.h"

namespace muster::control {
namespace {

using std::chrono::milliseconds;

/// `flood` prints frames of 60,000 bytes, `quiet` prints short lines.
class LogOrder : public testing::Test {
 protected:
  LogOrder() {
    job_.id = "job";
    job_.attempt = 1;
    job_.phase = job::Phase::kRunning;
    for (const char* name : {"flood", "quiet"}) job_.tasks.push_back({.name = name});
    // The logs exist.
    print("flood", milliseconds(0), "first\n");
    print("quiet", milliseconds(0), "first\n");
  }

  void print(const std::string& task, milliseconds time, std::string bytes) {
    engine_.append({"job", 1}, task,
                   {.time = kFirstFrame + time,
                    .stream = job::LogStream::kOutput,
                    .bytes = std::move(bytes),
                    .rank = {}});
  }

  /// A frame for each step of time up to `end`.
  void flood(milliseconds begin, milliseconds step, milliseconds end) {
    for (milliseconds time = begin; time < end; time += step) {
      print("flood", time, std::string(59'999, 'x') + "\n");
    }
  }

  void begin(const job::LogQuery& query) {
    follower_ = std::make_unique<logs::LogFollower>(
        loop_, engine_,
        logs::FollowedJob{.get = [this] { return &job_; },
                          .watch = [](const std::function<void()>&) { return nullptr; }},
        query);
  }

  void ask() {
    if (std::exchange(is_asking_, true)) return;
    follower_->pull([this](const job::LogBatch& batch, bool end) {
      is_asking_ = false;
      is_over_ = end;
      ++deliveries_;
      for (const job::LogBatch::Run& run : batch.runs()) {
        shown_.push_back({batch.sources()[run.source]->task, run.time - kFirstFrame, deliveries_});
      }
      if (stops_at_delivery_) loop_.stop();
    });
  }

  /// Reads until nothing more comes at once.
  void read() {
    for (int idle_turns = 0; idle_turns < 20 && !is_over_; ++idle_turns) {
      if (!is_asking_) idle_turns = 0;
      ask();
      loop_.post([this] { loop_.stop(); });
      loop_.run();
    }
  }

  void read_until_lines_are_shown(size_t lines) {
    stops_at_delivery_ = true;
    while (shown_.size() < lines) {
      ask();
      loop_.run();
    }
  }

  bool is_in_order_of_time() const {
    return std::is_sorted(shown_.begin(), shown_.end(),
                          [](const Shown& a, const Shown& b) { return a.time < b.time; });
  }

  struct Shown {
    std::string task;
    base::Time::duration time;
    int delivery = 0;
  };

  /// The times of the lines of `flood` that were delivered before the last line of `quiet`, or after it.
  std::vector<milliseconds> of_flood(bool before) const {
    const auto quiet = std::find_if(shown_.rbegin(), shown_.rend(),
                                    [](const Shown& shown) { return shown.task == "quiet"; });
    const auto place = shown_.rend() - quiet - 1;
    std::vector<milliseconds> times;
    for (std::ptrdiff_t i = 0; i < std::ssize(shown_); ++i) {
      const Shown& shown = shown_[static_cast<size_t>(i)];
      if (shown.task != "flood" || (i < place) != before) continue;
      times.push_back(std::chrono::duration_cast<milliseconds>(shown.time));
    }
    return times;
  }

  base::EventLoop loop_;
  GrowingLogs engine_{loop_};
  job::Job job_;
  std::unique_ptr<logs::LogFollower> follower_;
  std::vector<Shown> shown_;
  bool is_asking_ = false;
  bool is_over_ = false;
  bool stops_at_delivery_ = false;
  int deliveries_ = 0;
};

TEST_F(LogOrder, AFollowThatLagsBehindReadsALineBeforeAllThatWasPrintedBeforeIt) {
  begin({.follow = true});
  read();
  flood(milliseconds(100), milliseconds(1), milliseconds(140));
  print("quiet", milliseconds(140), "here\n");
  read();

  ASSERT_EQ(shown_.size(), 43U);
  EXPECT_LT(of_flood(true).size(), 12U);
}

TEST_F(LogOrder, ALinePassesOnlyLinesOfTheTenSecondsBeforeIt) {
  begin({.follow = true});
  read();
  flood(milliseconds(1'000), milliseconds(1'000), milliseconds(40'000));
  print("quiet", milliseconds(35'000), "here\n");
  read();

  ASSERT_EQ(shown_.size(), 42U);
  EXPECT_GE(of_flood(false).front(), milliseconds(25'000));
  EXPECT_LT(of_flood(false).front(), milliseconds(35'000));
}

TEST_F(LogOrder, LinesOfAFollowThatKeepsUpAreOrderedByTime) {
  begin({.follow = true});
  read();
  print("quiet", milliseconds(20), "second\n");
  flood(milliseconds(10), milliseconds(10), milliseconds(40));
  read();

  EXPECT_EQ(shown_.size(), 6U);
  EXPECT_TRUE(is_in_order_of_time());
}

TEST_F(LogOrder, LinesBeforeAFollowAreOrderedByTime) {
  flood(milliseconds(100), milliseconds(1), milliseconds(140));
  print("quiet", milliseconds(140), "here\n");
  begin({.follow = true});
  read();

  EXPECT_EQ(shown_.size(), 43U);
  EXPECT_TRUE(is_in_order_of_time());
}

TEST_F(LogOrder, AFinishedLogIsInTheOrderOfTime) {
  flood(milliseconds(100), milliseconds(1), milliseconds(140));
  print("quiet", milliseconds(140), "here\n");
  job_.phase = job::Phase::kSucceeded;
  begin({});
  read();

  EXPECT_EQ(shown_.size(), 43U);
  EXPECT_TRUE(is_in_order_of_time());
}

TEST_F(LogOrder, ALineThatHasJustBegunIsNotDeliveredWithOneThatHasWaited) {
  begin({.follow = true});
  read();
  print("quiet", milliseconds(100), "an older beginning");
  read();
  print("flood", milliseconds(110), "a newer beginning");
  read();
  read_until_lines_are_shown(4);

  const Shown& older = shown_[2];
  const Shown& newer = shown_[3];
  EXPECT_EQ(older.task, "quiet");
  EXPECT_EQ(newer.task, "flood");
  EXPECT_LT(older.delivery, newer.delivery);
}

}  // namespace
}  // namespace muster::control
