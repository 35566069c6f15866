#include "api/job_query.h"

#include <gtest/gtest.h>

#include "api/test_values.h"
#include "job/log_record.h"

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

TEST(JobQuery, ReadsBackUnchanged) {
  JobQuery query{.project = "team",
                 .phases = {job::Phase::kRunning, job::Phase::kQueued},
                 .owner = "ada",
                 .prefix = "train-",
                 .labels = {"nightly", "team=a=b", "team"},
                 .order = Order::kNewestFirst,
                 .limit = 7,
                 .kinds = {job::Kind::kMpi, job::Kind::kTorch},
                 .text = "lr 0.1",
                 .submitted = {.after = job::time_at(5), .before = job::time_at(9)},
                 .started = {.before = job::time_at(7)},
                 .ended = {.after = job::time_at(6)},
                 .origin = OriginFilter{.kind = job::JobOrigin::Kind::kArray, .of = "train"},
                 .top = true,
                 .count = true};
  query.cursor =
      cursor_text(query.order, copy_of(place_of(query.order, job::facts_of(full_job()))));

  const auto read = job_query_from_parameters(job_query_parameters(query));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, query);
}

TEST(JobQuery, RequestsTheFirstPageOfAllJobsByDefault) {
  EXPECT_TRUE(job_query_parameters({}).empty());
  const auto read = job_query_from_parameters({});
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, JobQuery{});
}

TEST(JobQuery, ReportsEveryFaultAtOnce) {
  const auto read = job_query_from_parameters({{"phase", "Running,Done"},
                                               {"sort", "size"},
                                               {"limit", "1001"},
                                               {"cursor", "forged"},
                                               {"label", "nightly"},
                                               {"label", "=b"},
                                               {"projects", "x"}});

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, base::ErrorCode::kInvalid);
  EXPECT_EQ(read.error().to_string(),
            "the query for jobs is invalid\n"
            "  label: '=b' is not NAME, NAME=VALUE, !NAME or NAME!=VALUE\n"
            "  limit: '1001' is not a number from 1 to 1000\n"
            "  phase: 'Done' is invalid: expected one of Queued, Starting, Running, Succeeded, "
            "Failed, Stopped, active, ended\n"
            "  projects: is not a parameter; did you mean 'project'?\n"
            "  sort: 'size' is invalid: expected one of submitted, started, ended, duration, name, "
            "project, owner, kind, phase, priority, gpus, or one of them after '-'\n"
            "  cursor: 'forged' is not the 'next' of a page with the same 'sort'");
}

