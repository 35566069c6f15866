// Logs that cannot be read, for a moment or for good. The order of lines and the positions of
// readers are tested with a controller (control/log_order_test.cc, control/log_resume_test.cc).
#include "logs/log_follower.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/fake_engine.h"
#include "logs/test_frames.h"

namespace muster::logs {
namespace {

using base::Error;
using base::ErrorCode;
using engine::LogFrame;

/// What next() returns, call by call.
using Answers = std::vector<base::Result<LogFrame>>;

class ScriptedCursor : public engine::LogCursor {
 public:
  explicit ScriptedCursor(Answers answers) : answers_(std::move(answers)) {}

  base::Result<bool> next(LogFrame& frame) override {
    if (next_ == answers_.size()) return false;
    const auto& answer = answers_[next_++];
    if (!answer) return answer.error();
    frame = *answer;
    return true;
  }
  base::Result<void> seek_near_end(size_t) override { return {}; }
  uint64_t size() const override { return answers_.size(); }

 private:
  Answers answers_;
  size_t next_ = 0;
};

/// An engine whose logs follow scripts of the test; each opening of a log takes the next script.
class ScriptedEngine : public engine::FakeEngine {
 public:
  using FakeEngine::FakeEngine;

  base::Result<std::unique_ptr<engine::LogCursor>> open_log(const engine::GangId&,
                                                            const std::string& task) override {
    std::vector<Answers>& left = scripts[task];
    if (left.empty()) return Error{.code = ErrorCode::kNotFound, .what = task};
    Answers first = std::move(left.front());
    left.erase(left.begin());
    return std::unique_ptr<engine::LogCursor>(std::make_unique<ScriptedCursor>(std::move(first)));
  }

  std::map<std::string, std::vector<Answers>> scripts;  ///< by task
};

class Follower : public testing::Test {
 protected:
  Follower() {
    job_.id = "job";
    job_.attempt = 1;
    job_.phase = job::Phase::kSucceeded;
    job_.tasks = {{.name = "main"}};
  }

  static Error lack() {
    return {.code = ErrorCode::kExhausted, .what = "cannot read the start of a log"};
  }

  /// The bytes up to the end of the log.
  std::string read(const job::LogQuery& query, std::optional<LogPosition> from = {}) {
    last_position_ = {};
    LogFollower follower(
        loop_, engine_,
        {.get = [this] { return &job_; },
         .watch = [](const std::function<void()>&) { return std::shared_ptr<void>(); }},
        query);
    if (from) follower.resume(*from);
    std::string text;
    LogFollower::Deliver take = [&](const job::LogBatch& batch, bool end) {
      text += batch.bytes();
      last_position_ = follower.position();
      if (end) return loop_.stop();
      follower.pull(take);
    };
    follower.pull(take);
    loop_.run();
    return text;
  }

