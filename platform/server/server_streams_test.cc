// The server's streams over a real socket, with clients that are disconnected, slow, or no longer
// allowed to read.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "api/wire.h"
#include "server/log_routes.h"
#include "server/test_metrics_parser.h"
#include "server/test_streams.h"

namespace muster::server {
namespace {

using api::Client;
using api::JobEvent;
using base::ErrorCode;
using job::Job;

using Names = std::vector<std::string>;

// --- jobs

/// Watches until `most` events, or all existing events, have arrived. Returns them as words.
Names watch(Client client, std::string& place, size_t most) {
  Names seen;
  const auto more = [&] { return seen.size() < most; };
  const Client::WatchHandlers handlers{
      .on_job =
          [&](const Job& job) {
            seen.push_back(job.spec.name + " " + std::string(job::to_string(job.phase)));
            return more();
          },
      .on_removed =
          [&](const api::RemovedJob& job) {
            seen.push_back("-" + job.name);
            return more();
          },
      .on_ready =
          [&] {
            seen.emplace_back("ready");
            return more();
          },
      .on_reset =
          [&] {
            seen.emplace_back("reset");
            return more();
          }};
  const auto watched = client.watch_jobs({}, place, handlers);
  EXPECT_TRUE(watched) << watched.error().to_string();
  return seen;
}

TEST_F(Streams, SendTheExistingJobsAndThenEachChange) {
  submit("a");
  const std::string b = submit("b");

  std::string place;
  EXPECT_EQ(watch(client(), place, 3), (Names{"a Running", "b Running", "ready"}));
  end(b);
  EXPECT_EQ(watch(client(), place, 1), (Names{"b Succeeded"}));
  submit("c");
  remove(b);
  EXPECT_EQ(watch(client(), place, 2), (Names{"c Running", "-b"}));
}

TEST_F(Streams, ResetAWatcherOfAnEarlierServer) {
  submit("a");

  std::string place = "1.5";
  EXPECT_EQ(watch(client(), place, 3), (Names{"reset", "a Running", "ready"}));
}

TEST_F(Streams, RefuseAnInvalidId) {
  for (const char* path : {"/v1/watch/jobs", "/v1/watch/events"}) {
    const auto answer = http::BlockingClient(server_.socket())
                            .send({.path = path, .headers = {{"last-event-id", "yesterday"}}});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 400) << path;
    const auto unknown =
        http::BlockingClient(server_.socket()).send({.path = path, .query = {{"x", "1"}}});
    EXPECT_EQ(unknown->status, 400) << path;
  }
}

// A watcher reaches the true state, however often and at whatever point it is disconnected.
TEST_F(Streams, BringAWatcherThatIsDisconnectedAtRandomToThePresentState) {
  std::mt19937 random(7);                    // NOLINT: the same each time
  std::map<std::string, std::string> alive;  // name -> id
  std::map<std::string, std::string> seen;   // id -> phase
  std::string place;
  Client watcher = client();
  for (int round = 0; round < 60; ++round) {
    for (unsigned change = random() % 4; change > 0; --change) {
      const unsigned what = random() % 3;
      if (what == 0 || alive.empty()) {
        const std::string name = "job-" + std::to_string(round) + "-" + std::to_string(change);
        alive[name] = submit(name);
      } else {
        const auto chosen = std::next(alive.begin(), static_cast<int>(random() % alive.size()));
        bool over = false;
        server_.on_loop(
            [&] { over = is_final((*controller_->jobs().find(chosen->second))->phase); });
        if (!over) {
          end(chosen->second);
        } else {
          remove(chosen->second);
          alive.erase(chosen);
        }
      }
    }
    // Disconnects after some events, or once it has received the mark that is set now.
    const std::string mark = submit("mark-" + std::to_string(round));
    alive["mark-" + std::to_string(round)] = mark;
    unsigned left = round == 59 ? 1'000'000 : 1 + random() % 6;
    if (place.empty()) seen.clear();
    const auto watched = watcher.watch_jobs({}, place,
                                            {.on_job =
                                                 [&](const Job& job) {
                                                   seen[job.id] = job::to_string(job.phase);
                                                   return job.id != mark && --left > 0;
                                                 },
                                             .on_removed =
                                                 [&](const api::RemovedJob& job) {
                                                   seen.erase(job.id);
                                                   return --left > 0;
                                                 },
                                             .on_ready = {},
                                             .on_reset =
                                                 [&] {
                                                   seen.clear();
                                                   return true;
                                                 }});
    ASSERT_TRUE(watched) << watched.error().to_string();
  }
  std::map<std::string, std::string> truth;
  server_.on_loop([&] {
    for (const Job* job : controller_->jobs().list()) truth[job->id] = job::to_string(job->phase);
  });
  EXPECT_EQ(seen, truth);
}

TEST_F(Streams, KeepOnlyTheLastStateForASlowWatcher) {
  const std::string id = submit("a");
  http::RawClient slow(server_.socket());
  slow.send("GET /v1/watch/jobs HTTP/1.1\r\nhost: x\r\n\r\n");
  slow.read_to("event: ready");
  constexpr int kChanges = 4000;
  for (int i = 0; i < kChanges / 2; ++i) {
    server_.on_loop([&] { EXPECT_TRUE(controller_->suspend(id)); });
    server_.on_loop([&] { EXPECT_TRUE(controller_->resume(id)); });
  }
  settle();
  end(id);
  remove(id);

  const std::string text = slow.read_to("event: removed");
  int events = 0;
  for (size_t at = text.find("event: job"); at != std::string::npos;
       at = text.find("event: job", at + 1)) {
    ++events;
  }
  EXPECT_LT(events, kChanges / 4);
}

TEST_F(Streams, HideOtherProjectsFromAMember) {
  add_project("mine");
  add_project("theirs");
  who_ = {.user = "ada", .projects = {{"mine", access::Role::kViewer}}};
  submit("a", "theirs");
  const std::string b = submit("b", "mine");
  std::string place;

  EXPECT_EQ(watch(client(), place, 2), (Names{"b Running", "ready"}));
  end(submit("c", "theirs"));
  end(b);
  EXPECT_EQ(watch(client(), place, 1), (Names{"b Succeeded"}));

  EXPECT_EQ(client().watch_jobs({.project = "theirs"}, place, {}).error().code,
            ErrorCode::kNotFound);
  const api::JobQuery other{.project = "theirs"};
  EXPECT_EQ(client().list(other).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(client().list_all({})->size(), 1U);
}

TEST_F(Streams, EndWhenTheCallerIsNoLongerAllowed) {
  std::string place;
  Client watcher = client();
  const auto watched = watcher.watch_jobs({}, place,
                                          {.on_job = {},
                                           .on_removed = {},
                                           .on_ready =
                                               [&] {
                                                 server_.on_loop([&] { valid_ = false; });
                                                 submit("a");
                                                 return true;
                                               },
                                           .on_reset = {}});

  ASSERT_FALSE(watched);
  EXPECT_EQ(watched.error().code, ErrorCode::kUnavailable);
}

// --- events

TEST_F(Streams, SendEventsInOrderAndContinueAfterEachEvent) {
  const std::string a = submit("a");
  submit("b");
  end(a);
  std::vector<JobEvent> all;
  std::vector<std::string> places;
  const Client::EventQuery from_the_first{.since = base::Time()};
  size_t count = 0;
  server_.on_loop([&] {
    for (const Job* job : controller_->jobs().list()) count += job->events.size();
  });
  ASSERT_GT(count, 3U);
  std::string place;
  Client reader = client();
  const auto read = reader.watch_events(from_the_first, place, [&](const JobEvent& event) {
    all.push_back(event);
    return all.size() < count;
  });
  ASSERT_TRUE(read) << read.error().to_string();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].time, all[i].time);

