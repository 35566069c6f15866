// Who waits for whom, when many clients ask for parts of logs. Nothing depends on how fast a log is
// read: the logs of one job cannot be read before the test allows it.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fake_random.h"
#include "control/test_logs.h"
#include "server/router.h"
#include "server/routes.h"

namespace muster::server {
namespace {

using Words = std::vector<std::string>;

/// Logs of which those of the job with the id `slow` can be read after allow().
class SlowLogs : public control::GrowingLogs {
 public:
  using GrowingLogs::GrowingLogs;

  base::Result<std::unique_ptr<engine::LogCursor>> open_log(const engine::GangId& gang,
                                                            const std::string& task) override {
    MUSTER_TRY(auto cursor, GrowingLogs::open_log(gang, task));
    ++opened;
    if (gang.job_id != slow) return cursor;
    return std::unique_ptr<engine::LogCursor>(
        std::make_unique<SlowCursor>(std::move(cursor), allowed_));
  }

  void allow() {
    if (!std::exchange(is_allowed_, true)) allow_.set_value();
  }

  std::string slow;
  size_t opened = 0;

 private:
  class SlowCursor : public engine::LogCursor {
   public:
    SlowCursor(std::unique_ptr<engine::LogCursor> cursor, std::shared_future<void> allowed)
        : cursor_(std::move(cursor)), allowed_(std::move(allowed)) {}
    base::Result<bool> next(engine::LogFrame& frame) override {
      allowed_.wait();
      return cursor_->next(frame);
    }
    base::Result<void> seek_near_end(size_t bytes) override {
      return cursor_->seek_near_end(bytes);
    }
    uint64_t size() const override { return cursor_->size(); }

   private:
    std::unique_ptr<engine::LogCursor> cursor_;
    std::shared_future<void> allowed_;
  };

  bool is_allowed_ = false;
  std::promise<void> allow_;
  std::shared_future<void> allowed_{allow_.get_future()};
};

class LogWindowRoutes : public testing::Test {
 protected:
  LogWindowRoutes() {
    engine_.offered = {{.name = "n1", .task_slots = 100, .gpus = 2, .gpu_model = "V100"}};
    controller_ = std::make_unique<control::Controller>(
        control::ControllerDependencies{
            .loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
        control::SiteFacts{.user = "root"});
    add_log_window_routes(router_, loop_, *controller_);
    engine_.slow = submit("slow");
    submit("fast");
  }
  ~LogWindowRoutes() override { engine_.allow(); }

  std::string submit(const std::string& name) {
    const std::string id = submit(control::single(name, "default", 0));
    engine_.append({id, 1}, "main", control::frame_of("a line\n"));
    return id;
  }

  std::string submit(const job::JobSpec& spec) {
    const auto job = controller_->submit(spec, "");
    EXPECT_TRUE(job) << job.error().to_string();
    for (int turn = 0; turn < 30; ++turn) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
    }
    return job->id;
  }

  /// The answer is noted as "TITLE STATUS".
  void ask(const std::string& user, const std::string& path, const std::string& title,
           std::function<bool()> has_left = nullptr) {
    ApiCall call{.who = access::local_identity(user)};
    call.request.path = "/v1/jobs/" + path;
    if (path.ends_with("search")) call.request.query["q"] = "line";
    call.request.peer.has_left = std::move(has_left);
    router_.handle(std::move(call), [this, title](const http::Response& response) {
      answers_.push_back(title + " " + std::to_string(response.status));
    });
  }

  /// The log of all tasks as a file.
  std::string log_file(const std::string& job) {
    ApiCall call{.who = access::local_identity("ada")};
    call.request.path = "/v1/jobs/" + job + "/log-file";
    std::shared_ptr<http::BodyStream> stream;
    router_.handle(std::move(call),
                   [&](const http::Response& response) { stream = response.stream; });
    if (stream == nullptr) return "no file";
    std::string text;
    http::BodyStream::Deliver take = [&](const http::BodyPiece& piece) {
      if (piece.is_end()) return loop_.stop();
      text += piece.bytes();
      stream->pull(take);
    };
    stream->pull(take);
    loop_.run();
    return text;
  }

  void await_answers(size_t count) {
    constexpr std::chrono::seconds kPatience{20};  // only a test that fails waits so long
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (answers_.size() < count && std::chrono::steady_clock::now() < end) {
      const auto pause = loop_.after(std::chrono::milliseconds(1), [this] { loop_.stop(); });
      loop_.run();
    }
  }