  base::EventLoop loop_;
  ScriptedEngine engine_{loop_};
  job::Job job_;
  LogPosition last_position_;  ///< of the last read()
};

TEST_F(Follower, ReadsOnWhenALackOfDescriptorsHasPassed) {
  for (const bool follow : {true, false}) {
    engine_.scripts["main"] = {
        {frame_of("1\n"), frame_of("2\n"), lack(), frame_of("3\n"), lack(), frame_of("4\n")}};
    EXPECT_EQ(read({.follow = follow}), "1\n2\n3\n4\n");
  }
}

TEST_F(Follower, FindsTheLastLinesInSpiteOfALackOfDescriptors) {
  engine_.scripts["main"] = {{frame_of("1\n"), lack(), frame_of("2\n3\n")}};
  EXPECT_EQ(read({.tail = 2}), "2\n3\n");
}

TEST_F(Follower, NoticesTakeNoPlaceOfLinesIfTheyAreNotRequested) {
  Answers answers{frame_of("an Error\n")};
  const auto add_notice = [&] {
    answers.emplace_back(frame_of("muster-node has ended\n", job::LogStream::kNotice));
  };
  for (int i = 0; i < 30; ++i) add_notice();
  answers.emplace_back(Error{.what = "it is damaged"});
  engine_.scripts["main"] = {answers, answers};
  EXPECT_EQ(read({.grep = "Error", .tail = 20, .notices = false}), "an Error\n");
  EXPECT_EQ(read({.grep = "Error", .tail = 20}).find("an Error"), std::string::npos);
}

TEST_F(Follower, KeepsTheOrderOfTheTasksDuringALackOfDescriptors) {
  job_.tasks.push_back({.name = "other"});
  const auto output = job::LogStream::kOutput;
  engine_.scripts["main"] = {{frame_of("1\n", output, 1), lack(), frame_of("2\n", output, 2)}};
  engine_.scripts["other"] = {{frame_of("3\n", output, 3)}};
  EXPECT_EQ(read({}), "1\n2\n3\n");
}

TEST_F(Follower, OpensALogAgainWhoseBeginningCannotBeReadNow) {
  LogPosition from;
  from.sources.push_back(
      {.attempt = 1,
       .task = "main",
       .from = 0,
       .at = engine::size_in_log(frame_of("line")),
       .parts = {{{}, job::LogStream::kOutput, LogPosition::Part::What::kPending, 4}}});
  engine_.scripts["main"] = {{lack(), frame_of("line"), frame_of(" 1\n")},
                             {frame_of("line"), frame_of(" 1\n")}};
  EXPECT_EQ(read({}, from), "line 1\n");
}

TEST_F(Follower, ReportsADamagedLogAfterItsLastLine) {
  engine_.scripts["main"] = {
      {frame_of("1\n"), frame_of("begun"), Error{.what = "the log is damaged"}, frame_of("2\n")}};
  EXPECT_EQ(read({.follow = true}),
            "1\nbegun\nthe rest of this log cannot be read: the log is damaged\n");
  engine_.scripts["main"] = {{frame_of("1\n"), frame_of("2\n"), Error{.what = "it is damaged"}}};
  EXPECT_EQ(read({.tail = 2}), "2\nthe rest of this log cannot be read: it is damaged\n");
}

TEST_F(Follower, ReportsDamageOnceToAReaderThatContinues) {
  const Answers damaged{frame_of("1\n"), frame_of("begun"), Error{.what = "it is damaged"}};
  const std::string notice = "the rest of this log cannot be read: it is damaged\n";
  for (const job::LogQuery& query : {job::LogQuery{}, job::LogQuery{.tail = 2}}) {
    engine_.scripts["main"] = {damaged, damaged, damaged};
    EXPECT_TRUE(read(query).ends_with("begun\n" + notice));
    EXPECT_EQ(read({}, last_position_), "");
    EXPECT_EQ(read({}, last_position_), "");
  }
  // The position before the notice.
  const uint64_t size =
      engine::size_in_log(frame_of("1\n")) + engine::size_in_log(frame_of("begun"));
  LogPosition before;
  before.sources.push_back({.attempt = 1, .task = "main", .from = size, .at = size, .parts = {}});
  engine_.scripts["main"] = {damaged};
  EXPECT_EQ(read({}, before), notice);
}

TEST_F(Follower, ReadsOnIfAFrameCanBeReadAgain) {
  engine_.scripts["main"] = {
      {frame_of("1\n"), Error{.what = "it is damaged"}},
      {frame_of("1\n"), frame_of("2\n"), Error{.what = "it is damaged again"}}};
  read({});
  EXPECT_EQ(read({}, last_position_),
            "2\nthe rest of this log cannot be read: it is damaged again\n");
}

TEST_F(Follower, NamesNoHostForARankWhoseOutputPassedThroughALauncher) {
  LogFrame of_rank = frame_of("from rank 1\n");
  of_rank.rank = 1;
  const auto hosts = [&](const std::string& task) {
    engine_.scripts[task] = {{of_rank, frame_of("of the task\n")}};
    std::string names;
    LogFollower follower(loop_, engine_,
                         {.get = [this] { return &job_; },
                          .watch = [](const auto&) { return std::shared_ptr<void>(); }},
                         {.task = task});
    LogFollower::Deliver take = [&](const job::LogBatch& batch, bool end) {
      for (const job::LogRecord& record : job::records_of(batch)) names += record.host + ";";
      if (end) return loop_.stop();
      follower.pull(take);
    };
    follower.pull(take);
    loop_.run();
    return names;
  };
  job_.tasks = {{.name = "launcher", .role = job::TaskRole::kLauncher, .hostname = "d-launcher"},
                {.name = "worker-0", .role = job::TaskRole::kWorker, .hostname = "d-worker-0"}};
  EXPECT_EQ(hosts("launcher"), ";d-launcher;");
  EXPECT_EQ(hosts("worker-0"), "d-worker-0;d-worker-0;");
  job_.spec.leader_slots = 1;
  EXPECT_EQ(hosts("launcher"), "d-launcher;d-launcher;") << "it has a rank of its own";
}

TEST_F(Follower, ReadsTheOtherLogsBesideADamagedOne) {
  job_.tasks.push_back({.name = "other"});
  engine_.scripts["main"] = {{Error{.what = "the log is damaged"}}};
  engine_.scripts["other"] = {{frame_of("1\n"), frame_of("2\n")}};
  EXPECT_EQ(read({}), "1\n2\nthe rest of this log cannot be read: the log is damaged\n");
}

}  // namespace
}  // namespace muster::logs
