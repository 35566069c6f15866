// The server's routes with a real controller and a fake engine: the effects of the local user's
// requests, and the answers and refusals on the wire. wrong_user_test.cc tests the rights of other
// users.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/array_wire.h"
#include "api/cluster_wire.h"
#include "api/job_query.h"
#include "api/wire.h"
#include "base/fake_random.h"
#include "engine/fake_engine.h"
#include "job/obstacle.h"
#include "server/routes.h"
#include "store/memory_store.h"
#include "words/sentence.h"

namespace muster::server {
namespace {

class Routes : public testing::Test {
 protected:
  Routes() {
    engine_.offered = {engine::fake_node("gpu-1", 2)};
    controller_ = std::make_unique<control::Controller>(
        control::ControllerDependencies{
            .loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
        control::SiteFacts{.user = "ada"});
    EXPECT_TRUE(controller_->recover());
    add_job_routes(router_, *controller_);
    add_job_list_route(router_, *controller_);
    add_project_routes(router_, *controller_);
    add_node_routes(router_, *controller_);
    add_log_window_routes(router_, loop_, *controller_);
    add_schedule_routes(router_, *controller_);
    add_what_if_route(router_, loop_, *controller_);
  }

  /// Sends a request and returns the answer, after the event loop has run all work.
  http::Response ask(const std::string& method, const std::string& path,
                     const std::string& body = {},
                     const std::map<std::string, std::string>& query = {},
                     const http::Headers& headers = {}) {
    http::Response answer{.status = 0};
    router_.handle(
        {.request =
             {.method = method, .path = path, .query = query, .headers = headers, .body = body},
         .who = access::local_identity("ada"),
         .id = "r1"},
        [&](http::Response response) { answer = std::move(response); });
    constexpr int kRounds = 20;
    for (int round = 0; round < kRounds; ++round) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
    }
    return answer;
  }

  http::Response submit(const std::string& name, int gpus, const std::string& project = "default",
                        const std::map<std::string, std::string>& query = {}) {
    const job::JobSpec spec{.name = name,
                            .project = project,
                            .command = {"train"},
                            .resources = {.gpus = gpus},
                            .folder = "/"};
    return ask("POST", "/v1/jobs", api::spec_to_json(spec), query);
  }

  base::EventLoop loop_;
  store::MemoryStore store_;
  engine::FakeEngine engine_{loop_};
  base::FakeClock clock_;
  base::FakeRandom random_;
  std::unique_ptr<control::Controller> controller_;
  Router router_;
};

TEST_F(Routes, APageOfLargeJobsContainsFewerJobsAndACursor) {
  constexpr int kJobs = 40;
  job::JobSpec large{.project = "default", .command = {"train"}, .folder = "/"};
  large.command.insert(large.command.end(), 2, std::string(100 << 10, 'x'));
  for (int i = 0; i < kJobs; ++i) {
    large.name = "large-" + std::to_string(i);
    ASSERT_TRUE(controller_->submit(large, ""));
  }

  size_t seen = 0;
  std::map<std::string, std::string> query{{"limit", "1000"}};
  while (true) {
    const http::Response answer = ask("GET", "/v1/jobs", "", query);
    ASSERT_EQ(answer.status, 200);
    EXPECT_LT(answer.body.size(), size_t{5} << 20);
    const auto page = api::job_page_from_json(answer.body);
    ASSERT_FALSE(page->jobs.empty());
    seen += page->jobs.size();
    if (page->next.empty()) break;
    query["cursor"] = page->next;
  }
  EXPECT_EQ(seen, static_cast<size_t>(kJobs));
}

TEST_F(Routes, ASubmittedJobIsAnsweredOnceItIsStored) {
  const http::Response submitted = submit("one", 1);

  ASSERT_EQ(submitted.status, 201) << submitted.body;
  EXPECT_EQ(api::job_from_json(submitted.body)->spec.name, "one");
  EXPECT_EQ(submit("one", 1).status, 409);
  EXPECT_EQ(api::job_page_from_json(ask("GET", "/v1/jobs").body)->jobs.size(), 1U);
  EXPECT_EQ(ask("POST", "/v1/jobs", "{").status, 400);
}

TEST_F(Routes, AMisspeltParameterSubmitsNothing) {
  for (const char* const name : {"dry-run", "dryrun"}) {
    EXPECT_EQ(submit("one", 1, "default", {{name, "true"}}).status, 400) << name;
  }

  EXPECT_TRUE(controller_->jobs().named("one").empty());
}

TEST_F(Routes, FaultsNameTheFieldsOfTheApi) {
  const http::Response answer = ask("POST", "/v1/jobs", R"({
    "name": "one", "command": ["x"], "folder": "/", "grace_ms": -1, "start_timeout_ms": -1,
    "resources": {"memory_bytes": -1}, "scheduling": {"time_limit_ms": -1}})");