TEST(JobQuery, SelectsJobsThatMatchEveryCondition) {
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

TEST(JobQuery, SelectsJobsWithAllLabels) {
  job::Job job;
  job.spec.labels = {{"nightly", ""}, {"team", "a=b"}};

  const std::vector<std::string> shown[] = {
      {"nightly"}, {"nightly="}, {"team"}, {"team=a=b"}, {"team", "nightly"}};
  for (const auto& labels : shown) EXPECT_TRUE(matches({.labels = labels}, job)) << labels[0];
  const std::vector<std::string> hidden[] = {
      {"night"}, {"nightly=x"}, {"team=a"}, {"team="}, {"nightly", "other"}};
  for (const auto& labels : hidden) EXPECT_FALSE(matches({.labels = labels}, job)) << labels[0];
}

TEST(JobQuery, SelectsJobsWithoutALabel) {
  job::Job job;
  job.spec.labels = {{"nightly", ""}, {"team", "a"}};

  const std::vector<std::string> shown[] = {{"!day"}, {"day!=x"}, {"team!=b"}, {"team", "!day"}};
  for (const auto& labels : shown) EXPECT_TRUE(matches({.labels = labels}, job)) << labels[0];
  const std::vector<std::string> hidden[] = {{"!team"}, {"team!=a"}, {"nightly!="}, {"!day", "x"}};
  for (const auto& labels : hidden) EXPECT_FALSE(matches({.labels = labels}, job)) << labels[0];
}

TEST(JobQuery, TakesGroupsOfPhasesInAnyCase) {
  const auto phases = [](const char* words) {
    return job_query_from_parameters({{"phase", words}})->phases;
  };
  using job::Phase;
  EXPECT_EQ(phases("active"),
            (std::vector<Phase>{Phase::kQueued, Phase::kStarting, Phase::kRunning}));
  EXPECT_EQ(phases("Ended"),
            (std::vector<Phase>{Phase::kSucceeded, Phase::kFailed, Phase::kStopped}));
  EXPECT_EQ(phases("running,FAILED"), (std::vector<Phase>{Phase::kRunning, Phase::kFailed}));
}

TEST(JobQuery, SearchesNamesLabelsAndCommands) {
  job::Job job = job_named("Resnet-7", "team", job::Phase::kRunning, "ada");
  job.id = "j-12ab";
  job.spec.command = {"python3", "Train.py"};
  job.spec.arguments = {"--lr", "0.1"};
  job.spec.labels = {{"team", "vision"}};
  job.spec.environment = {{"TOKEN", "hidden"}};

  for (const char* text :
       {"resnet", "NET-7", "12AB", "train.py", "lr", "team=VIS", "  lr  resnet "}) {
    EXPECT_TRUE(matches({.text = text}, job)) << text;
  }
  for (const char* text : {"resnet8", "lr python9", "hidden", "train.py --lr=0.1"}) {
    EXPECT_FALSE(matches({.text = text}, job)) << text;
  }
}

TEST(JobQuery, SelectsByTimeKindAndOrigin) {
  job::Job job = job_named("train-3", "team", job::Phase::kSucceeded, "ada");
  job.spec.kind = job::Kind::kMpi;
  job.submitted = job::time_at(10);
  job.ended = job::time_at(20);
  job.origin = {.kind = job::JobOrigin::Kind::kArray, .name = "train", .id = "a1", .member = 3};
  const auto of = [](job::JobOrigin::Kind kind, const char* name) {
    return OriginFilter{.kind = kind, .of = name};
  };

  EXPECT_TRUE(matches({.submitted = {.after = job::time_at(10)}}, job));
  EXPECT_FALSE(matches({.submitted = {.before = job::time_at(10)}}, job));
  EXPECT_FALSE(matches({.started = {.before = job::time_at(99)}}, job)) << "it never started";
  EXPECT_TRUE(matches({.ended = {.after = job::time_at(19), .before = job::time_at(21)}}, job));
  EXPECT_TRUE(matches({.kinds = {job::Kind::kTorch, job::Kind::kMpi}}, job));
  EXPECT_FALSE(matches({.kinds = {job::Kind::kTorch}}, job));
  EXPECT_TRUE(matches({.origin = of(job::JobOrigin::Kind::kArray, "")}, job));
  EXPECT_TRUE(matches({.origin = of(job::JobOrigin::Kind::kArray, "train")}, job));
  EXPECT_TRUE(matches({.origin = of(job::JobOrigin::Kind::kArray, "a1")}, job));
  EXPECT_FALSE(matches({.origin = of(job::JobOrigin::Kind::kArray, "tra")}, job));
  EXPECT_FALSE(matches({.origin = of(job::JobOrigin::Kind::kSweep, "")}, job));
  EXPECT_FALSE(matches({.top = true}, job));
  job.origin->kind = job::JobOrigin::Kind::kSchedule;
  EXPECT_TRUE(matches({.top = true}, job));
}

TEST(JobOrder, PutsJobsWithoutAValueLastInBothDirections) {
  job::Job waiting = job_named("w", "p", job::Phase::kQueued, "ada");
  job::Job early = job_named("e", "p", job::Phase::kRunning, "ada");
  job::Job late = job_named("l", "p", job::Phase::kRunning, "ada");
  early.started = job::time_at(1);
  late.started = job::time_at(2);
  for (const bool descending : {false, true}) {
    const Order order{.by = JobColumn::kStarted, .descending = descending};
    const auto before = [&](const job::Job& left, const job::Job& right) {
      return comes_before(order, place_of(order, job::facts_of(left)),
                          copy_of(place_of(order, job::facts_of(right))));
    };
    EXPECT_EQ(before(early, late), !descending);
    EXPECT_TRUE(before(late, waiting) && before(early, waiting));
    EXPECT_FALSE(before(waiting, early));
  }
}

TEST(JobOrder, HasANameForEachColumnAndDirection) {
  for (const std::string& name : order_names()) {
    EXPECT_EQ(order_name(*order_of(name)), name);
    EXPECT_EQ(order_name(*order_of("-" + name)), "-" + name);
  }
  EXPECT_EQ(order_of("age"), Order::kNewestFirst);
  EXPECT_FALSE(order_of("--name"));
}

TEST(JobCursor, ContainsThePlaceOfAJobInEachOrder) {
  const job::Job job = full_job();
  std::vector<Order> orders{Order::kOldestFirst, Order::kNewestFirst, Order::kByName};
  for (const std::string& name : order_names()) orders.push_back(*order_of("-" + name));
  for (const Order order : orders) {
    const JobPlace place = copy_of(place_of(order, job::facts_of(job)));
    EXPECT_EQ(place_of_cursor(order, cursor_text(order, place)), place);
  }
}

TEST(JobCursor, IsRefusedForAnotherOrder) {
  const job::Job job = full_job();
  for (const Order made : {Order::kOldestFirst, Order::kNewestFirst, Order::kByName}) {
    for (const Order read : {Order::kOldestFirst, Order::kNewestFirst, Order::kByName}) {
      const auto place =
          place_of_cursor(read, cursor_text(made, copy_of(place_of(made, job::facts_of(job)))));
      EXPECT_EQ(place.has_value(), made == read);
    }
  }
}

TEST(JobCursor, IsRefusedIfItIsForged) {
  const std::string right = cursor_text(Order::kOldestFirst, {.submitted = job::time_at(12)});
  for (size_t i = 0; i < right.size(); ++i) {
    EXPECT_FALSE(place_of_cursor(Order::kOldestFirst, right.substr(0, i) + "=")) << i;
  }
  for (const std::string_view text : {"", "x", "====", "c3VibWl0dGVkCg", "c3VibWl0dGVkCngK"}) {
    EXPECT_FALSE(place_of_cursor(Order::kOldestFirst, text)) << text;
  }
}

TEST(JobPage, ReadsBackUnchanged) {
  const job::Job first = full_job();
  job::Job second = full_job();
  second.spec.name = "other";

  const auto page = job_page_from_json(job_page_to_json({&first, &second}, "more"));

  ASSERT_TRUE(page) << page.error().to_string();
  EXPECT_EQ(page->jobs, (std::vector<job::Job>{first, second}));
  EXPECT_EQ(page->next, "more");
}

TEST(QueueQuery, ReadsBackUnchangedAndNamesEachFault) {
  for (const QueueQuery& query : {QueueQuery{}, QueueQuery{.limit = 7, .cursor = "k2x"}}) {
    const auto read = queue_query_from_parameters(queue_query_parameters(query));
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, query);
  }
  const auto wrong = queue_query_from_parameters({{"limit", "1001"}, {"curser", "k2x"}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().to_string(),
            "the query for the queue is invalid\n"
            "  curser: is not a parameter; did you mean 'cursor'?\n"
            "  limit: '1001' is not a number from 1 to 1000");
}

TEST(JobPage, HasNoNextFieldOnTheLastPage) {
  EXPECT_EQ(job_page_to_json({}, ""), R"({"jobs":[]})");
  EXPECT_EQ(job_page_from_json(R"({"jobs":[]})")->next, "");
}

}  // namespace
namespace {

using job::LogQuery;

TEST(LogQuery, ReadsBackUnchanged) {
  const LogQuery query{.follow = true,
                       .task = "worker-0",
                       .rank = 0,
                       .grep = "loss: [0-9]+",
                       .since = base::Time(std::chrono::nanoseconds(1)),
                       .tail = 0};

  const auto read = log_query_from_parameters(log_query_to_parameters(query));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->follow, query.follow);
  EXPECT_EQ(read->task, query.task);
  EXPECT_EQ(read->rank, query.rank);
  EXPECT_EQ(read->grep, query.grep);
  EXPECT_EQ(read->since, query.since);
  EXPECT_EQ(read->tail, query.tail);
}

