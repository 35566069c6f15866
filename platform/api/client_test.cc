// The client with a real HTTP server that gives prepared answers.
#include "api/client.h"

#include <gtest/gtest.h>

#include "api/routes.h"
#include "api/test_values.h"
#include "http/server_sent_events.h"
#include "http/test_server.h"

namespace muster::api {
namespace {

using base::Error;
using base::ErrorCode;

http::Handler answering(const http::Response& response,
                        std::vector<http::Request>* asked = nullptr) {
  return [response, asked](http::Request request, const http::Respond& respond) {
    if (asked != nullptr) asked->push_back(std::move(request));
    respond(response);
  };
}

http::Response problem(const Error& error) {
  return {.status = http_status_of(error.code),
          .content_type = std::string(kProblemType),
          .body = problem_to_json(error)};
}

/// The events of a log, in pieces of the given size.
class Replay : public http::BodyStream {
 public:
  Replay(std::string text, size_t size) : text_(std::move(text)), size_(size) {}

  void pull(Deliver deliver) override {
    if (text_.empty()) return deliver(std::nullopt);
    std::string piece = text_.substr(0, size_);
    text_.erase(0, size_);
    deliver(std::move(piece));
  }

 private:
  std::string text_;
  size_t size_;
};

http::Handler replaying(const std::string& events, size_t size) {
  return [=](const http::Request& request, const http::Respond& respond) {
    if (!request.path.ends_with("/logs")) return respond({.body = job_to_json(full_job())});
    respond({.content_type = std::string(http::kEventStream),
             .stream = std::make_shared<Replay>(events, size)});
  };
}

std::string log_event(const std::string& text) {
  std::string event;
  http::append_event(event, kLogEvent,
                     log_record_to_json({.time = time_at(1), .task = "main", .text = text}));
  return event;
}

std::string end_event() {
  std::string event;
  http::append_event(event, kEndEvent, job_to_json(full_job()));
  return event;
}

TEST(ApiClient, SendsTheSpecWithItsKeyAndReadsTheJob) {
  std::vector<http::Request> asked;
  http::TestServer server(answering({.status = 201, .body = job_to_json(full_job())}, &asked));

  const auto job = Client(server.socket()).submit(full_spec(), "key-1");

  ASSERT_TRUE(job) << job.error().to_string();
  EXPECT_EQ(*job, full_job());
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].method + " " + asked[0].path, "POST /v1/jobs");
  EXPECT_EQ(asked[0].headers.at("idempotency-key"), "key-1");
  EXPECT_EQ(asked[0].headers.at("content-type"), "application/json");
  EXPECT_EQ(*spec_from_json(asked[0].body), full_spec());
}

TEST(ApiClient, SendsEachRequestToItsPath) {
  std::vector<http::Request> asked;
  http::TestServer server(answering({.body = job_to_json(full_job())}, &asked));
  Client client(server.socket());

  ASSERT_TRUE(client.get("dist"));
  ASSERT_TRUE(client.stop("dist", true));
  ASSERT_TRUE(client.stop("dist", false));
  ASSERT_TRUE(client.remove("dist"));
  ASSERT_TRUE(client.shut_down());

  std::vector<std::string> lines;
  for (const auto& request : asked) {
    lines.push_back(request.method + " " + request.path +
                    (request.query.contains("now") ? " now" : ""));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"GET /v1/jobs/dist", "POST /v1/jobs/dist/stop now",
                                             "POST /v1/jobs/dist/stop", "DELETE /v1/jobs/dist",
                                             "POST /v1/shutdown"}));
}

TEST(ApiClient, ReadsTheListAndTheServersDescription) {
  http::TestServer server([](const http::Request& request, const http::Respond& respond) {
    respond({.body = request.path == kInfoPath
                         ? info_to_json({.version = "0.1.0", .pid = 7, .state_folder = "/s"})
                         : jobs_to_json({full_job()})});
  });
  Client client(server.socket());

  EXPECT_EQ(client.info()->version, "0.1.0");
  EXPECT_EQ(*client.list_all({}), std::vector<job::Job>{full_job()});
}