  ASSERT_EQ(answer.status, 400);
  std::set<std::string> fields;
  for (const base::Fault& fault : api::problem_from_json(400, answer.body).faults) {
    fields.insert(fault.field);
  }
  EXPECT_EQ(fields, (std::set<std::string>{"grace_ms", "start_timeout_ms", "resources.memory_bytes",
                                           "scheduling.time_limit_ms"}));
}

TEST_F(Routes, AScheduleHasTheFaultsOfItsFormAndOfItsTimesAtOnce) {
  const http::Response answer = ask("POST", "/v1/schedules", R"({
    "name": "Nightly", "cron": "0 3 * *", "timezone": "Mars",
    "job": {"name": "x", "command": ["x"], "grace_ms": -1}})");

  ASSERT_EQ(answer.status, 400);
  std::set<std::string> fields;
  for (const base::Fault& fault : api::problem_from_json(400, answer.body).faults) {
    fields.insert(fault.field);
  }
  EXPECT_EQ(fields,
            (std::set<std::string>{"name", "cron", "timezone", "job.folder", "job.grace_ms"}));
}

TEST_F(Routes, TheLogOfATaskThatWasNotStartedIsMissingWithASentence) {
  ASSERT_EQ(submit("one", 2).status, 201);
  ASSERT_EQ(submit("two", 2).status, 201);  // waits

  for (const bool searches : {false, true}) {
    std::map<std::string, std::string> query{{"task", "main"}};
    if (searches) query["q"] = "x";
    const http::Response answer =
        ask("GET", searches ? "/v1/jobs/two/log-search" : "/v1/jobs/two/log-window", "", query);
    EXPECT_EQ(answer.status, 404);
    EXPECT_NE(answer.body.find("job 'two' has no log"), std::string::npos) << answer.body;
  }
}

TEST_F(Routes, ADryRunForecastsThePlacementAndStoresNothing) {
  const http::Response answer = submit("one", 2, "default", {{"dry_run", "true"}});

  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto forecast = api::forecast_from_json(answer.body);
  ASSERT_TRUE(forecast) << forecast.error().to_string();
  EXPECT_TRUE(forecast->starts_now);
  ASSERT_EQ(forecast->placing.size(), 1U);
  EXPECT_EQ(forecast->placing[0].node, "gpu-1");
  EXPECT_EQ(forecast->placing[0].devices, (std::vector<int>{0, 1}));
  EXPECT_EQ(forecast->before.allocated.gpu_milli, 0);
  EXPECT_EQ(forecast->after.allocated.gpu_milli, 2000);
  EXPECT_TRUE(api::job_page_from_json(ask("GET", "/v1/jobs").body)->jobs.empty());
}

