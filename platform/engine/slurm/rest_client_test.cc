// The client against a scripted slurmrestd: for newer versions than the installed one, and for
// behaviour that a real slurmrestd does not show on request. Answers of versions from 39 on follow
// the descriptions that Slurm publishes (OpenAPI). slurm_client_contract_test.cc tests the client
// with real versions 36 to 38.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/test_folder.h"
#include "base/unique_fd.h"
#include "engine/slurm/open_client.h"
#include "engine/slurm/test_rest_client.h"
#include "http/test_raw_server.h"

namespace muster::engine::slurm {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using nlohmann::json;

constexpr std::chrono::milliseconds kSoon{50};  ///< a limit that the test exceeds

// --- versions ---

TEST_F(RestClientTest, UsesTheNewestVersionThatBothSupport) {
  struct Case {
    std::vector<std::string> served;
    std::string version;
  };
  for (const Case& one : std::vector<Case>{{{"v0.0.36", "v0.0.37", "v0.0.38"}, "v0.0.38"},
                                           {{"v0.0.39", "v0.0.38"}, "v0.0.39"},
                                           {{"v0.0.41", "v0.0.44", "v0.0.43"}, "v0.0.44"},
                                           {{"v0.0.45", "v0.0.99"}, "v0.0.45"}}) {
    ScriptedSlurmrestd server;
    server.serve(one.served);
    const std::string slash = one.version < "v0.0.40" ? "" : "/";
    server.answer("GET /slurm/" + one.version + "/ping" + slash,
                  R"({"meta":{"slurm":{"release":"24.05.1"}},"pings":[{"pinged":"UP"}]})");
    RestClient client(loop(), options(server.socket()));
    const auto facts = answer<ClientFacts>([&](auto then) { client.facts(then); });
    ASSERT_TRUE(facts) << facts.error().to_string();
    EXPECT_EQ(facts->api, one.version);
    EXPECT_EQ(facts->version, "24.05.1");
    EXPECT_EQ(facts->way, "slurmrestd at unix://" + server.socket().string());
  }
}

TEST_F(RestClientTest, ListsTheVersionsIfNoneIsCommon) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.35", "v0.0.99"});
  RestClient client(loop(), options(server.socket()));
  const auto listed = jobs(client);
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(
      listed.error().what,
      "slurmrestd at unix://" + server.socket().string() +
          " cannot be used: it serves v0.0.35, v0.0.99, and Muster supports v0.0.36 to v0.0.46");
}

TEST_F(RestClientTest, FindsTheDescriptionUnderItsOlderName) {
  ScriptedSlurmrestd server;
  server.answer("GET /openapi", R"({"paths":{"/slurm/v0.0.36/job/submit":{"post":{}},
      "/slurm/v0.0.36/jobs":{"get":{}}}})");
  server.answer("GET /slurm/v0.0.36/jobs", R"({"jobs":[]})");
  RestClient client(loop(), options(server.socket()));
  const auto listed = jobs(client);
  EXPECT_TRUE(listed) << listed.error().to_string();
}

TEST_F(RestClientTest, ReadsThePathsOfAReplacedSlurmrestd) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.38"});
  server.answer("GET /slurm/v0.0.38/jobs", R"({"jobs":[]})");
  RestClient client(loop(), options(server.socket()));
  ASSERT_TRUE(jobs(client));

  server.answer("GET /slurm/v0.0.38/jobs", "Unable find requested URL.", 404);
  server.serve({"v0.0.41"});
  server.answer("GET /slurm/v0.0.41/jobs/", R"({"jobs":[]})");
  const auto first = jobs(client);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(jobs(client));
  EXPECT_EQ(server.count("GET /openapi/v3"), 2U);
}

TEST_F(RestClientTest, RequestsThePathsOnceForAllWaitingCalls) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.38"});
  server.answer("GET /slurm/v0.0.38/jobs", R"({"jobs":[]})");
  RestClient client(loop(), options(server.socket()));
  int answered = 0;
  for (int i = 0; i < 5; ++i) {
    client.jobs([&](const Result<std::vector<ListedJob>>& listed) {
      EXPECT_TRUE(listed);
      ++answered;
      look();
    });
  }
  ASSERT_TRUE(run_until([&] { return answered == 5; }));
  EXPECT_EQ(server.count("GET /openapi/v3"), 1U);
}

// --- jobs ---