TEST(ApiClient, ReturnsTheServersErrorUnchanged) {
  const Error error{.code = ErrorCode::kConflict,
                    .what = "job 'dist' runs",
                    .advice = "stop it first",
                    .faults = {{.field = "name", .what = "is taken"}}};
  http::TestServer server(answering(problem(error)));
  Client client(server.socket());

  EXPECT_EQ(client.remove("dist").error().to_string(), error.to_string());
  EXPECT_EQ(client.get("dist").error().code, ErrorCode::kConflict);
  const auto logs = client.logs("dist", {}, [](const auto&) { return true; });
  EXPECT_EQ(logs.error().to_string(), error.to_string());
}

TEST(ApiClient, NamesTheFieldsOfARefusedSpecAsJobFilesDo) {
  Error error{.code = ErrorCode::kInvalid, .what = "the spec has 1 fault"};
  error.faults.push_back({.field = "scheduling.time_limit_ms", .what = "is wrong"});
  http::TestServer server(answering(problem(error)));

  const auto job = Client(server.socket()).submit({}, "key");

  ASSERT_FALSE(job);
  ASSERT_EQ(job.error().faults.size(), 1U);
  EXPECT_EQ(job.error().faults[0].field, "scheduling.time_limit");
}

TEST(ApiClient, RefusesNamesThatWouldChangeThePath) {
  Client client("/nowhere");

  for (const char* name : {"", "../info", "a/stop"}) {
    EXPECT_EQ(client.get(name).error().code, ErrorCode::kInvalid) << name;
    EXPECT_EQ(client.remove(name).error().code, ErrorCode::kInvalid) << name;
  }
  EXPECT_EQ(client.get("dist").error().code, ErrorCode::kUnavailable);
}

TEST(ApiClient, ReportsAnUnreadableAnswer) {
  http::TestServer server(answering({.body = "{"}));

  EXPECT_FALSE(Client(server.socket()).get("dist"));
}

TEST(ApiClientLogs, PassOnTheRecordsHoweverTheyAreSplitAndReturnTheJob) {
  const std::string events =
      log_event("one") + std::string(http::kPing) + log_event("two") + end_event();
  for (const size_t size : {size_t{1}, size_t{7}, events.size()}) {
    http::TestServer server(replaying(events, size));
    std::vector<std::string> lines;

    const auto job = Client(server.socket()).logs("dist", {}, [&](const job::LogRecord& record) {
      lines.push_back(record.text);
      return true;
    });

    ASSERT_TRUE(job) << job.error().to_string();
    EXPECT_EQ(*job, full_job());
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
  }
}

TEST(ApiClientLogs, SendTheQuery) {
  std::vector<http::Request> asked;
  http::TestServer server(answering({.body = end_event()}, &asked));

  const auto job = Client(server.socket())
                       .logs("dist", {.follow = true, .task = "worker-0", .tail = 10},
                             [](const auto&) { return true; });

  ASSERT_TRUE(job) << job.error().to_string();
  EXPECT_EQ(asked[0].path, "/v1/jobs/dist/logs");
  EXPECT_EQ(asked[0].query, (std::map<std::string, std::string>{
                                {"follow", "true"}, {"tail", "10"}, {"task", "worker-0"}}));
}

TEST(ApiClientLogs, MayBeLeftEarlyAndStillReturnTheJob) {
  http::TestServer server(replaying(log_event("one") + log_event("two"), 1 << 20));
  int records = 0;

  const auto job = Client(server.socket()).logs("dist", {}, [&](const auto&) {
    ++records;
    return false;
  });

  ASSERT_TRUE(job) << job.error().to_string();
  EXPECT_EQ(*job, full_job());
  EXPECT_EQ(records, 1);
}

TEST(ApiClientLogs, WithoutAnEndAreAnError) {
  http::TestServer server(replaying(log_event("one"), 1 << 20));

  const auto job = Client(server.socket()).logs("dist", {}, [](const auto&) { return true; });

  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace muster::api
