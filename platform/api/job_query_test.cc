#include "api/job_query.h"

#include <gtest/gtest.h>

#include "api/test_values.h"

namespace muster::api {
namespace {

using Order = JobQuery::Order;

job::Job job_named(std::string name, std::string project, job::Phase phase, std::string owner) {
  job::Job job;
  job.spec.name = std::move(name);
  job.spec.project = std::move(project);
  job.phase = phase;
  job.owner = std::move(owner);
  return job;
}

TEST(JobQuery, IsReadBackAsItWasWritten) {
  JobQuery query{.project = "team",
                 .phases = {job::Phase::kRunning, job::Phase::kQueued},
                 .owner = "ada",
                 .prefix = "train-",
                 .labels = {"nightly", "team=a=b", "team"},
                 .order = Order::kNewestFirst,
                 .limit = 7};
  query.cursor = cursor_text(query.order, place_of(query.order, full_job()));

  const auto read = job_query_from_parameters(job_query_parameters(query));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, query);
}

TEST(JobQuery, AsksForTheFirstOfAllJobsByDefault) {
  EXPECT_TRUE(job_query_parameters({}).empty());
  const auto read = job_query_from_parameters({});
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, JobQuery{});
}

TEST(JobQuery, ReportsEveryFaultAtOnce) {
  const auto read = job_query_from_parameters({{"phase", "Running,Done"},
                                               {"sort", "age"},
                                               {"limit", "1001"},
                                               {"cursor", "forged"},
                                               {"label", "nightly"},
                                               {"label", "=b"},
                                               {"projects", "x"}});

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, base::ErrorCode::kInvalid);
  EXPECT_EQ(
      read.error().to_string(),
      "the query for jobs is wrong\n"
      "  label: '=b' is neither NAME nor NAME=VALUE\n"
      "  limit: '1001' is not a number from 1 to 1000\n"
      "  phase: 'Done' is not a phase; those are Queued, Starting, Running, Succeeded, Failed "
      "and Stopped\n"
      "  projects: is not a parameter; did you mean 'project'?\n"
      "  sort: 'age' is none of submitted, -submitted and name\n"
      "  cursor: 'forged' is not the 'next' of a page with this 'sort'");
}

TEST(JobQuery, ShowsJobsThatAreAllOfWhatIsAskedFor) {
  const job::Job job = job_named("train-1", "team", job::Phase::kRunning, "ada");

  EXPECT_TRUE(matches({}, job));
  EXPECT_TRUE(matches({.project = "team",
                       .phases = {job::Phase::kFailed, job::Phase::kRunning},
                       .owner = "ada",
                       .prefix = "train"},
                      job));
  EXPECT_FALSE(matches({.project = "tea"}, job));
  EXPECT_FALSE(matches({.phases = {job::Phase::kFailed}}, job));
  EXPECT_FALSE(matches({.owner = "bob"}, job));
  EXPECT_FALSE(matches({.prefix = "rain"}, job));
}

TEST(JobQuery, ShowsJobsThatHaveAllOfTheLabels) {
  job::Job job;
  job.spec.labels = {{"nightly", ""}, {"team", "a=b"}};

  const std::vector<std::string> shown[] = {
      {"nightly"}, {"nightly="}, {"team"}, {"team=a=b"}, {"team", "nightly"}};
  for (const auto& labels : shown) EXPECT_TRUE(matches({.labels = labels}, job)) << labels[0];
  const std::vector<std::string> hidden[] = {
      {"night"}, {"nightly=x"}, {"team=a"}, {"team="}, {"nightly", "other"}};
  for (const auto& labels : hidden) EXPECT_FALSE(matches({.labels = labels}, job)) << labels[0];
}

TEST(JobCursor, NamesThePlaceOfAJobInEachOrder) {
  const job::Job job = full_job();
  for (const Order order : {Order::kOldestFirst, Order::kNewestFirst, Order::kByName}) {
    const JobPlace place = place_of(order, job);
    EXPECT_EQ(place_of_cursor(order, cursor_text(order, place)), place);
  }
}

TEST(JobCursor, IsTakenForNoOtherOrder) {
  const job::Job job = full_job();
  for (const Order made : {Order::kOldestFirst, Order::kNewestFirst, Order::kByName}) {
    for (const Order read : {Order::kOldestFirst, Order::kNewestFirst, Order::kByName}) {
      const auto place = place_of_cursor(read, cursor_text(made, place_of(made, job)));
      EXPECT_EQ(place.has_value(), made == read);
    }
  }
}

TEST(JobCursor, IsRefusedWhereItIsForged) {
  const std::string right = cursor_text(Order::kOldestFirst, {.submitted = job::time_at(12)});
  for (size_t i = 0; i < right.size(); ++i) {
    EXPECT_FALSE(place_of_cursor(Order::kOldestFirst, right.substr(0, i) + "=")) << i;
  }
  for (const std::string_view text : {"", "x", "====", "c3VibWl0dGVkCg", "c3VibWl0dGVkCngK"}) {
    EXPECT_FALSE(place_of_cursor(Order::kOldestFirst, text)) << text;
  }
}

TEST(JobPage, IsReadBackAsItWasWritten) {
  const job::Job first = full_job();
  job::Job second = full_job();
  second.spec.name = "other";

  const auto page = job_page_from_json(job_page_to_json({&first, &second}, "more"));

  ASSERT_TRUE(page) << page.error().to_string();
  EXPECT_EQ(page->jobs, (std::vector<job::Job>{first, second}));
  EXPECT_EQ(page->next, "more");
}

TEST(JobPage, SaysNothingOfANextOneWhereThereIsNone) {
  EXPECT_EQ(job_page_to_json({}, ""), R"({"jobs":[]})");
  EXPECT_EQ(job_page_from_json(R"({"jobs":[]})")->next, "");
}

}  // namespace
}  // namespace muster::api
