// Listings of more jobs than one thread examines: the same pages as from the plain definition of a
// query and its order.
#include <gtest/gtest.h>

#include <algorithm>

#include "api/job_query.h"
#include "base/fake_random.h"
#include "control/test_logs.h"
#include "control/test_many_jobs.h"
#include "server/router.h"
#include "server/routes.h"

namespace muster::server {
namespace {

using job::Job;
using JobNames = std::vector<std::string>;

constexpr int kJobs = 50'000;

/// Eve owns few of the jobs.
Job ended_job(int number) {
  const base::Time start{std::chrono::seconds(1'700'000'000 + number)};
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
  return job;
}

class LongList : public testing::Test {
 protected:
  LongList() {
    EXPECT_TRUE(controller_.recover());
    add_job_list_route(router_, controller_);
  }

  api::JobPage page(api::JobQuery query, const std::string& cursor) {
    query.cursor = cursor;
    http::Response answer;
    http::Request request{
        .method = "GET", .path = "/v1/jobs", .query = api::job_query_parameters(query)};
    router_.handle({.request = std::move(request), .who = access::local_identity("root")},
                   [&](http::Response given) { answer = std::move(given); });
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
    const std::string told =
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
        EXPECT_EQ(part.counts.value_or(api::JobCounts{}).all, all) << told;
      }
      cursor = part.next;
      if (cursor.empty()) break;
    }
    EXPECT_EQ(names, expected) << told;
  }
}

}  // namespace
}  // namespace muster::server