TEST_F(Routes, ADryRunWithTheKeyOfAnEarlierRequestGivesItsJob) {
  const auto submit_with = [&](const job::JobSpec& spec, const char* key, const char* dry_run) {
    return ask("POST", "/v1/jobs", api::spec_to_json(spec), {{"dry_run", dry_run}},
               {{"idempotency-key", key}});
  };
  const job::JobSpec one{.name = "one", .project = "default", .command = {"ls"}, .folder = "/"};
  job::JobSpec many{.name = "many", .project = "default", .command = {"ls"}, .folder = "/"};
  many.array.indexes = "0-1";
  const http::Response job = submit_with(one, "k", "false");
  const http::Response array = submit_with(many, "of-many", "false");
  ASSERT_EQ(job.status, 201) << job.body;
  ASSERT_EQ(array.status, 202) << array.body;

  const http::Response same_job = submit_with(one, "k", "true");
  const http::Response same_array = submit_with(many, "of-many", "true");

  ASSERT_EQ(same_job.status, 201) << same_job.body;
  EXPECT_EQ(api::job_from_json(same_job.body)->id, api::job_from_json(job.body)->id);
  ASSERT_EQ(same_array.status, 202) << same_array.body;
  EXPECT_EQ(api::array_from_json(same_array.body)->id, api::array_from_json(array.body)->id);
  EXPECT_EQ(submit_with(one, "other", "true").status, 409);
  EXPECT_EQ(submit_with(many, "other", "true").status, 409);
  EXPECT_EQ(submit_with(many, "k", "true").status, 409) << "the key of a job";
}

TEST_F(Routes, AJobThatCouldNeverRunIsRefusedAtSubmitAndInADryRun) {
  EXPECT_EQ(submit("wide", 3).status, 403);
  EXPECT_EQ(submit("wide", 3, "default", {{"dry_run", "true"}}).status, 403);
}

TEST_F(Routes, SimulationsOfAUserTakeTurnsAndFewWait) {
  std::vector<int> statuses;
  bool has_left = false;
  const auto simulate = [&](const std::string& user) {
    const auto number = statuses.size();
    statuses.push_back(0);
    router_.handle({.request = {.method = "POST",
                                .path = "/v1/what-if",
                                .body = R"({"add_nodes": 1, "like": "gpu-1"})",
                                .peer = {.has_left = [&has_left] { return has_left; }}},
                    .who = access::local_identity(user),
                    .id = "r1"},
                   [&, number](const http::Response& answer) { statuses[number] = answer.status; });
  };
  // The first one has begun, so four wait. No answer arrives before the loop runs.
  for (int i = 0; i < 6; ++i) simulate("ada");
  simulate("ben");
  EXPECT_EQ(statuses, (std::vector<int>{0, 0, 0, 0, 0, 429, 0}));

  has_left = true;
  while (std::count(statuses.begin(), statuses.end(), 0) > 0) {
    loop_.post([this] { loop_.stop(); });
    loop_.run();
  }

  EXPECT_EQ(statuses, (std::vector<int>{200, 503, 503, 503, 503, 429, 503}));
}

TEST_F(Routes, ASimulationLooksAtTheClusterWhenItsTurnComes) {
  http::Response first{.status = 0};
  http::Response second{.status = 0};
  const auto simulate = [&](const std::string& like, http::Response& into) {
    router_.handle({.request = {.method = "POST",
                                .path = "/v1/what-if",
                                .body = R"({"add_nodes": 1, "like": ")" + like + R"("})"},
                    .who = access::local_identity("ada"),
                    .id = "r1"},
                   [&into](http::Response answer) { into = std::move(answer); });
  };
  simulate("gpu-1", first);
  simulate("gpu-2", second);  // there is no such node
  EXPECT_EQ(second.status, 0) << second.body;

  while (second.status == 0) ask("GET", "/v1/nodes");

  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(second.status, 404) << second.body;
}

