#include "engine/folder/run_conversation.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <utility>
#include <vector>

#include "base/test_loop.h"

namespace muster::engine {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

/// A fake connection that records its calls.
struct Line {
  std::string sent;
  bool paused = false;
  bool dropped = false;
};

class FakeLink : public RunLink {
 public:
  explicit FakeLink(Line& line) : line_(line) {}
  ~FakeLink() override { line_.dropped = true; }
  void write(std::string_view bytes) override { line_.sent += bytes; }
  size_t waiting() const override { return line_.sent.size(); }
  void pause(bool paused) override { line_.paused = paused; }

 private:
  Line& line_;
};

class Conversation : public ::testing::Test {
 protected:
  void connect() { conversation_->connected(std::make_unique<FakeLink>(line_)); }
  void ask_when_begun() {
    near_->when_begun([this](const Result<void>& how) {
      events_.push_back(how ? "begun" : "not begun: " + how.error().what);
    });
  }
  void deliver(const RunMessage& message) { conversation_->take(encode_run(message)); }
  void let_loop_run() {
    bool turned = false;
    loop_.loop().post([&] {
      turned = true;
      loop_.look();
    });
    EXPECT_TRUE(loop_.run_until([&] { return turned; }));
  }

  base::TestLoop loop_;
  Line line_;
  std::vector<std::string> events_;
  std::shared_ptr<RunConversation> conversation_ = std::make_shared<RunConversation>(
      loop_.loop(), job::ExitStatus{.signal = SIGKILL},
      ExecHandlers{
          .on_output = [this](std::string_view bytes, bool) { events_.emplace_back(bytes); },
          .on_exit =
              [this](const job::ExitStatus& status) {
                events_.push_back("exit " + std::to_string(status.shell_code()) + status.error);
              },
          .on_drain = [this] { events_.emplace_back("drained"); }});
  std::unique_ptr<Exec> near_ = near_end_of(conversation_);
};

using Events = std::vector<std::string>;

const Error kNoProgram{.code = ErrorCode::kNotFound, .what = "no program"};

TEST_F(Conversation, TheStartIsReportedBeforeTheOutput) {
  ask_when_begun();
  connect();
  EXPECT_EQ(events_, Events{});

  deliver(RunBegun{});
  deliver(AttachOutput{.bytes = "out"});
  deliver(RunEnded{{.status = {.code = 4}, .ended = {}}});

  EXPECT_EQ(events_, (Events{"begun", "out", "exit 4"}));
}

TEST_F(Conversation, TheStartIsReportedWhilePaused) {
  ask_when_begun();
  near_->pause(true);
  connect();
  EXPECT_FALSE(line_.paused) << "its first message would not be read";

  conversation_->take(encode_run(RunBegun{}) + encode_run(AttachOutput{.bytes = "out"}));
  EXPECT_EQ(events_, Events{"begun"});
  EXPECT_TRUE(line_.paused);

  near_->pause(false);
  EXPECT_FALSE(line_.paused);
  let_loop_run();
  EXPECT_EQ(events_, (Events{"begun", "out"}));
}

TEST_F(Conversation, ARefusalIsReportedInsteadOfAnEnd) {
  ask_when_begun();
  near_->pause(true);
  connect();

  deliver(RunRefused{kNoProgram});
  conversation_->hung_up();
  let_loop_run();

  EXPECT_EQ(events_, Events{"not begun: no program"});
  EXPECT_TRUE(line_.dropped);
}

TEST_F(Conversation, ARefusedConnectionIsReported) {
  ask_when_begun();
  near_->pause(true);

  conversation_->refused(kNoProgram);

  EXPECT_EQ(events_, Events{"not begun: no program"});
}

TEST_F(Conversation, ARefusalIsAnEndIfTheStartIsNotAwaited) {
  connect();

  deliver(RunRefused{kNoProgram});

  EXPECT_EQ(events_, Events{"exit 127no program"});
}

TEST_F(Conversation, AHangUpIsAnEnd) {
  ask_when_begun();
  near_->pause(true);
  connect();

  conversation_->hung_up();

  EXPECT_EQ(events_, (Events{"begun", "exit 137"}));
}

TEST_F(Conversation, ACallbackMayDropIt) {
  near_->when_begun([this](const Result<void>&) { near_.reset(); });
  connect();

  conversation_->take(encode_run(RunBegun{}) + encode_run(AttachOutput{.bytes = "out"}));

  EXPECT_EQ(events_, Events{});
}

TEST_F(Conversation, InputWaitsForTheConnectionAndReportsSpace) {
  near_->write(std::string(Exec::kHigh + 1, 'x'));
  EXPECT_GT(near_->waiting(), Exec::kHigh);

  connect();
  EXPECT_EQ(events_, Events{}) << "the connection has all of it still";
  EXPECT_GT(near_->waiting(), Exec::kHigh);

  line_.sent.clear();
  conversation_->drained();
  EXPECT_EQ(events_, Events{"drained"});
}

}  // namespace
}  // namespace muster::engine
