// Listings and streams that are divided between jobs of one submission time.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "api/job_query.h"
#include "api/job_rows.h"
#include "api/wire.h"
#include "base/fake_random.h"
#include "control/schedules.h"
#include "control/test_logs.h"
#include "control/test_many_jobs.h"
#include "http/server_sent_events.h"
#include "server/router.h"
#include "server/routes.h"

namespace muster::server {
namespace {

using Ids = std::vector<std::string>;

const base::Time kSameTime = base::FakeClock().now();

/// A job that fills a piece of a stream.
job::Job large_job(const std::string& id, std::chrono::nanoseconds later) {
  return {.id = id,
          .spec = {.name = "job-" + id, .command = {std::string(200 << 10, 'x')}},
          .owner = "ada",
          .phase = job::Phase::kSucceeded,
          .submitted = kSameTime + later,
          .ended = kSameTime + std::chrono::seconds(1)};
}

/// Jobs of one time, whose ids are not in the order of the jobs, with an unreadable job behind the
/// first.
class EqualTimesStore : public control::ManyEndedJobs {
 public:
  EqualTimesStore() : ManyEndedJobs(5, made) {}

  base::Result<store::Contents> load_packed() override {
    MUSTER_TRY(store::Contents contents, ManyEndedJobs::load_packed());
    contents.unreadable.push_back({.kind = "job",
                                   .id = "k",
                                   .project = "default",
                                   .name = "job-k",
                                   .fault = "its checksum differs",
                                   .jobs_before = 1});
    return contents;
  }

 private:
  static job::Job made(int number) {
    constexpr std::pair<const char*, int> kJobs[] = {
        {"z", 0}, {"c", 0}, {"a", 1}, {"y", 0}, {"b", 9}};
    const auto& [id, later] = kJobs[number];
    return large_job(id, std::chrono::nanoseconds(later));
  }
};

class EqualTimes : public testing::Test {
 protected:
  EqualTimes() {
    EXPECT_TRUE(controller_.recover());
    add_job_list_route(router_, controller_);
    add_watch_routes(router_, loop_, controller_);
  }

  http::Response ask(const std::string& path, const http::Query& query) {
    http::Response answer;
    router_.handle({.request = {.method = "GET", .path = path, .query = query},
                    .who = access::local_identity("root")},
                   [&](http::Response given) { answer = std::move(given); });
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer;
  }

  /// The ids on all pages of /v1/jobs or /v1/list, of one entry each.
  Ids ids(const std::string& path, api::JobQuery query) {
    Ids ids;
    query.limit = 1;
    for (int page = 0; page < 20; ++page) {
      const http::Response answer = ask(path, api::job_query_parameters(query));
      if (path == "/v1/jobs") {
        const auto jobs = api::job_page_from_json(answer.body);
        EXPECT_TRUE(jobs) << answer.body;
        for (const job::Job& job : jobs->jobs) ids.push_back(job.id);
        query.cursor = jobs->next;
      } else {
        const auto rows = api::row_page_from_json(answer.body);
        EXPECT_TRUE(rows) << answer.body;
        for (const api::JobRow& row : rows->rows) ids.push_back(row.id);
        query.cursor = rows->next;
      }
      if (query.cursor.empty()) break;
    }
    return ids;
  }

  base::EventLoop loop_;
  EqualTimesStore store_;
  base::FakeClock clock_;
  base::FakeRandom random_;
  control::GrowingLogs engine_{loop_};
  control::Controller controller_{
      {.loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
      {.user = "ada"}};
  Router router_;
};

TEST_F(EqualTimes, PagesHaveEachJobOnceInBothOrders) {
  for (const bool count : {false, true}) {
    for (const std::string text : {"", "job"}) {
      api::JobQuery query{.text = text, .count = count};
      EXPECT_EQ(ids("/v1/jobs", query), (Ids{"z", "k", "c", "a", "y", "b"})) << count << text;
      query.order = api::JobOrder::kNewestFirst;
      EXPECT_EQ(ids("/v1/jobs", query), (Ids{"b", "y", "a", "c", "k", "z"})) << count << text;
      EXPECT_EQ(ids("/v1/list", query), (Ids{"b", "y", "a", "c", "k", "z"})) << count << text;
    }
  }
}

// Its time is that of the first job.
TEST_F(EqualTimes, PagesHaveEachJobOnceBesideAnotherObject) {
  const auto schedule =
      controller_.schedules().create({.name = "nightly",
                                      .project = "default",
                                      .cron = "0 3 29 2 *",
                                      .job = {.command = {"train"}, .folder = "/"}},
                                     {.user = "ada"});
  ASSERT_TRUE(schedule) << schedule.error().to_string();
  ASSERT_EQ(schedule->created, kSameTime);
  Ids expected{"a", "b", "c", "k", "y", "z", schedule->id};
  std::sort(expected.begin(), expected.end());

  for (const api::JobOrder order : {api::JobOrder::kOldestFirst, api::JobOrder::kNewestFirst}) {
    Ids listed = ids("/v1/list", {.order = order});
    std::sort(listed.begin(), listed.end());
    EXPECT_EQ(listed, expected) << api::order_name(order);
  }
}

TEST_F(EqualTimes, AWatcherReceivesEachJobOnce) {
  const http::Response answer = ask("/v1/watch/jobs", {});
  Ids ids;
  bool is_ready = false;
  http::EventDecoder decoder;
  for (int piece = 0; piece < 20 && !is_ready; ++piece) {
    answer.stream->pull([&](const http::BodyPiece& given) {
      ASSERT_FALSE(given.is_end());
      decoder.put(given.bytes(), [&](std::string_view event, std::string_view data) {
        is_ready = is_ready || event == "ready";
        if (event != "job") return true;
        const auto job = api::job_from_json(data);
        EXPECT_TRUE(job);
        if (job) ids.push_back(job->id);
        return true;
      });
    });
  }

  EXPECT_TRUE(is_ready);
  EXPECT_EQ(ids, (Ids{"z", "k", "c", "a", "y", "b"}));
}

}  // namespace
}  // namespace muster::server