TEST_F(RestClientTest, RequestsOnlyChangesIfTheVersionSupportsIt) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.41"});
  const std::string listing =
      R"({"last_update":{"set":true,"infinite":false,"number":1700000000},
          "jobs":[{"job_id":7,"user_id":1000,"comment":"c","job_state":["RUNNING"]}]})";
  server.answer("GET /slurm/v0.0.41/jobs/", listing);
  RestClient client(loop(), options(server.socket()));
  const auto first = jobs(client);
  ASSERT_TRUE(first) << first.error().to_string();
  ASSERT_EQ(first->size(), 1U);
  EXPECT_EQ(server.last().query.count("update_time"), 0U);
  EXPECT_EQ(server.last().query.find("flags")->second, "ALL");

  server.answer("GET /slurm/v0.0.41/jobs/",
                R"({"jobs":[],"warnings":[{"description":"No job changes since update_time"}]})");
  const auto second = jobs(client);
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_EQ(*second, *first);
  EXPECT_EQ(server.last().query.find("update_time")->second, "1700000000");
}

TEST_F(RestClientTest, AnEmptyAnswerAboutChangesDoesNotMeanAnEmptyQueue) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.41"});
  const std::string listing = R"({"last_update":{"set":true,"number":5},
      "jobs":[{"job_id":7,"user_id":1000,"job_state":["RUNNING"]}]})";
  server.answer("GET /slurm/v0.0.41/jobs/", [listing](const Asked& asked) {
    const bool is_about_changes = asked.query.contains("update_time");
    return response(is_about_changes ? R"({"jobs":[],"warnings":[]})" : listing);
  });
  RestClient client(loop(), options(server.socket()));
  ASSERT_TRUE(jobs(client));
  const auto second = jobs(client);
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_EQ(second->size(), 1U);
  EXPECT_EQ(server.count("GET /slurm/v0.0.41/jobs/"), 3U);
}

TEST_F(RestClientTest, ALargeAnswerIsParsedOnAnotherThread) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.40"});
  json listing{{"jobs", json::array()}};
  constexpr int kJobs = 2000;
  for (int i = 1; i <= kJobs; ++i) {
    listing["jobs"].push_back({{"job_id", i},
                               {"user_id", i % 2 == 0 ? 1000 : 1001},
                               {"job_state", {"PENDING"}},
                               {"job_resources", std::string(1000, 'x')}});
  }
  server.answer("GET /slurm/v0.0.40/jobs/", listing.dump());
  RestClient client(loop(), options(server.socket()));
  const auto listed = jobs(client);
  ASSERT_TRUE(listed) << listed.error().to_string();
  EXPECT_EQ(listed->size(), kJobs / 2);
}

TEST_F(RestClientTest, AnAnswerThatIsTooLargeIsAnError) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.40"});
  server.answer("GET /slurm/v0.0.40/jobs/", R"({"jobs":[]})" + std::string(100'000, ' '));
  RestOptions small = options(server.socket());
  small.most_bytes = 50'000;
  RestClient client(loop(), small);
  const auto listed = jobs(client);
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::kExhausted) << listed.error().to_string();
}

TEST_F(RestClientTest, AnInvalidAnswerIsAnError) {
  for (const std::string body :
       {"", "<html>", "[]", "null", R"({"jobs":{}})", R"({"jobs":)", R"({"errors":[]})"}) {
    ScriptedSlurmrestd server;
    server.serve({"v0.0.40"});
    server.answer("GET /slurm/v0.0.40/jobs/", body);
    RestClient client(loop(), options(server.socket()));
    const auto listed = jobs(client);
    ASSERT_FALSE(listed) << body;
    EXPECT_EQ(listed.error().code, ErrorCode::kInternal) << listed.error().to_string();
    EXPECT_NE(listed.error().what.find(server.socket().string()), std::string::npos);
  }
}

// --- submitting ---

TEST_F(RestClientTest, AnAnswerWithAnIdIsASuccess) {
  for (const std::string body :
       {R"({"job_id":17,"errors":[{"error_number":2067,"error":"Job is held"}]})",
        R"({"job_id":{"set":true,"infinite":false,"number":17},"errors":[]})"}) {
    ScriptedSlurmrestd server;
    server.serve({"v0.0.40"});
    server.answer("POST /slurm/v0.0.40/job/submit", body, 500);
    RestClient client(loop(), options(server.socket()));
    const auto id = submit(client);
    ASSERT_TRUE(id) << id.error().to_string();
    EXPECT_EQ(*id, 17U);
  }
}

