// The client's requests on the queue, projects and nodes, and how it reads the answers.
#include <gtest/gtest.h>

#include "api/client.h"
#include "api/cluster_wire.h"
#include "api/job_query.h"
#include "api/test_values.h"
#include "api/wire.h"
#include "http/test_server.h"

namespace muster::api {
namespace {

/// Calls the client with a server that gives one answer; returns the request: "GET /v1/nodes".
template <class Ask>
std::string asked_by(const std::string& answer, Ask ask, std::string* body = nullptr) {
  std::string asked;
  http::TestServer server([&](const http::Request& request, const http::Respond& respond) {
    asked = request.method + " " + request.path;
    for (const auto& [name, value] : request.query) {
      asked.append(" ").append(name).append("=").append(value);
    }
    if (body != nullptr) *body = request.body;
    respond({.body = answer});
  });
  Client client(server.socket());
  ask(client);
  return asked;
}

/// The same; also checks that the answer is read back as `expected`.
template <class Value, class Ask>
std::string asked_for(const std::string& answer, const Value& expected, Ask ask) {
  return asked_by(answer, [&](Client& client) {
    const auto value = ask(client);
    ASSERT_TRUE(value) << value.error().to_string();
    EXPECT_EQ(*value, expected);
  });
}

TEST(ApiClient, RequestsAForecastWithoutSubmitting) {
  EXPECT_EQ(asked_for(forecast_to_json(full_forecast()), full_forecast(),
                      [](Client& client) { return client.forecast(full_spec()); }),
            "POST /v1/jobs dry_run=true");
}

TEST(ApiClient, ReadsNoForecastFromTheJobOfAnEarlierRequest) {
  std::string key;
  int status = 200;
  http::TestServer server([&](const http::Request& request, const http::Respond& respond) {
    key = request.headers.at("idempotency-key");
    respond({.status = status,
             .body = status == 200 ? forecast_to_json(full_forecast()) : job_to_json(full_job())});
  });
  Client client(server.socket());

  const auto forecast = client.forecast_unless_submitted(full_spec(), "k", {});
  status = 201;
  const auto submitted = client.forecast_unless_submitted(full_spec(), "k", {});

  ASSERT_TRUE(forecast && submitted && *forecast);
  EXPECT_EQ(**forecast, full_forecast());
  EXPECT_FALSE(submitted->has_value());
  EXPECT_EQ(key, "k");
}

TEST(ApiClient, SuspendsResumesAndExplainsJobs) {
  const std::string job = job_to_json(full_job());

  EXPECT_EQ(asked_for(job, full_job(), [](Client& client) { return client.suspend("dist"); }),
            "POST /v1/jobs/dist/suspend");
  EXPECT_EQ(asked_for(job, full_job(), [](Client& client) { return client.resume("dist"); }),
            "POST /v1/jobs/dist/resume");
  EXPECT_EQ(asked_for(explanation_to_json(full_explanation()), full_explanation(),
                      [](Client& client) { return client.explain("dist"); }),
            "GET /v1/jobs/dist/explain");
  EXPECT_EQ(asked_for(jobs_to_json({full_job()}), std::vector<job::Job>{full_job()},
                      [](Client& client) { return client.queue(); }),
            "GET /v1/queue");
}

TEST(ApiClient, ReadsTheQueuePageByPage) {
  std::vector<job::Job> jobs(3, full_job());
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i].id = "job-" + std::to_string(i);
  std::vector<std::string> cursors;
  // The second job was served twice, because the first started in between.
  http::TestServer server([&](const http::Request& request, const http::Respond& respond) {
    const auto cursor = request.query.find("cursor");
    cursors.push_back(cursor == request.query.end() ? "" : cursor->second);
    const std::string& last = cursors.back();
    respond({.body = last.empty()      ? job_page_to_json({&jobs[0], &jobs[1]}, "job-1")
                     : last == "job-1" ? job_page_to_json({&jobs[1], &jobs[2]}, "job-2")
                                       : job_page_to_json({&jobs[2]}, "job-2")});
  });

  const auto queue = Client(server.socket()).queue();

  ASSERT_TRUE(queue) << queue.error().to_string();
  EXPECT_EQ(*queue, jobs);
  EXPECT_EQ(cursors, (std::vector<std::string>{"", "job-1", "job-2"}));
}

TEST(ApiClient, ListsAndGetsProjects) {
  EXPECT_EQ(
      asked_for(projects_to_json({full_project()}), std::vector<job::ProjectStatus>{full_project()},
                [](Client& client) { return client.projects(); }),
      "GET /v1/projects");
  EXPECT_EQ(asked_for(project_to_json(full_project()), full_project(),
                      [](Client& client) { return client.project("team-a"); }),
            "GET /v1/projects/team-a");
}

TEST(ApiClient, CreatesChangesAndRemovesProjects) {
  const std::string answer = project_to_json(full_project());
  const ProjectChange change{.priority = 5};
  std::string body;

  EXPECT_EQ(
      asked_by(
          answer, [&](Client& client) { EXPECT_TRUE(client.create_project("team-a", change)); },
          &body),
      "POST /v1/projects");
  EXPECT_EQ(body, R"({"name":"team-a","priority":5})");

  EXPECT_EQ(
      asked_by(
          answer, [&](Client& client) { EXPECT_TRUE(client.patch_project("team-a", change)); },
          &body),
      "PATCH /v1/projects/team-a");
  EXPECT_EQ(body, R"({"priority":5})");

  EXPECT_EQ(asked_by("", [](Client& client) { EXPECT_TRUE(client.remove_project("team-a")); }),
            "DELETE /v1/projects/team-a");
}

TEST(ApiClient, ListsGetsAndChangesNodes) {
  const std::string node = node_to_json(full_node());

  EXPECT_EQ(asked_for(nodes_to_json({full_node()}), std::vector<job::Node>{full_node()},
                      [](Client& client) { return client.nodes(); }),
            "GET /v1/nodes");
  EXPECT_EQ(asked_for(node, full_node(), [](Client& client) { return client.node("n1"); }),
            "GET /v1/nodes/n1");
  EXPECT_EQ(asked_for(node, full_node(), [](Client& client) { return client.cordon("n1"); }),
            "POST /v1/nodes/n1/cordon");
  EXPECT_EQ(asked_for(node, full_node(), [](Client& client) { return client.uncordon("n1"); }),
            "POST /v1/nodes/n1/uncordon");
  EXPECT_EQ(asked_for(node, full_node(), [](Client& client) { return client.drain("n1"); }),
            "POST /v1/nodes/n1/drain");
}

TEST(ApiClient, RefusesANameThatIsNotAPathSegmentBeforeSending) {
  Client client("/nonexistent/socket");

  for (const std::string name : {"", "a/b"}) {
    EXPECT_EQ(client.suspend(name).error().code, base::ErrorCode::kInvalid);
    EXPECT_EQ(client.explain(name).error().code, base::ErrorCode::kInvalid);
    EXPECT_EQ(client.project(name).error().code, base::ErrorCode::kInvalid);
    EXPECT_EQ(client.patch_project(name, {}).error().code, base::ErrorCode::kInvalid);
    EXPECT_EQ(client.remove_project(name).error().code, base::ErrorCode::kInvalid);
    EXPECT_EQ(client.node(name).error().code, base::ErrorCode::kInvalid);
    EXPECT_EQ(client.drain(name).error().code, base::ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace muster::api