  for (size_t cut = 1; cut < count; ++cut) {
    std::string at = std::to_string(all[cut - 1].time.time_since_epoch().count());
    std::vector<JobEvent> rest;
    const auto resumed = client().watch_events({}, at, [&](const JobEvent& event) {
      rest.push_back(event);
      return cut + rest.size() < count;
    });
    ASSERT_TRUE(resumed) << resumed.error().to_string();
    EXPECT_EQ(rest,
              std::vector<JobEvent>(all.begin() + static_cast<std::ptrdiff_t>(cut), all.end()));
  }
}

TEST_F(Streams, SendOnlyTheEventsOfOneKind) {
  end(submit("a"));
  submit("b");
  http::RawClient reader(server_.socket());
  reader.send(
      "GET /v1/watch/events?since=1970-01-01T00:00:00Z&kind=phase HTTP/1.1\r\nhost: x\r\n\r\n");

  const std::string text = reader.read_to(R"("kind":"phase")");

  EXPECT_EQ(text.find("event: event"), text.rfind("event: event")) << text;
  EXPECT_NE(text.find(R"("job":"a")"), std::string::npos) << text;
  const auto unknown = http::BlockingClient(server_.socket())
                           .send({.path = "/v1/watch/events", .query = {{"kind", "phases"}}});
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->status, 400);
}

