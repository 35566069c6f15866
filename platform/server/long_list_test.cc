// Listings of more jobs than one thread examines: the same pages as from the plain definition of a
// query and its order. Also the usage of a project, the metrics, and the search in logs.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "api/job_query.h"
#include "api/usage.h"
#include "base/fake_random.h"
#include "control/test_logs.h"
#include "control/test_many_jobs.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/test_metrics_parser.h"

namespace muster::server {
namespace {

using job::Job;
using JobNames = std::vector<std::string>;

constexpr int kJobs = 50'000;

constexpr base::Time kBegin{std::chrono::seconds(1'700'000'000)};

/// Eve owns few of the jobs, and alone ran hers.
Job ended_job(int number) {
  const base::Time start = kBegin + std::chrono::seconds(number);
  Job job{.id = "id" + std::to_string(number),
          .spec = {.name = "job-" + std::to_string(number * 7919 % kJobs),
                   .command = {"train"},
                   .resources = {.gpus = number % 3}},
          .owner = number % 9973 == 5 ? "eve"
                   : number % 2 == 0  ? "ada"
                                      : "bob",
          .phase = number % 10 == 0 ? job::Phase::kFailed : job::Phase::kSucceeded,
          .submitted = start};
  if (number % 4 != 0) job.started = start + std::chrono::milliseconds(number * 31 % 977);
  job.ended = start + std::chrono::seconds(10);
  if (job.owner == "eve") {
    job.attempt = 1;
    job.tasks = {{.name = "main", .hostname = "main"}};
  }
  return job;
}

class LongList : public testing::Test {
 protected:
  LongList() {
    EXPECT_TRUE(controller_.recover());
    add_job_list_route(router_, controller_);
    add_project_routes(router_, controller_);
    add_logs_search_route(router_, loop_, controller_);
  }

  http::Response get(const std::string& path, http::Query query) {
    http::Response answer;
    router_.handle({.request = {.method = "GET", .path = path, .query = std::move(query)},
                    .who = access::local_identity("root")},
                   [&](http::Response given) { answer = std::move(given); });
    return answer;
  }

  /// The events of a search in the logs.
  std::string search(http::Query query) {
    query["grep"] = "loss";
    const http::Response answer = get("/v1/log-search", std::move(query));
    EXPECT_EQ(answer.status, 200) << answer.body;
    if (answer.stream == nullptr) return "";
    std::string text;
    while (text.find("event: end") == std::string::npos) {
      answer.stream->pull([&](const http::BodyPiece& piece) {
        if (!piece.is_end()) text += piece.bytes();
        loop_.stop();
      });
      loop_.run();
    }
    return text;
  }

  api::JobPage page(api::JobQuery query, const std::string& cursor) {
    query.cursor = cursor;
    const http::Response answer = get("/v1/jobs", api::job_query_parameters(query));
    auto page = api::job_page_from_json(answer.body);
    EXPECT_TRUE(page) << answer.body;
    return page ? *std::move(page) : api::JobPage{};
  }

  base::EventLoop loop_;
  control::ManyEndedJobs store_{kJobs, ended_job};
  base::FakeClock clock_;
  base::FakeRandom random_;
  control::GrowingLogs engine_{loop_};
  control::Controller controller_{
      {.loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
      {.user = "ada"}};
  Router router_;
};

/// The names of the jobs that match, in order.
JobNames names_of(const api::JobQuery& query) {
  std::vector<std::pair<api::JobPlace, std::string>> found;
  for (int number = 0; number < kJobs; ++number) {
    const Job job = ended_job(number);
    if (!matches(query, job)) continue;
    found.emplace_back(copy_of(place_of(query.order, job::facts_of(job))), job.spec.name);
  }
  std::sort(found.begin(), found.end(), [&](const auto& left, const auto& right) {
    return comes_before(query.order, left.first, right.first);
  });
  JobNames names;
  for (const auto& [place, name] : found) names.push_back(name);
  return names;
}

TEST_F(LongList, HasTheSamePagesAsTheDefinitionOfTheQuery) {
  constexpr size_t kPages = 3;
  std::vector<api::JobQuery> queries;
  for (const char* order : {"submitted", "-submitted", "name", "-name", "started", "-started",
                            "-duration", "owner", "-gpus", "phase"}) {
    for (const bool count : {false, true}) {
      const api::JobQuery query{.order = *api::order_of(order), .limit = 2, .count = count};
      // Few jobs of each; and few and many names.
      for (const char* owner : {"eve", "ada"}) queries.emplace_back(query).owner = owner;
      for (const char* prefix : {"job-99", "job-1"}) queries.emplace_back(query).prefix = prefix;
    }
  }
  for (const api::JobQuery& query : queries) {
    const std::string description =
        query.owner.value_or(query.prefix.value_or("")) + " by " + api::order_name(query.order);
    JobNames expected = names_of(query);
    const auto all = static_cast<int64_t>(expected.size());
    expected.resize(std::min(expected.size(), kPages * 2));
    JobNames names;
    std::string cursor;
    for (size_t i = 0; i < kPages; ++i) {
      const api::JobPage part = page(query, cursor);
      for (const Job& job : part.jobs) names.push_back(job.spec.name);
      if (query.count) {
        EXPECT_EQ(part.counts.value_or(api::JobCounts{}).all, all) << description;
      }
      cursor = part.next;
      if (cursor.empty()) break;
    }
    EXPECT_EQ(names, expected) << description;
  }
}

TEST_F(LongList, HasTheUsageThatItsJobsHaveOneByOne) {
  const base::Time since = kBegin + std::chrono::seconds(20'000);
  const base::Time until = since + std::chrono::seconds(15'000);
  api::UsageSum expected(since, until);
  for (int number = 0; number < kJobs; ++number) expected.add(job::facts_of(ended_job(number)));

  const http::Response answer = get("/v1/projects/default/usage",
                                    api::usage_query_parameters({.since = since, .until = until}));

  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto usage = api::usage_from_json(answer.body);
  const auto by_user = [](std::vector<api::UserUsage> users) {
    std::sort(users.begin(), users.end(),
              [](const auto& left, const auto& right) { return left.user < right.user; });
    return users;
  };
  const std::vector<api::UserUsage> users = by_user(usage->users);
  const std::vector<api::UserUsage> sums = by_user(expected.of("default").users);
  ASSERT_GE(sums.size(), 2U);
  ASSERT_EQ(users.size(), sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(users[i].user, sums[i].user);
    EXPECT_EQ(users[i].jobs, sums[i].jobs);
    EXPECT_EQ(users[i].failed, sums[i].failed);
    EXPECT_NEAR(users[i].gpu_hours, sums[i].gpu_hours, 1e-6);
    EXPECT_NEAR(users[i].job_hours, sums[i].job_hours, 1e-6);
  }
}

TEST_F(LongList, IsCountedForTheMetrics) {
  const auto metrics = parse_metrics(server_metrics(controller_, {}, {}, "1"));

  EXPECT_EQ(metrics.fault, "");
  EXPECT_EQ(metrics.samples.at("muster_jobs{project=default,phase=Failed}"), kJobs / 10);
  EXPECT_EQ(metrics.samples.at("muster_jobs{project=default,phase=Succeeded}"), kJobs / 10 * 9);
}

TEST_F(LongList, IsSearchedNewestFirst) {
  // The newest job of eve.
  engine_.append({"id49870", 1}, "main", control::frame_of("loss 0.1\n"));

  const std::string all = search({{"owner", "eve"}});
  const std::string newest = search({{"owner", "eve"}, {"jobs", "1"}});

  EXPECT_NE(all.find(R"({"searched":6,"jobs":6,"older":false})"), std::string::npos) << all;
  EXPECT_NE(newest.find(R"({"searched":1,"jobs":1,"older":true})"), std::string::npos) << newest;
  EXPECT_NE(newest.find("loss 0.1"), std::string::npos) << newest;
}

}  // namespace
}  // namespace muster::server