TEST_F(Routes, AWaitingJobIsInTheQueueAndIsExplained) {
  submit("first", 2);
  submit("second", 1);

  const auto queue = api::jobs_from_json(ask("GET", "/v1/queue").body);
  ASSERT_TRUE(queue);
  ASSERT_EQ(queue->size(), 1U);
  EXPECT_EQ(queue->front().spec.name, "second");
  const auto why = api::explanation_from_json(ask("GET", "/v1/jobs/second/explain").body);
  ASSERT_TRUE(why) << why.error().to_string();
  EXPECT_EQ(why->phase, job::Phase::kQueued);
  EXPECT_EQ(why->position, 1);
  EXPECT_FALSE(words::sentence(why->reason).empty());
  EXPECT_EQ(ask("GET", "/v1/jobs/secnd/explain").status, 404);
}

TEST_F(Routes, ALongQueueIsDividedIntoPages) {
  constexpr size_t kWaiting = 1500;
  submit("first", 2);
  for (size_t i = 0; i < kWaiting; ++i) {
    ASSERT_TRUE(controller_->submit({.name = "waiting-" + std::to_string(i),
                                     .project = "default",
                                     .command = {"train"},
                                     .resources = {.gpus = 1},
                                     .folder = "/"},
                                    ""));
  }
  const auto page = [&](const std::map<std::string, std::string>& query) {
    const http::Response answer = ask("GET", "/v1/queue", "", query);
    const auto read = api::job_page_from_json(answer.body);
    EXPECT_TRUE(read) << answer.body;
    return read ? *read : api::JobPage{};
  };

  const api::JobPage first = page({});
  const api::JobPage second = page({{"cursor", first.next}});

  EXPECT_EQ(first.jobs.size(), 1000U);
  EXPECT_EQ(second.jobs.size(), 500U);
  EXPECT_EQ(second.next, "");
  std::set<std::string> ids;
  for (const api::JobPage* each : {&first, &second}) {
    for (const job::Job& job : each->jobs) ids.insert(job.id);
  }
  EXPECT_EQ(ids.size(), kWaiting);

  const api::JobPage small = page({{"limit", "2"}});
  ASSERT_EQ(small.jobs.size(), 2U);
  ASSERT_TRUE(controller_->stop(small.next, true));
  EXPECT_EQ(page({{"limit", "1"}, {"cursor", small.next}}).jobs.front().id, first.jobs[0].id)
      << "the last job of the page waits no longer";
  EXPECT_EQ(ask("GET", "/v1/queue", "", {{"limit", "1001"}}).status, 400);
}

TEST_F(Routes, ASuspendedJobIsQueuedUntilItIsResumed) {
  submit("one", 1);

  ASSERT_EQ(ask("POST", "/v1/jobs/one/suspend").status, 200);
  auto job = api::job_from_json(ask("GET", "/v1/jobs/one").body);
  EXPECT_EQ(job->phase, job::Phase::kQueued);
  EXPECT_TRUE(job->suspended);
  ASSERT_EQ(ask("POST", "/v1/jobs/one/resume").status, 200);
  job = api::job_from_json(ask("GET", "/v1/jobs/one").body);
  EXPECT_EQ(job->phase, job::Phase::kRunning);
  EXPECT_FALSE(job->suspended);
}

TEST_F(Routes, AProjectIsCreatedAndRemovedAndAPatchChangesOnlyItsOwnFields) {
  api::ProjectChange change;
  change.quota.deserved.gpu_milli = 2000;
  const http::Response created =
      ask("POST", "/v1/projects", api::project_change_to_json("team-a", change));
  ASSERT_EQ(created.status, 201) << created.body;
  EXPECT_EQ(ask("POST", "/v1/projects", api::project_change_to_json("team-a", {})).status, 409);

  api::ProjectChange heavier;
  heavier.quota.weight = 3;
  const http::Response patched =
      ask("PATCH", "/v1/projects/team-a", api::project_change_to_json("", heavier));
  ASSERT_EQ(patched.status, 200) << patched.body;
  const auto status = api::project_from_json(ask("GET", "/v1/projects/team-a").body);
  EXPECT_EQ(status->project.quota.weight, 3);
  EXPECT_EQ(status->project.quota.deserved.gpu_milli, 2000) << "the rest stays";

  EXPECT_EQ(api::projects_from_json(ask("GET", "/v1/projects").body)->size(), 2U);
  EXPECT_EQ(ask("DELETE", "/v1/projects/team-a").status, 204);
  EXPECT_EQ(ask("GET", "/v1/projects/team-a").status, 404);
}