TEST_F(Streams, SendMoreEventsOfAJobThanAreKept) {
  const std::string id = submit("a");
  std::vector<JobEvent> seen;
  std::string place;
  constexpr size_t kMany = 500;
  Client reader = client();
  bool suspend = true;
  const auto read = reader.watch_events({.since = base::Time()}, place, [&](const JobEvent& event) {
    seen.push_back(event);
    server_.on_loop([&] {
      EXPECT_TRUE(std::exchange(suspend, !suspend) ? controller_->suspend(id)
                                                   : controller_->resume(id));
    });
    return seen.size() < kMany;
  });
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(seen.size(), kMany);
  std::set<base::Time> times;
  for (const JobEvent& event : seen) times.insert(event.time);
  EXPECT_EQ(times.size(), kMany);
}

TEST_F(Streams, EndTheEventsOfAJobWithTheJob) {
  const std::string a = submit("a");
  submit("b");
  std::string place;
  Names jobs;
  Client reader = client();
  const auto ended =
      reader.watch_events({.name = "a", .since = base::Time()}, place, [&](const JobEvent& event) {
        if (jobs.empty()) end(a);
        jobs.push_back(event.job);
        return true;
      });

  ASSERT_TRUE(ended) << ended.error().to_string();
  ASSERT_TRUE(*ended);
  EXPECT_EQ((*ended)->phase, job::Phase::kSucceeded);
  EXPECT_EQ(jobs, Names(jobs.size(), "a"));
  EXPECT_EQ(client().watch_events({.name = "missing"}, place, {}).error().code,
            ErrorCode::kNotFound);
}

// --- logs

TEST_F(Streams, ContinueALogAtEachPlace) {
  const std::string id = submit("a");
  std::string expected;
  std::mt19937 random(7);  // NOLINT: the same each time
  std::string got;
  std::string place;
  Client reader = client();
  for (int round = 0; round < 40; ++round) {
    std::string bytes;
    for (unsigned i = random() % 200 + 1; i > 0; --i) {
      bytes += std::to_string(round) + "-" + std::to_string(i) + "\n";
    }
    expected += bytes;
    print(id, bytes);
    if (round == 39) end(id);
    std::string since_place;
    unsigned left = round == 39 ? 1'000'000'000 : 1 + random() % 400;
    const size_t all = expected.size();
    const auto read = reader.logs(
        "a", {.follow = true}, place,
        {.on_record =
             [&](const job::LogRecord& record) {
               since_place += record.text + "\n";
               return --left > 0 && (round == 39 || got.size() + since_place.size() < all);
             },
         .on_place =
             [&](const std::string& reached) {
               got += std::exchange(since_place, {});
               place = reached;
             }});
    ASSERT_TRUE(read) << read.error().to_string();
  }
  EXPECT_EQ(got, expected);
}

TEST_F(Streams, RefuseAnInvalidPlace) {
  submit("a");
  EXPECT_EQ(client().logs("a", {}, "forged", {}).error().code, ErrorCode::kInvalid);
}

TEST_F(Streams, ReadAndEncodeALogOnceForAllFollowersAtTheSamePlace) {
  const std::string id = submit("a");
  print(id, "one\ntwo\n");
  std::shared_ptr<LogShare> share;
  std::shared_ptr<LogShare> of_another;  // the share of another follower
  std::vector<LogPiece> pieces;
  std::vector<std::shared_ptr<void>> asked;
  server_.on_loop([&] {
    LogShares shares(*controller_);
    share = shares.share(id, {.follow = true}, LogFormat::kEvents);
    of_another = shares.share(id, {.follow = true}, LogFormat::kEvents);
    EXPECT_EQ(of_another, share);
    EXPECT_NE(shares.share(id, {}, LogFormat::kEvents), share);
    EXPECT_NE(shares.share(id, {.follow = true}, LogFormat::kFrames), share);
    EXPECT_NE(shares.share(id, {.follow = true, .rank = 1}, LogFormat::kEvents), share);
    EXPECT_NE(shares.share(id, {.follow = true, .grep = "a"}, LogFormat::kEvents), share);
  });
  const auto ask = [&](const std::string& place) {
    server_.on_loop([&] {
      asked.push_back(share->ask(place, [&](const LogPiece& piece) { pieces.push_back(piece); }));
    });
  };
  for (int i = 0; i < 3; ++i) ask("");
  settle();
  ask("");  // later, from the store
  settle();

  ASSERT_EQ(pieces.size(), 4U);
  EXPECT_EQ(share->read_pieces(), 1U);
  for (const LogPiece& piece : pieces) EXPECT_EQ(piece.text, pieces.front().text);
  server_.on_loop([&] {
    asked.clear();
    share.reset();
    of_another.reset();
  });
}