TEST_F(RestClientTest, DistinguishesTheOutcomesOfASubmission) {
  struct Case {
    std::string body;
    int status;
    ErrorCode code;
  };
  const auto fault = [](const std::string& number, const std::string& words) {
    return R"({"errors":[{)" + number + R"(,"error":")" + words + R"("}]})";
  };
  const std::string no_contact = "Unable to contact slurm controller ";
  for (const Case& one : std::vector<Case>{
           {fault(R"("error_number":2000)", "Invalid partition name specified"), 500,
            ErrorCode::kRefused},
           {fault(R"("error_code":1800)", no_contact + "(connect failure)"), 500,
            ErrorCode::kUnavailable},
           {fault(R"("error_number":1802)", no_contact + "(receive failure)"), 500,
            ErrorCode::kTimeout},
           {fault(R"("error_number":5004)", "Socket timed out on send/recv operation"), 500,
            ErrorCode::kTimeout},
           {fault(R"("error_number":-1)", "Unspecified error"), 500, ErrorCode::kTimeout},
           {R"({"errors":[],"job_id":0})", 200, ErrorCode::kTimeout},
           {"", 200, ErrorCode::kTimeout},
           {"<html>bad gateway</html>", 502, ErrorCode::kTimeout}}) {
    ScriptedSlurmrestd server;
    server.serve({"v0.0.40"});
    server.answer("POST /slurm/v0.0.40/job/submit", one.body, one.status);
    RestClient client(loop(), options(server.socket()));
    const auto id = submit(client);
    ASSERT_FALSE(id) << one.body;
    EXPECT_EQ(id.error().code, one.code) << one.body << id.error().to_string();
    EXPECT_EQ(server.count("POST /slurm/v0.0.40/job/submit"), 1U) << "it was sent again";
  }
}

TEST_F(RestClientTest, OptionsOfSbatchAreRefused) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.40"});
  RestClient client(loop(), options(server.socket()));
  Submission submission = one_task();
  submission.options = {"--nice=100"};
  const auto id = submit(client, submission);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(id.error().what, "slurmrestd does not support options of sbatch: '--nice=100'");
  EXPECT_TRUE(server.asked().empty());
}

/// A server that serves its description, and then treats the next connection differently.
http::RawServer::Script describes_itself() {
  return [](http::RawConnection& connection) {
    connection.read_head();
    const std::string body = R"({"paths":{"/slurm/v0.0.40/job/submit":{"post":{}},
        "/slurm/v0.0.40/jobs/":{"get":{}}}})";
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
                    "\r\n\r\n" + body);
  };
}

TEST_F(RestClientTest, AConnectionThatBreaksAfterTheRequestHasLostTheAnswer) {
  http::RawServer server(
      {describes_itself(), [](http::RawConnection& connection) { connection.read_to("}"); }});
  RestClient client(loop(), options(server.path()));
  const auto id = submit(client);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kTimeout) << id.error().to_string();
  EXPECT_TRUE(id.error().what.starts_with(
      "a job was submitted to Slurm, and the answer was lost: slurmrestd at unix://"))
      << id.error().what;
}

TEST_F(RestClientTest, ASlurmrestdThatDoesNotAnswerInTimeHasLostTheAnswer) {
  http::RawServer server(
      {describes_itself(), [](http::RawConnection& connection) { connection.read_to_the_end(); }});
  RestOptions hasty = options(server.path());
  hasty.answer_patience = kSoon;
  RestClient client(loop(), hasty);
  // The paths are requested first, so that only the submission exceeds the limit.
  const auto id = submit(client);
  ASSERT_FALSE(id);
  if (id.error().code != ErrorCode::kTimeout) {
    // On a busy machine the first answer may be late, too; then nothing was submitted.
    EXPECT_EQ(id.error().code, ErrorCode::kUnavailable) << id.error().to_string();
  }
}

TEST_F(RestClientTest, AMissingServerIsUnavailable) {
  RestClient client(loop(), options("/nonexistent/slurmrestd.sock"));
  const auto id = submit(client);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kUnavailable) << id.error().to_string();
  const auto listed = jobs(client);
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::kUnavailable);
}

// --- ending ---

TEST_F(RestClientTest, CancelsManyJobsByOneRequestIfSupported) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.41"}, true);
  server.answer("DELETE /slurm/v0.0.41/jobs/",
                R"({"status":[{"step_id":"9","error":{"code":2017}}],"errors":[]})");
  RestClient client(loop(), options(server.socket()));
  ASSERT_TRUE(cancel(client, {7, 8, 9}));
  EXPECT_EQ(json::parse(server.last().body)["jobs"], json({"7", "8", "9"}));
  EXPECT_EQ(server.asked().size(), 2U);
}