TEST_F(Routes, AProjectCannotBeRenamed) {
  ask("POST", "/v1/projects", api::project_change_to_json("team-a", {}));

  const http::Response renamed =
      ask("PATCH", "/v1/projects/team-a", api::project_change_to_json("team-b", {}));

  EXPECT_EQ(renamed.status, 400);
  EXPECT_EQ(ask("GET", "/v1/projects/team-a").status, 200);
}

TEST_F(Routes, AnUnknownProjectIsAnsweredWithTheNearestName) {
  ask("POST", "/v1/projects", api::project_change_to_json("team-a", {}));

  const http::Response answer = ask("GET", "/v1/projects/teem-a");

  EXPECT_EQ(answer.status, 404);
  const base::Error error = api::problem_from_json(answer.status, answer.body);
  EXPECT_NE((error.what + error.advice).find("team-a"), std::string::npos) << error.to_string();
  EXPECT_EQ(ask("PATCH", "/v1/projects/teem-a", "{}").status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/projects/teem-a").status, 404);
}

TEST_F(Routes, AJobOfAnotherProjectIsNamedWithItsProject) {
  ASSERT_EQ(ask("POST", "/v1/projects", R"({"name":"team-a"})").status, 201);
  ASSERT_EQ(submit("there", 1, "team-a").status, 201);

  const http::Response answer = ask("GET", "/v1/jobs/there", "", {{"project", "default"}});

  ASSERT_EQ(answer.status, 404);
  const base::Error error = api::problem_from_json(answer.status, answer.body);
  EXPECT_EQ(error.what, "there is no job 'there' in project default");
  EXPECT_EQ(error.advice, "it is in project team-a: --project team-a");
  const auto* const obstacle = base::detail_of<job::Obstacle>(error);
  ASSERT_NE(obstacle, nullptr);
  EXPECT_EQ(obstacle->kind, job::Obstacle::Kind::kOtherProject);
  EXPECT_EQ(ask("DELETE", "/v1/projects/team-a").status, 409);
}

TEST_F(Routes, ACordonedNodeGetsNoJobsUntilItIsUncordoned) {
  auto node = api::node_from_json(ask("POST", "/v1/nodes/gpu-1/cordon").body);
  ASSERT_TRUE(node) << node.error().to_string();
  EXPECT_EQ(node->state, "cordoned");
  submit("one", 1);
  EXPECT_EQ(api::job_from_json(ask("GET", "/v1/jobs/one").body)->phase, job::Phase::kQueued);

  node = api::node_from_json(ask("POST", "/v1/nodes/gpu-1/uncordon").body);
  EXPECT_EQ(node->state, "ready");
  EXPECT_EQ(api::job_from_json(ask("GET", "/v1/jobs/one").body)->phase, job::Phase::kRunning);
  node = api::node_from_json(ask("GET", "/v1/nodes/gpu-1").body);
  EXPECT_EQ(node->jobs, std::vector<std::string>{"one"});
}

TEST_F(Routes, JobsOfADrainedNodeAreQueuedAgain) {
  submit("one", 1);

  ASSERT_EQ(ask("POST", "/v1/nodes/gpu-1/drain").status, 200);

  const auto job = api::job_from_json(ask("GET", "/v1/jobs/one").body);
  EXPECT_EQ(job->phase, job::Phase::kQueued);
  EXPECT_EQ(api::nodes_from_json(ask("GET", "/v1/nodes").body)->front().state, "cordoned");
  EXPECT_EQ(ask("POST", "/v1/nodes/gpu-2/drain").status, 404);
}

}  // namespace
}  // namespace muster::server
