// Connections to PostgreSQL that break, and servers that are restarted: nothing is lost or doubled.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "store/test_postgres_store.h"
#include "store/test_proxy.h"

namespace muster::store {
namespace {

using base::ErrorCode;
using job::Job;
using Cut = TestProxy::Cut;

struct Break {
  const char* name;
  Cut cut;
  bool is_gone_for_a_while;
};

class PostgresBreaks : public Postgres, public testing::WithParamInterface<Break> {};

TEST_P(PostgresBreaks, LosesAndDoublesNothing) {
  const Break& how = GetParam();
  TestProxy proxy(folder_, server_.socket());
  const auto store = leading(server_.through(url_, folder_));
  Job known = full_job("j1", "one");
  const Job goes = full_job("j2", "two");
  const Job fresh = full_job("j3", "three");
  ASSERT_TRUE(store->commit(
      {.new_jobs = {{.job = &known}, {.job = &goes, .idempotency_key = "k2"}},
       .objects = {full_object("array", "a1", "one"), full_object("array", "a2", "two")},
       .projects = {full_project("a", 1), full_project("b", 2)},
       .cordoned_nodes = {"n1", "n2"},
       .users = {full_user("ada"), full_user("bob")},
       .tokens = {full_token("t1"), full_token("t2")},
       .secrets = {full_secret("lab", "A"), full_secret("lab", "B")},
       .subscriptions = {full_subscription("s1")},
       .deliveries = {full_delivery("d1"), full_delivery("d2")},
       .audit = {full_record(1)}}));
  ASSERT_TRUE(store->load_packed());  // as a server does; from here on it recognises new keys
  const Contents before = *store->load();
  known.attempt = 77;
  Object changed = full_object("array", "a1", "one");
  changed.document = "later";
  access::User ada = full_user("ada");
  ada.projects.clear();
  const Batch batch{.new_jobs = {{.job = &fresh, .idempotency_key = "k3"}},
                    .changed_jobs = {&known},
                    .removed_jobs = {"j2"},
                    .objects = {changed, full_object("array", "a3", "two")},
                    .removed_objects = {{.kind = "array", .id = "a2"}},
                    .projects = {full_project("a", 7), full_project("c", 3)},
                    .removed_projects = {"b"},
                    .cordoned_nodes = {"n3"},
                    .uncordoned_nodes = {"n1"},
                    .users = {ada, full_user("eve")},
                    .removed_users = {"bob"},
                    .tokens = {full_token("t3")},
                    .removed_tokens = {"t1"},
                    .secrets = {full_secret("vision", "A")},
                    .removed_secrets = {{.project = "lab", .name = "A"}},
                    .subscriptions = {full_subscription("s2")},
                    .removed_subscriptions = {"s1"},
                    .deliveries = {full_delivery("d3")},
                    .removed_deliveries = {"d1"},
                    .audit = {full_record(2), full_record(3)}};

  proxy.cut(how.cut, how.is_gone_for_a_while);
  const auto done = store->commit(batch);
  proxy.refuse(false);

  const Contents after = *store->load();
  if (how.is_gone_for_a_while) {
    // Reported as failed, so nothing of it exists, whatever happened to the COMMIT.
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(after.jobs, before.jobs);
    EXPECT_EQ(after.objects, before.objects);
    EXPECT_EQ(after.projects, before.projects);
    EXPECT_EQ(after.cordoned_nodes, before.cordoned_nodes);
    EXPECT_EQ(after.users, before.users);
    EXPECT_EQ(after.tokens, before.tokens);
    EXPECT_EQ(after.secrets, before.secrets);
    EXPECT_EQ(after.subscriptions, before.subscriptions);
    EXPECT_EQ(after.deliveries, before.deliveries);
    EXPECT_EQ(store->audit({})->size(), 1U);
    EXPECT_EQ(*store->find_by_key("k2"), "j2");
    EXPECT_EQ(*store->find_by_key("k3"), std::nullopt);
    ASSERT_TRUE(store->commit(batch));  // and a later one succeeds
  } else {
    ASSERT_TRUE(done) << done.error().to_string();
  }
  const Contents final = *store->load();
  EXPECT_EQ(final.jobs, (std::vector<Job>{known, fresh}));
  EXPECT_EQ(final.users, (std::vector<access::User>{ada, full_user("eve")}));
  EXPECT_EQ(final.objects, (std::vector<Object>{changed, full_object("array", "a3", "two")}));
  EXPECT_EQ(final.projects.size(), 2U);
  EXPECT_EQ(final.subscriptions, std::vector<job::Subscription>{full_subscription("s2")});
  EXPECT_EQ(final.deliveries,
            (std::vector<job::Delivery>{full_delivery("d2"), full_delivery("d3")}));
  EXPECT_EQ(final.cordoned_nodes, (Names{"n2", "n3"}));
  EXPECT_EQ(*store->audit({}),
            (std::vector<access::AuditRecord>{full_record(3), full_record(2), full_record(1)}));
}

TEST_P(PostgresBreaks, LosesAndDoublesNoneOfManyNewJobs) {
  constexpr size_t kJobs = 600;  // several statements
  const Break& how = GetParam();
  TestProxy proxy(folder_, server_.socket());
  const auto store = leading(server_.through(url_, folder_));
  ASSERT_TRUE(store->load_packed());
  ASSERT_TRUE(store->commit({.audit = {full_record(1)}}));
  std::vector<Job> jobs;
  Names expected;
  for (size_t i = 0; i < kJobs; ++i) {
    expected.push_back("j" + std::to_string(i));
    jobs.push_back({.id = expected.back(), .spec = {.name = "n" + std::to_string(i)}});
  }
  Batch batch;
  for (const Job& job : jobs) {
    batch.new_jobs.push_back({.job = &job, .idempotency_key = job.id});
    batch.audit.push_back(full_record(batch.audit.size() + 2));
  }

  proxy.cut(how.cut, how.is_gone_for_a_while);
  const auto done = store->commit(batch);
  proxy.refuse(false);

  EXPECT_EQ(done.ok(), !how.is_gone_for_a_while);
  if (!done) {
    EXPECT_EQ(done.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(*store->find_by_key("j599"), std::nullopt);
    EXPECT_EQ(ids(*store), Names{});
    EXPECT_EQ(store->audit({})->size(), 1U);
    ASSERT_TRUE(store->commit(batch));
  }
  EXPECT_EQ(ids(*store), expected);
  EXPECT_EQ(store->audit({.limit = 1})->front().number, kJobs + 1);
  EXPECT_EQ(*store->find_by_key("j599"), "j599");
}

INSTANTIATE_TEST_SUITE_P(All, PostgresBreaks,
                         testing::Values(Break{"BeforeCommit", Cut::kBeforeCommit, false},
                                         Break{"AfterCommit", Cut::kAfterCommit, false},
                                         Break{"BeforeCommitForAWhile", Cut::kBeforeCommit, true},
                                         Break{"AfterCommitForAWhile", Cut::kAfterCommit, true}),
                         [](const auto& how) { return std::string(how.param.name); });

TEST_F(Postgres, LeavesACommitWithUnknownResultToTheNextLeader) {
  TestProxy proxy(folder_, server_.socket());
  const auto first = leading(server_.through(url_, folder_));
  const auto second = open(url_);
  proxy.cut(Cut::kAfterCommit, true);
  ASSERT_FALSE(add(*first, full_job("j1", "one")));
  while (!*second->try_to_lead("https://second")) {
  }

  proxy.refuse(false);

  // The commit had succeeded, and the second server continued with it.
  EXPECT_EQ(ids(*second), Names{"j1"});
  EXPECT_EQ(ids(*first), Names{"j1"});
  EXPECT_EQ(add(*first, full_job("j2", "two")).error().code, ErrorCode::kRefused);
}

TEST_F(Postgres, KeepsReportedCommitsWhenTheServerIsRestartedUnderLoad) {
  constexpr int kJobs = 40;
  const auto store = leading(url_);
  std::atomic<int> reported = 0;
  std::string wrong;
  std::jthread client([&] {
    for (int number = 0; number < kJobs && wrong.empty(); ++number) {
      const Job job = full_job("j" + std::to_string(number), "n" + std::to_string(number));
      // A commit reported as failed does not exist: otherwise its id would be in use.
      const auto done = once_available([&] { return add(*store, job); });
      if (!done) wrong = done.error().to_string();
      ++reported;
      reported.notify_all();
    }
    reported = kJobs;
    reported.notify_all();
  });

  for (const int restart_at : {5, 15, 25}) {
    for (int now = reported; now < restart_at; now = reported) reported.wait(now);
    server_.stop_at_once();
    server_.start();
  }
  client.join();

  EXPECT_EQ(wrong, "");
  Names expected;
  for (int number = 0; number < kJobs; ++number) expected.push_back("j" + std::to_string(number));
  EXPECT_EQ(ids(*store), expected);
}

}  // namespace
}  // namespace muster::store