TEST(LogQuery, IsEmptyByDefault) {
  EXPECT_TRUE(log_query_to_parameters({}).empty());
  const auto read = log_query_from_parameters({});
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->follow || read->task || read->rank || read->since || read->tail);
}

TEST(LogQuery, ReportsEveryFaultAtOnce) {
  const auto read = log_query_from_parameters({{"follow", "yes"},
                                               {"since", "today"},
                                               {"tail", "-1"},
                                               {"tails", "5"},
                                               {"x", ""},
                                               {"rank", "one"},
                                               {"grep", "("}});

  const std::string pattern_fault = job::LogPattern::compile("(").error().what;
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().to_string(),
            "the query for logs is invalid\n"
            "  follow: 'yes' is neither true nor false\n"
            "  grep: " +
                pattern_fault +
                "\n"
                "  rank: 'one' is not a rank; give 0 or more\n"
                "  since: 'today' is not a time such as 2026-01-31T12:34:56Z\n"
                "  tail: '-1' is not a number of lines\n"
                "  tails: is not a parameter; did you mean 'tail'?\n"
                "  x: is not a parameter");
}

}  // namespace
namespace {

using namespace std::chrono_literals;
using job::MetricQuery;
using job::MetricSeries;

const base::Time kNoon{1'700'000'000s + 1ns};

TEST(MetricWire, ReadsBackUnchanged) {
  const std::vector<MetricSeries> series{
      {"loss", "worker-0", 3, {{kNoon, 0.1}, {kNoon + 1s, -1.5e-300}}},
      {"cpu_percent", "main", {}, {}}};
  const auto read = metrics_from_json(metrics_to_json(series));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, series);
}

TEST(MetricWire, HasTheDocumentedShape) {
  EXPECT_EQ(metrics_to_json({{"loss", "main", {}, {{base::Time(1s), 0.5}}}}),
            R"({"series":[{"metric":"loss","task":"main","points":)"
            R"([{"time":"1970-01-01T00:00:01.000000000Z","value":0.5}]}]})");
}

TEST(MetricWire, RefusesOtherDocuments) {
  for (const char* text : {"", "[]", "{}", R"({"series":[{}]})", R"({"series":[{"metric":"x"}]})",
                           R"({"series":[{"metric":"x","task":"m","points":[{"time":1}]}]})"}) {
    EXPECT_FALSE(metrics_from_json(text)) << text;
  }
}

TEST(MetricQuery, ReadsBackUnchanged) {
  const MetricQuery query{.metrics = {"loss", "accuracy"},
                          .task = "worker-0",
                          .rank = 0,
                          .since = kNoon,
                          .until = kNoon + 1h,
                          .interval = 30s,
                          .last = true};
  const auto read = metric_query_from_parameters(metric_query_to_parameters(query));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, query);
  EXPECT_EQ(*metric_query_from_parameters({}), MetricQuery{});
}

