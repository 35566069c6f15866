// The events of many ended jobs, which are packed: in what order they are sent, and how many jobs
// are unpacked for that.
#include "server/event_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fake_random.h"
#include "control/test_logs.h"
#include "control/test_many_jobs.h"
#include "http/url.h"
#include "job/fact.h"
#include "server/router.h"
#include "server/routes.h"

namespace muster::server {
namespace {

constexpr int kPackedJobs = 2000;

/// Its events are later than those of the jobs before it.
job::Job job_with_events(int number) {
  const base::Time start{std::chrono::seconds(1'700'000'000 + number)};
  const auto after = [&](int milliseconds) {
    return start + std::chrono::milliseconds(milliseconds);
  };
  return {.id = "id" + std::to_string(number),
          .spec = {.name = "job-" + std::to_string(number), .command = {"train"}},
          .owner = "ada",
          .phase = job::Phase::kSucceeded,
          .submitted = start,
          .started = after(1),
          .ended = after(2),
          .events = {{.time = after(0), .what = job::Notice{job::Notice::What::kSubmitted}},
                     {.time = after(1), .what = job::PhaseReached{job::Phase::kSucceeded}}}};
}

class ManyEvents : public testing::Test {
 protected:
  ManyEvents() {
    EXPECT_TRUE(controller_.recover());
    add_watch_routes(router_, loop_, controller_);
    turn();
  }

  /// The events of the past, and of one kind.
  std::shared_ptr<http::BodyStream> watch(const std::string& kind) {
    http::Response answer;
    http::Query query;
    query["since"] = "1970-01-01T00:00:00Z";
    query["kind"] = kind;
    router_.handle({.request = {.method = "GET", .path = "/v1/watch/events", .query = query},
                    .who = access::local_identity("root")},
                   [&](http::Response given) { answer = std::move(given); });
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.stream;
  }

  std::shared_ptr<EventWatchStream> watch_the_future() {
    http::Response answer;
    router_.handle({.request = {.method = "GET", .path = "/v1/watch/events"},
                    .who = access::local_identity("root")},
                   [&](http::Response given) { answer = std::move(given); });
    EXPECT_EQ(answer.status, 200) << answer.body;
    return std::dynamic_pointer_cast<EventWatchStream>(answer.stream);
  }

  /// What the stream sends until nothing is left to send now. A pull stays open.
  std::string read(EventWatchStream& stream) {
    while (true) {
      if (!is_pulling_) {
        is_pulling_ = true;
        stream.pull([this](const http::BodyPiece& piece) {
          is_pulling_ = false;
          text_ += piece.bytes();
        });
      }
      for (int round = 0; round < 30 && is_pulling_; ++round) turn();
      if (is_pulling_) return std::exchange(text_, "");
    }
  }

  void submit(const std::string& name) {
    const auto submitted = controller_.submit({.name = name, .command = {"x"}, .folder = "/"}, "");
    ASSERT_TRUE(submitted) << submitted.error().to_string();
  }

  void turn() {
    loop_.post([this] { loop_.stop(); });
    loop_.run();
    most_whole_ = std::max(most_whole_, whole());
  }

  size_t whole() const { return controller_.jobs().entries().size(); }

  base::EventLoop loop_;
  control::ManyEndedJobs store_{kPackedJobs, job_with_events};
  base::FakeClock clock_;
  base::FakeRandom random_;
  control::GrowingLogs engine_{loop_};
  control::Controller controller_{
      {.loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
      {.user = "ada"}};
  Router router_;
  size_t most_whole_ = 0;
  bool is_pulling_ = false;
  std::string text_;
};

/// The names of jobs in the events, in order, each with a line end.
std::string names_in(const std::string& text) {
  std::string names;
  const std::string key = R"("job":")";
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at)) {
    at += key.size();
    names += text.substr(at, text.find('"', at) - at) + "\n";
  }
  return names;
}

TEST_F(ManyEvents, OfAKindThatNoJobHasLeaveTheJobsPacked) {
  const auto stream = watch("evicted");
  std::optional<http::BodyPiece> piece;

  stream->pull([&](http::BodyPiece given) { piece = std::move(given); });
  most_whole_ = whole();
  EXPECT_FALSE(piece) << "not all jobs were examined";
  for (int round = 0; round < 30 && !piece; ++round) turn();

  ASSERT_TRUE(piece);
  ASSERT_FALSE(piece->is_end());
  EXPECT_NE(piece->bytes().find("event: ready"), std::string::npos) << piece->bytes();
  EXPECT_EQ(piece->bytes().find("event: event"), std::string::npos) << piece->bytes();
  bool is_delivered = false;
  stream->pull([&](const http::BodyPiece&) { is_delivered = true; });
  for (int round = 0; round < 30; ++round) turn();
  EXPECT_FALSE(is_delivered);
  EXPECT_LT(most_whole_, 300U);
}

TEST_F(ManyEvents, AreSentInOrderAlthoughTheyAreSearchedOverSeveralTurns) {
  const auto stream = watch("phase");
  std::string text;
  for (bool at_first = true; true; at_first = false) {
    std::optional<http::BodyPiece> piece;
    stream->pull([&](http::BodyPiece given) { piece = std::move(given); });
    if (at_first) {
      EXPECT_FALSE(piece) << "more jobs than one turn unpacks may have the first events";
    }
    for (int round = 0; round < 30 && !piece; ++round) turn();
    if (!piece) break;
    ASSERT_FALSE(piece->is_end());
    text += piece->bytes();
  }

  std::string expected;
  for (int number = 0; number < kPackedJobs; ++number) {
    expected += "job-" + std::to_string(number) + "\n";
  }
  EXPECT_EQ(names_in(text), expected);
  const std::string ready = "event: ready";
  EXPECT_GT(text.find(ready), text.rfind("event: event"));
  EXPECT_EQ(text.find(ready), text.rfind(ready));
  EXPECT_NE(text.find(ready), std::string::npos);
  EXPECT_LT(most_whole_, 300U);
}

TEST_F(ManyEvents, OfTheFutureAreFoundWithoutAnExaminationOfAllJobs) {
  const auto stream = watch_the_future();
  ASSERT_NE(stream, nullptr);
  submit("first");  // after the request, and before the stream is read

  const std::string text = read(*stream);

  EXPECT_LT(text.find("event: ready"), text.find("event: event")) << text;
  EXPECT_EQ(names_in(text).find("first\n"), 0U) << text;
  EXPECT_EQ(stream->scans(), 0);
}

TEST_F(ManyEvents, OfManyChangesAtOnceAreSentInOrderWithoutAnExaminationOfAllJobs) {
  constexpr int kNewJobs = 600;  // more than the stream sends at a time, each with an event or more
  const auto stream = watch_the_future();
  ASSERT_NE(stream, nullptr);
  read(*stream);

  for (int number = 0; number < kNewJobs; ++number) submit("new-" + std::to_string(number));
  const std::string text = read(*stream);

  size_t at = 0;
  for (int number = 0; number < kNewJobs; ++number) {
    const size_t found = text.find("\"job\":\"new-" + std::to_string(number) + "\"");
    ASSERT_NE(found, std::string::npos) << number;
    EXPECT_GE(found, at) << number;
    at = found;
  }
  EXPECT_EQ(stream->scans(), 0);
}

}  // namespace
}  // namespace muster::server