TEST_F(Streams, AFollowerBehindTheStoreReadsByItself) {
  const std::string id = submit("a");
  std::shared_ptr<LogShare> fast;
  std::shared_ptr<LogShare> slow;
  server_.on_loop([&] {
    LogShares shares(*controller_);
    fast = shares.share(id, {.follow = true}, LogFormat::kEvents);
    slow = fast;
  });
  const std::string line(1000, 'x');
  for (int i = 0; i < 600; ++i) {
    std::string frame;
    for (int j = 0; j < 60; ++j) frame += line + "\n";
    print(id, frame);
  }
  const auto read_all = [&](const std::shared_ptr<LogShare>& share) {
    std::string place;
    size_t lines = 0;
    while (lines < size_t{600} * 60) {
      std::promise<LogPiece> promise;
      std::shared_ptr<void> asked;
      server_.on_loop([&] {
        asked = share->ask(place, [&](const LogPiece& piece) { promise.set_value(piece); });
      });
      const LogPiece piece = promise.get_future().get();
      server_.on_loop([&] { asked.reset(); });
      place = piece.next;
      for (size_t at = piece.text->find("event: log"); at != std::string::npos;
           at = piece.text->find("event: log", at + 1)) {
        ++lines;
      }
    }
    return lines;
  };

  EXPECT_EQ(read_all(fast), 36'000U);
  size_t kept = 0;
  server_.on_loop([&] { kept = fast->kept_bytes(); });
  EXPECT_LE(kept, LogShare::kMostKept);
  EXPECT_GT(kept, 0U);
  EXPECT_EQ(read_all(slow), 36'000U);
  server_.on_loop([&] {
    fast.reset();
    slow.reset();
  });
}

// --- listing

TEST_F(Streams, ListJobsPageByPageInEachOrder) {
  for (const char* name : {"c", "a", "d", "b", "e"}) submit(name);
  const std::map<api::JobQuery::Order, Names> expected{
      {api::JobQuery::Order::kOldestFirst, {"c", "a", "d", "b", "e"}},
      {api::JobQuery::Order::kNewestFirst, {"e", "b", "d", "a", "c"}},
      {api::JobQuery::Order::kByName, {"a", "b", "c", "d", "e"}}};
  for (const auto& [order, names] : expected) {
    for (int limit = 1; limit <= 6; ++limit) {
      api::JobQuery query{.order = order, .limit = limit};
      Names listed;
      do {
        const auto page = client().list(query);
        ASSERT_TRUE(page) << page.error().to_string();
        EXPECT_LE(page->jobs.size(), static_cast<size_t>(limit));
        for (const Job& job : page->jobs) listed.push_back(job.spec.name);
        query.cursor = page->next;
      } while (!query.cursor.empty());
      EXPECT_EQ(listed, names) << limit;
    }
  }
}

TEST_F(Streams, FilterAListing) {
  end(submit("train-1"));
  submit("train-2");
  submit("other");

  EXPECT_EQ(client().list(api::JobQuery{.prefix = "train"})->jobs.size(), 2U);
  EXPECT_EQ(client().list(api::JobQuery{.phases = {job::Phase::kRunning}})->jobs.size(), 2U);
  EXPECT_EQ(client().list(api::JobQuery{.owner = "nobody"})->jobs.size(), 0U);
  EXPECT_EQ(client().list(api::JobQuery{.project = "missing"}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(client().list(api::JobQuery{.cursor = "forged"}).error().code, ErrorCode::kInvalid);
}

TEST_F(Streams, ListRowsInTheOrderOfEachColumn) {
  add_project("team");
  end(submit("b"));
  submit("a", "team");
  submit("c");
  submit("d", "team");
  for (const std::string& name : api::order_names()) {
    for (const char* sign : {"", "-"}) {
      api::JobQuery query{.order = *api::order_of(sign + name), .limit = 500};
      const auto whole = client().list_rows(query);
      ASSERT_TRUE(whole) << whole.error().to_string();
      EXPECT_EQ(whole->rows.size(), 4U);
      EXPECT_FALSE(whole->counts);
      std::vector<std::string> paged;
      query.limit = 1;
      query.count = true;
      do {
        const auto page = client().list_rows(query);
        ASSERT_TRUE(page) << page.error().to_string();
        ASSERT_EQ(page->rows.size(), 1U) << sign << name;
        EXPECT_EQ(page->counts, (api::JobCounts{.all = 4, .running = 3, .succeeded = 1}));
        paged.push_back(page->rows.front().name);
        query.cursor = page->next;
      } while (!query.cursor.empty());
      std::vector<std::string> names;
      for (const api::JobRow& row : whole->rows) names.push_back(row.name);
      EXPECT_EQ(paged, names) << sign << name;
    }
  }
}

TEST_F(Streams, CountJobsOfEachPhaseApartFromTheRequestedPhase) {
  end(submit("train-1"));
  submit("train-2");
  submit("other");

  const auto page = client().list_rows(
      {.phases = {job::Phase::kSucceeded}, .prefix = "train", .limit = 1, .count = true});

  ASSERT_TRUE(page) << page.error().to_string();
  ASSERT_EQ(page->rows.size(), 1U);
  EXPECT_EQ(page->rows[0].name, "train-1");
  EXPECT_EQ(page->next, "");
  EXPECT_EQ(page->counts, (api::JobCounts{.all = 1, .running = 1, .succeeded = 1}));
}

// --- metrics

TEST_F(Streams, MetricsMatchTheController) {
  add_project("team");
  submit("a", "team");
  end(submit("b", "team"));
  submit("c");
  server_.on_loop([&] { requests_.add("GET", "/v1/jobs/{name}", 404); });

  const auto answer = http::BlockingClient(server_.socket()).send({.path = "/metrics"});

  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->content_type, "text/plain; version=0.0.4; charset=utf-8");
  const ParsedMetrics parsed = parse_metrics(answer->body);
  EXPECT_EQ(parsed.fault, "") << answer->body;
  const auto value = [&](const std::string& name) {
    const auto found = parsed.samples.find(name);
    return found == parsed.samples.end() ? -1 : found->second;
  };
  EXPECT_EQ(value("muster_build_info{version=1.2}"), 1);
  EXPECT_EQ(value("muster_jobs{project=team,phase=Running}"), 1);
  EXPECT_EQ(value("muster_jobs{project=team,phase=Succeeded}"), 1);
  EXPECT_EQ(value("muster_jobs{project=default,phase=Running}"), 1);
  EXPECT_EQ(value("muster_jobs{project=default,phase=Failed}"), 0);
  EXPECT_EQ(value("muster_queue_depth{project=team}"), 0);
  EXPECT_EQ(value("muster_jobs_submitted_total{project=team}"), 2);
  EXPECT_EQ(value("muster_jobs_finished_total{project=team,phase=Succeeded}"), 1);
  EXPECT_EQ(value("muster_job_wait_seconds_count"), 3);
  EXPECT_EQ(value("muster_job_start_seconds_count"), 3);
  EXPECT_GT(value("muster_scheduler_cycle_seconds_count"), 0);
  EXPECT_GT(value("muster_store_commit_seconds_count"), 0);
  EXPECT_EQ(value("muster_evictions_total"), 0);
  EXPECT_EQ(value("muster_gpus{pool=default,state=free}"), 8);
  EXPECT_EQ(value("muster_gpus{pool=default,state=used}"), 0);
  EXPECT_EQ(value("muster_http_requests_total{route=GET /v1/jobs/{name},status=4xx}"), 1);
  EXPECT_GT(value("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GE(value("process_cpu_seconds_total"), 0);
  EXPECT_GT(value("process_open_fds"), 2);
  EXPECT_GT(value("process_start_time_seconds"), 1.6e9);
}

TEST_F(Streams, HealthAndReadinessArePublicAndMetricsNeedAViewerOfTheServer) {
  who_ = {};
  http::BlockingClient asks(server_.socket());
  EXPECT_EQ(asks.send({.path = "/healthz"})->status, 200);
  EXPECT_EQ(asks.send({.path = "/readyz"})->status, 200);
  EXPECT_EQ(asks.send({.path = "/openapi.json"})->status, 200);
  EXPECT_EQ(asks.send({.path = "/metrics"})->status, 403);
}

}  // namespace
}  // namespace muster::server