  base::EventLoop loop_;
  control::MortalStore store_;
  SlowLogs engine_{loop_};
  base::FakeClock clock_;
  base::FakeRandom random_;
  std::unique_ptr<control::Controller> controller_;
  Words answers_;
  Router router_;
};

TEST_F(LogWindowRoutes, AWindowDoesNotWaitForSearches) {
  ask("ada", "slow/log-search", "search");
  ask("ada", "fast/log-search", "another search");
  ask("ben", "fast/log-window", "window");
  await_answers(1);
  EXPECT_EQ(answers_, Words{"window 200"});
  engine_.allow();
  await_answers(3);
  EXPECT_EQ(answers_, (Words{"window 200", "search 200", "another search 200"}));
}

TEST_F(LogWindowRoutes, UsersTakeTurns) {
  const Words kinds{"search", "window"};
  for (const std::string& kind : kinds) {
    ask("ada", "slow/log-" + kind, "ada's " + kind);
    for (int i = 0; i < 3; ++i) ask("ada", "fast/log-" + kind, "ada's " + kind);
    ask("ben", "fast/log-" + kind, "ben's " + kind);
  }
  EXPECT_TRUE(answers_.empty());
  engine_.allow();
  await_answers(10);
  for (const std::string& kind : kinds) {
    Words of_kind;
    for (const std::string& answer : answers_) {
      if (answer.ends_with(kind + " 200")) of_kind.push_back(answer.substr(0, 3));
    }
    EXPECT_EQ(of_kind, (Words{"ada", "ada", "ben", "ada", "ada"})) << kind;
  }
}

TEST_F(LogWindowRoutes, TheWorkOfAClientThatHasLeftIsDropped) {
  bool has_left = false;
  ask("ada", "slow/log-search", "first");
  for (int i = 0; i < 3; ++i) ask("ada", "fast/log-search", "left", [&] { return has_left; });
  ask("ada", "fast/log-search", "last");
  has_left = true;
  const size_t opened = engine_.opened;
  engine_.allow();
  await_answers(5);
  EXPECT_EQ(answers_, (Words{"first 200", "left 503", "left 503", "left 503", "last 200"}));
  EXPECT_EQ(engine_.opened, opened + 2) << "the last search has a cursor, and the index another";
}

TEST_F(LogWindowRoutes, AFileOfSeveralTasksHasEachLongLineAsOneLine) {
  job::JobSpec spec = control::mpi("dist", "default", 2);
  spec.resources.gpus = 0;
  const engine::GangId gang{submit(spec), 1};
  const std::string head(70 << 10, 'x');
  const std::string third(50 << 10, 'x');
  const std::string line = third + third + third;
  const auto output = job::LogStream::kOutput;

  for (int i = 0; i < 3; ++i) {
    engine_.append(gang, "worker-0", control::frame_of(third, output, 1));
  }
  engine_.append(gang, "worker-0", control::frame_of("\n", output, 1));
  engine_.append(gang, "worker-1", control::frame_of("short\n", output, 2));
  const std::string file = "worker-0 | " + line + "\nworker-1 | short\n";
  EXPECT_TRUE(log_file("dist") == file);

  // Another task prints in the middle of a long line.
  engine_.append(gang, "worker-0", control::frame_of(head, output, 3));
  engine_.append(gang, "worker-1", control::frame_of("in between\n", output, 4));
  engine_.append(gang, "worker-0", control::frame_of("end\n", output, 5));
  const std::string piece(64 << 10, 'x');
  EXPECT_TRUE(log_file("dist") == file + "worker-0 | " + piece +
                                      "\nworker-1 | in between\nworker-0 | " +
                                      head.substr(piece.size()) + "end\n");
}

TEST_F(LogWindowRoutes, RefuseAUserOfWhomTooManyRequestsWait) {
  constexpr size_t kMost = 100;
  ask("ada", "slow/log-search", "first");
  for (size_t i = 0; i < kMost; ++i) ask("ada", "fast/log-search", "waiting");
  EXPECT_TRUE(answers_.empty());
  ask("ada", "fast/log-search", "one too many");
  EXPECT_EQ(answers_, Words{"one too many 429"});
  ask("ben", "fast/log-search", "ben");
  engine_.allow();
  await_answers(kMost + 3);
  EXPECT_EQ(answers_.size(), kMost + 3);
}

}  // namespace
}  // namespace muster::server