TEST(MetricQuery, AcceptsAnIntervalWithAUnitOrInMilliseconds) {
  for (const auto& [text, interval] :
       std::vector<std::pair<std::string, std::chrono::milliseconds>>{
           {"30s", 30s}, {"500", 500ms}, {"500ms", 500ms}, {"2m", 2min}, {"1d", 24h}, {"0", 0ms}}) {
    const auto read = metric_query_from_parameters({{"interval", text}});
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->interval, interval) << text;
  }
}

TEST(MetricQuery, ReportsEveryFaultAtOnce) {
  Parameters parameters{{"rank", "-1"},       {"since", "today"}, {"last", "yes"},
                        {"interval", "soon"}, {"metrics", "x"},   {"metric", "1st"}};
  parameters.add("metric", "loss");
  const auto read = metric_query_from_parameters(parameters);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().to_string(),
            "the query for metrics is invalid\n"
            "  interval: 'soon' is not an interval such as 30s, or 500 in milliseconds\n"
            "  last: 'yes' is neither true nor false\n"
            "  metric: '1st' is not a metric name: use letters, digits and _./-, at most 64\n"
            "  metrics: is not a parameter; did you mean 'metric'?\n"
            "  rank: '-1' is not a rank; give 0 or more\n"
            "  since: 'today' is not a time such as 2026-01-31T12:34:56Z");
}

TEST(MetricQuery, RefusesIntervalsThatOverflow) {
  for (const char* text : {"-1", "99999999999999999999", "9999999999999", "400000d", "", "1.5"}) {
    EXPECT_FALSE(metric_query_from_parameters({{"interval", text}})) << text;
  }
}

}  // namespace
}  // namespace muster::api
