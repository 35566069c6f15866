#include "service/notifying_store.h"

#include <gtest/gtest.h>

#include "base/fake_random.h"
#include "store/memory_store.h"

namespace muster::service {
namespace {

using job::Happening;
using job::Job;
using job::Phase;
using Texts = std::vector<std::string>;

/// A store that fails on request.
class Fickle : public store::MemoryStore {
 public:
  base::Result<void> commit(const store::Batch& batch) override {
    if (fails) return base::Error{.code = base::ErrorCode::kUnavailable, .what = "no"};
    return store::MemoryStore::commit(batch);
  }
  bool fails = false;
};

class NotifyingStoreTest : public testing::Test {
 protected:
  NotifyingStoreTest() {
    notifications_.add({.project = "lab", .url = "https://h", .on = job::all_happenings()}, {},
                       [](const auto& added) { ASSERT_TRUE(added); });
  }

  base::Result<void> adds(const Job& job) {
    return store_.commit({.new_jobs = {{.job = &job, .idempotency_key = ""}}});
  }
  base::Result<void> changes(const Job& job) { return store_.commit({.changed_jobs = {&job}}); }

  /// The notifications in the wrapped store, in order.
  Texts drafted() {
    std::map<base::Time, std::string> in_order;
    const store::Contents contents = *kept_.load();
    for (const job::Delivery& each : contents.deliveries) {
      in_order[each.created] = each.job + " " + std::string(job::to_string(each.happening));
    }
    Texts texts;
    for (const auto& [time, text] : in_order) texts.push_back(text);
    return texts;
  }

  static Job job_in(const std::string& project) {
    return {.id = "j1", .spec = {.name = "one", .project = project}};
  }

  base::EventLoop loop_;
  base::FakeClock clock_;
  base::FakeRandom random_;
  access::SecretBox box_{access::SecretBox::Key{}};
  Fickle kept_;
  notify::CommandHook hook_{loop_};
  notify::Notifications notifications_{{.loop = loop_,
                                        .clock = clock_,
                                        .random = random_,
                                        .box = box_,
                                        .send = [](const auto&, const auto&) {},
                                        .check = [](const auto&, auto done) { done({}); },
                                        .keep =
                                            [this](const notify::NotificationChanges& changes) {
                                              return kept_.commit(batch_of(changes));
                                            },
                                        .has_project = [](const std::string&) { return true; }}};
  NotifyingStore store_{kept_, notifications_, hook_};
};

TEST_F(NotifyingStoreTest, NotifiesOfTheEndOfAnArrayAndNotOfItsMembers) {
  Job member = job_in("lab");
  member.origin = job::JobOrigin{.kind = job::JobOrigin::Kind::kArray, .name = "all", .id = "a1"};
  ASSERT_TRUE(adds(member));
  member.phase = Phase::kFailed;
  ASSERT_TRUE(store_.commit({.changed_jobs = {&member},
                             .ends = {{.kind = "array",
                                       .id = "a1",
                                       .name = "all",
                                       .project = "lab",
                                       .phase = Phase::kFailed,
                                       .counts = {{"failed", 1}}}}}));

  EXPECT_EQ(drafted(), Texts{"all failed"});
  const store::Contents contents = *kept_.load();
  EXPECT_EQ(contents.deliveries.front().object, "array");
  EXPECT_NE(contents.deliveries.front().body.find("\"event\":\"array.failed\""), std::string::npos);
}

TEST_F(NotifyingStoreTest, NotifiesOfMembersIfTheSubscriptionAsksForThem) {
  notifications_.add(
      {.project = "lab", .url = "https://h", .on = {Happening::kFailed}, .members = true}, {},
      [](const auto& added) { ASSERT_TRUE(added); });
  Job trial = job_in("lab");
  trial.origin = job::JobOrigin{.kind = job::JobOrigin::Kind::kSweep, .name = "lr", .id = "s1"};
  ASSERT_TRUE(adds(trial));
  trial.phase = Phase::kFailed;
  ASSERT_TRUE(changes(trial));
  EXPECT_EQ(drafted(), Texts{"one failed"});
}

TEST_F(NotifyingStoreTest, CommitsNotificationsTogetherWithTheirEvents) {
  Job job = job_in("lab");
  ASSERT_TRUE(adds(job));
  EXPECT_EQ(drafted(), Texts{});

  job.phase = Phase::kRunning;
  job.started = clock_.now();
  ASSERT_TRUE(changes(job));
  EXPECT_EQ(drafted(), Texts{"one started"});
  job.reason = job::Remark{"still runs"};
  ASSERT_TRUE(changes(job));
  job.phase = Phase::kSucceeded;
  ASSERT_TRUE(changes(job));
  ASSERT_TRUE(changes(job));  // for example, labels of an ended job
  EXPECT_EQ(drafted(), (Texts{"one started", "one succeeded"}));
}

TEST_F(NotifyingStoreTest, SendsNothingForAFailedCommitAndEverythingAfterASuccessfulOne) {
  Job job = job_in("lab");
  ASSERT_TRUE(adds(job));
  kept_.fails = true;
  job.phase = Phase::kRunning;
  job.started = clock_.now();
  EXPECT_FALSE(changes(job));
  EXPECT_EQ(notifications_.waiting(), 0U);

  kept_.fails = false;
  job.phase = Phase::kFailed;
  ASSERT_TRUE(changes(job));
  EXPECT_EQ(drafted(), (Texts{"one started", "one failed"}));
  EXPECT_EQ(notifications_.waiting(), 2U);
}

TEST_F(NotifyingStoreTest, RemembersNotifiedStatesAfterARestart) {
  Job job = job_in("lab");
  job.phase = Phase::kRunning;
  job.started = clock_.now();
  ASSERT_TRUE(kept_.commit({.new_jobs = {{.job = &job, .idempotency_key = ""}}}));
  NotifyingStore later(kept_, notifications_, hook_);
  ASSERT_TRUE(later.load());

  job.phase = Phase::kStopped;
  ASSERT_TRUE(later.commit({.changed_jobs = {&job}}));
  EXPECT_EQ(drafted(), Texts{"one stopped"});
}

TEST_F(NotifyingStoreTest, RemovesTheSubscriptionsOfADeletedProject) {
  Job job = job_in("lab");
  job.phase = Phase::kFailed;
  ASSERT_TRUE(adds(job));
  ASSERT_EQ(drafted(), Texts{"one failed"});
  kept_.fails = true;
  EXPECT_FALSE(store_.commit({.removed_projects = {"lab"}}));
  EXPECT_EQ(notifications_.subscriptions("lab").size(), 1U);

  kept_.fails = false;
  ASSERT_TRUE(store_.commit({.removed_projects = {"lab"}}));
  EXPECT_TRUE(notifications_.subscriptions("lab").empty());
  EXPECT_TRUE(kept_.load()->subscriptions.empty());
  EXPECT_EQ(drafted(), Texts{});
}

TEST_F(NotifyingStoreTest, IgnoresOtherProjects) {
  Job job = job_in("other");
  job.phase = Phase::kFailed;
  ASSERT_TRUE(adds(job));
  EXPECT_EQ(drafted(), Texts{});
}

}  // namespace
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

/// Refuses commits on request.
class RefusingStore : public store::MemoryStore {
 public:
  Result<void> commit(const store::Batch&) override { return outcome; }
  Result<void> outcome;
};

class FakeLeadership : public store::Leadership {
 public:
  Result<bool> try_to_lead(const std::string&) override { return false; }
  using Holder = std::optional<store::LeadHolder>;
  static Holder self() { return {{.address = "https://both", .is_self = true}}; }
  /// It gives the same address.
  static Holder another() { return {{.address = "https://both", .is_self = false}}; }