TEST_F(RestClientTest, AJobThatCannotBeCancelledDoesNotAffectTheOthers) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.38"});
  server.answer("DELETE /slurm/v0.0.38/job/7",
                R"({"errors":[{"error_number":2002,"error":"Access/permission denied"}]})", 500);
  server.answer("DELETE /slurm/v0.0.38/job/8",
                R"({"errors":[{"error_number":2017,"error":"Invalid job id specified"}]})", 500);
  server.answer("DELETE /slurm/v0.0.38/job/9", R"({"errors":[]})");
  RestClient client(loop(), options(server.socket()));
  const auto cancelled = cancel(client, {7, 8, 9});
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, ErrorCode::kRefused) << cancelled.error().to_string();
  EXPECT_EQ(server.count("DELETE /slurm/v0.0.38/job/9"), 1U);
}

// --- the past ---

TEST_F(RestClientTest, PastJobsComeFromTheDatabase) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.40"});
  server.answer("GET /slurmdb/v0.0.40/job/7", R"({"jobs":[
      {"job_id":7,"comment":{"job":"muster:x"},"state":{"current":["CANCELLED"],"reason":"None"},
       "exit_code":{"return_code":{"set":true,"number":0},"signal":{"id":{"set":true,"number":15}}},
       "kill_request_user":"bob","nodes":"n[1-2]"}]})");
  server.answer("GET /slurmdb/v0.0.40/job/8",
                R"({"errors":[{"error_number":9003,"error":"Nothing found with query"}]})", 500);
  RestClient client(loop(), options(server.socket()));
  const auto past =
      answer<std::vector<ListedJob>>([&](auto then) { client.past_jobs({7, 8}, std::move(then)); });
  ASSERT_TRUE(past) << past.error().to_string();
  ASSERT_EQ(past->size(), 1U);
  EXPECT_EQ(past->front().state, JobState::kCancelled);
  EXPECT_EQ(past->front().state_text, "CANCELLED by bob");
  EXPECT_EQ(past->front().exit_signal, 15);
  EXPECT_EQ(past->front().comment, "muster:x");
}

/// Whether the database has the job is unknown then.
TEST_F(RestClientTest, ADatabaseThatCannotBeReachedIsUnavailable) {
  for (const std::string fault : {R"("error_number":7000,"error":"Unable to connect to database")",
                                  R"("error_number":111,"error":"Connection refused")",
                                  R"("error_number":9000,"error":"Query invalid")"}) {
    ScriptedSlurmrestd server;
    server.serve({"v0.0.40"});
    server.answer("GET /slurmdb/v0.0.40/job/7", R"({"errors":[{)" + fault + "}]}", 500);
    RestClient client(loop(), options(server.socket()));
    const auto past =
        answer<std::vector<ListedJob>>([&](auto then) { client.past_jobs({7}, std::move(then)); });
    ASSERT_FALSE(past) << fault;
    EXPECT_EQ(past.error().code, ErrorCode::kUnavailable) << past.error().to_string();
  }
}

TEST(CanConnectTo, RejectsASocketThatAKilledProgramHasLeft) {
  const base::TestFolder folder;
  const std::filesystem::path socket = folder / "socket";
  const base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  socket.native().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_FALSE(can_connect_to(socket));
  EXPECT_FALSE(can_connect_to(folder / "missing"));
  EXPECT_FALSE(can_connect_to(folder.path()));

  ASSERT_EQ(::listen(fd.get(), 1), 0);

  EXPECT_TRUE(can_connect_to(socket));
}

// --- endings ---

TEST_F(RestClientTest, AnAnswerMayEndTheClientAndItsOtherCalls) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.40"});
  server.answer("GET /slurm/v0.0.40/jobs/", R"({"jobs":[]})");
  auto client = std::make_unique<RestClient>(loop(), options(server.socket()));
  ASSERT_TRUE(jobs(*client));
  client->jobs([&](const Result<std::vector<ListedJob>>&) {
    client.reset();
    look();
  });
  // Whichever answer comes first.
  client->nodes([&](const Result<std::vector<ListedNode>>&) { EXPECT_NE(client, nullptr); });
  client->cancel({}, [](const Result<void>&) {});
  ASSERT_TRUE(run_until([&] { return client == nullptr; }));
}

TEST_F(RestClientTest, AWaitingCallMayEndTheClient) {
  auto client = std::make_unique<RestClient>(loop(), options("/nonexistent/socket"));
  client->jobs([&](const Result<std::vector<ListedJob>>&) {
    client.reset();
    look();
  });
  client->jobs([](const Result<std::vector<ListedJob>>&) { ADD_FAILURE(); });
  ASSERT_TRUE(run_until([&] { return client == nullptr; }));
}

}  // namespace
}  // namespace muster::engine::slurm