  Result<Holder> leader() override { return who; }
  Result<Holder> who = self();
};

class WatchedStoreTest : public testing::Test {
 protected:
  WatchedStore watched(store::Leadership* leadership) {
    return WatchedStore(store_, leadership, [this] { ++lost_; });
  }
  static Error error(ErrorCode code) { return {.code = code, .what = "no"}; }

  RefusingStore store_;
  FakeLeadership leadership_;
  int lost_ = 0;
};

TEST_F(WatchedStoreTest, ReportsOnceThatAnotherServerLeads) {
  WatchedStore store = watched(&leadership_);
  store_.outcome = error(ErrorCode::kRefused);
  leadership_.who = FakeLeadership::another();
  EXPECT_FALSE(store.commit({}));
  EXPECT_FALSE(store.commit({}));
  EXPECT_EQ(lost_, 1);
}

TEST_F(WatchedStoreTest, ReportsThatAnotherServerHasLedInBetween) {
  WatchedStore store = watched(&leadership_);
  store_.outcome = error(ErrorCode::kRefused);
  leadership_.who = FakeLeadership::Holder();
  EXPECT_FALSE(store.commit({}));
  EXPECT_EQ(lost_, 1);
}

TEST_F(WatchedStoreTest, AReadOnlyDatabaseIsNotALossOfTheLead) {
  WatchedStore store = watched(&leadership_);
  store_.outcome = error(ErrorCode::kRefused);
  EXPECT_FALSE(store.commit({}));
  EXPECT_EQ(lost_, 0);
}

TEST_F(WatchedStoreTest, AnUnreachableDatabaseIsNotALossOfTheLead) {
  WatchedStore store = watched(&leadership_);
  store_.outcome = error(ErrorCode::kUnavailable);
  leadership_.who = error(ErrorCode::kUnavailable);
  EXPECT_FALSE(store.commit({}));
  store.look();
  EXPECT_EQ(lost_, 0);
}

TEST_F(WatchedStoreTest, ACheckNoticesALossWithoutACommit) {
  WatchedStore store = watched(&leadership_);
  store.look();
  leadership_.who = FakeLeadership::Holder();
  store.look();
  EXPECT_EQ(lost_, 0);
  leadership_.who = FakeLeadership::another();
  store.look();
  EXPECT_EQ(lost_, 1);
}

TEST_F(WatchedStoreTest, AStoreOfASingleServerNeverLosesTheLead) {
  WatchedStore store = watched(nullptr);
  store_.outcome = error(ErrorCode::kRefused);
  EXPECT_FALSE(store.commit({}));
  store.look();
  EXPECT_EQ(lost_, 0);
}

}  // namespace
}  // namespace muster::service
