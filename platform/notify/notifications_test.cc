#include "notify/notifications.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/fake_random.h"
#include "notify/courier.h"
#include "notify/test_values.h"

namespace muster::notify {
namespace {

using base::ErrorCode;
using job::Delivery;
using job::Happening;
using job::Subscription;
using std::chrono::hours;
using std::chrono::seconds;

const access::Actor kAda{.user = "ada"};

/// Notifications whose receivers answer when and as the test decides, and a map as the store.
class Post : public testing::Test {
 protected:
  struct Sent {
    OutgoingNotification errand;
    std::function<void(DeliveryOutcome)> done;
    const std::string& id() const { return errand.headers.at(kDeliveryHeader); }
    const std::string& host() const { return errand.receiver.host; }
  };

  Post() { start(); }

  void start() {
    const bool is_restart = notifications_ != nullptr;
    notifications_ = std::make_unique<Notifications>(Notifications::Dependencies{
        .loop = loop_,
        .clock = clock_,
        .random = random_,
        .box = box_,
        .send = [this](OutgoingNotification errand,
                       auto done) { sent_.push_back({std::move(errand), std::move(done)}); },
        .check =
            [this](const Receiver&, auto done) {
              if (!checks_wait_) return done(allowed_);
              checks_.push_back(std::move(done));
            },
        .keep = [this](const NotificationChanges& changes) { return keep(changes); },
        .has_project = [this](const std::string&) { return has_project_; }});
    if (!is_restart) return;
    sent_.clear();
    std::vector<Subscription> subscriptions;
    for (const auto& [id, each] : subscriptions_) subscriptions.push_back(each);
    std::vector<Delivery> deliveries;
    for (const auto& [id, each] : deliveries_) deliveries.push_back(each);
    notifications_->load(std::move(subscriptions), std::move(deliveries));
  }

  Result<void> keep(const NotificationChanges& changes) {
    if (!store_works_) return base::Error{.code = ErrorCode::kUnavailable, .what = "store"};
    for (const std::string& id : changes.removed_subscriptions) subscriptions_.erase(id);
    for (const Subscription& each : changes.subscriptions) subscriptions_[each.id] = each;
    for (const std::string& id : changes.removed_deliveries) deliveries_.erase(id);
    for (const Delivery& each : changes.deliveries) deliveries_[each.id] = each;
    for (const access::AuditRecord& each : changes.audit) audit_.push_back(each.action);
    return {};
  }

  /// Runs all work that waits on the loop.
  void settle() {
    for (int round = 0; round < 3; ++round) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
    }
  }

  Result<IssuedSubscription> add(SubscriptionRequest request) {
    Result<IssuedSubscription> added = base::Error{.what = "no answer"};
    notifications_->add(std::move(request), kAda,
                        [&](Result<IssuedSubscription> result) { added = std::move(result); });
    return added;
  }
  std::string subscribe(const std::string& host, const std::string& project = "lab") {
    const auto added = add({.project = project,
                            .url = "https://" + host + "/hook",
                            .on = {Happening::kFailed, Happening::kSucceeded}});
    EXPECT_TRUE(added) << added.error().to_string();
    return added->subscription.id;
  }

  static job::Job job_named(const std::string& name, const std::string& project = "lab") {
    return {.id = "j-" + name, .spec = {.name = name, .project = project}};
  }

  std::vector<Delivery> drafts_of(const job::Job& job, Happening happening = Happening::kFailed) {
    DraftCounts drafted;
    return notifications_->draft(job, happening, drafted);
  }

  /// Commits an event, as the store does.
  void happens(const job::Job& job, Happening happening = Happening::kFailed) {
    std::vector<Delivery> drafts = drafts_of(job, happening);
    ASSERT_TRUE(keep({.deliveries = drafts}));
    notifications_->take(std::move(drafts));
  }

  void answer(const DeliveryOutcome& outcome) {
    ASSERT_FALSE(sent_.empty());
    const Sent next = std::move(sent_.front());
    sent_.pop_front();
    next.done(outcome);
    settle();
  }
  void answer(int status) { answer(DeliveryOutcome{.status = status}); }

  void pass(std::chrono::nanoseconds time) {
    clock_.advance(time);
    notifications_->look();
    settle();
  }

  std::vector<Delivery> dead(const std::string& project = "lab") {
    return notifications_->dead(project);
  }

  base::EventLoop loop_;
  base::FakeClock clock_;
  base::FakeRandom random_;
  access::SecretBox box_{access::SecretBox::Key{}};
  Result<void> allowed_;
  bool checks_wait_ = false;
  std::deque<std::function<void(Result<void>)>> checks_;  ///< under way
  bool store_works_ = true;
  bool has_project_ = true;
  std::map<std::string, Subscription> subscriptions_;
  std::map<std::string, Delivery> deliveries_;
  Texts audit_;
  std::deque<Sent> sent_;
  std::unique_ptr<Notifications> notifications_;
};

TEST_F(Post, SendsTheRequestedEventsAndRemovesADeliveryOnceItHasArrived) {
  const auto added = add(
      {.project = "lab", .url = "https://hooks.example.com/hook?x=1", .on = {Happening::kFailed}});
  ASSERT_TRUE(added);

  happens(job_named("one"));
  happens(job_named("one"), Happening::kSucceeded);
  happens(job_named("one", "other"));

  ASSERT_EQ(sent_.size(), 1U);
  const OutgoingNotification& errand = sent_.front().errand;
  EXPECT_EQ(errand.receiver.target, "/hook?x=1");
  EXPECT_EQ(errand.headers.at("muster-event"), "job.failed");
  EXPECT_EQ(errand.headers.at("muster-signature"),
            signature_of(added->key, clock_.now(), errand.body));
  EXPECT_NE(errand.body.find(sent_.front().id()), std::string::npos);
  EXPECT_EQ(deliveries_.size(), 1U);
  answer(204);
  EXPECT_TRUE(deliveries_.empty());
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(notifications_->waiting(), 0U);
}

TEST_F(Post, SendsOnlyEventsOfTheSelectedJobs) {
  ASSERT_TRUE(add({.project = "lab",
                   .url = "https://hooks.example.com",
                   .on = {Happening::kFailed},
                   .job = "train-*",
                   .labels = {{"team", "vision"}}}));
  job::Job job = job_named("train-1");

  EXPECT_TRUE(drafts_of(job).empty());
  job.spec.labels = {{"team", "audio"}};
  EXPECT_TRUE(drafts_of(job).empty());
  job.spec.labels = {{"team", "vision"}, {"nightly", ""}};
  EXPECT_EQ(drafts_of(job).size(), 1U);
  job.spec.name = "drain-1";
  EXPECT_TRUE(drafts_of(job).empty());
}

TEST_F(Post, ComesBackWithTheSameIdUntilItHasArrived) {
  subscribe("hooks.example.com");
  happens(job_named("one"));
  const std::string id = sent_.front().id();
  const std::string signature = sent_.front().errand.headers.at(kSignatureHeader);

  answer(500);
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(deliveries_.at(id).attempts, 1);
  EXPECT_EQ(deliveries_.at(id).fault, "answered 500");
  pass(seconds(4));
  EXPECT_TRUE(sent_.empty());  // the pause is at least half of the first pause
  pass(seconds(6));
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_.front().id(), id);
  EXPECT_NE(sent_.front().errand.headers.at(kSignatureHeader),
            signature);  // the time is signed, too
  answer(DeliveryOutcome{
      .fault = base::Error{.code = ErrorCode::kUnavailable, .what = "nobody answers"}});
  EXPECT_EQ(deliveries_.at(id).fault, "nobody answers");
  pass(seconds(20));
  answer(200);
  EXPECT_TRUE(deliveries_.empty());
}

TEST_F(Post, KeepsItsPausesAfterTheClockWasSetBack) {
  subscribe("hooks.example.com");
  happens(job_named("one"));
  answer(200);
  clock_.advance(-hours(24));
  happens(job_named("two"));
  ASSERT_EQ(sent_.size(), 1U);  // at once, although its time is ahead of the clock
  const std::string id = sent_.front().id();

  answer(500);
  EXPECT_TRUE(sent_.empty());
  happens(job_named("three"));
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_NE(sent_.front().id(), id);
  answer(200);
  EXPECT_TRUE(sent_.empty());
  pass(seconds(10));
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_.front().id(), id);
}

TEST_F(Post, IsADeadLetterAfterADay) {
  const std::string subscription = subscribe("hooks.example.com");
  happens(job_named("one"));
  int attempts = 0;
  while (!sent_.empty()) {
    ++attempts;
    answer(503);
    if (const auto next = notifications_->next_due()) pass(*next - clock_.now());
  }

  ASSERT_EQ(dead().size(), 1U);
  EXPECT_EQ(dead()[0].attempts, attempts);
  EXPECT_GT(attempts, 24);
  EXPECT_LT(attempts, 64);
  EXPECT_EQ(dead()[0].fault, "answered 503");
  EXPECT_EQ(dead()[0].subscription, subscription);
  EXPECT_TRUE(deliveries_.at(dead()[0].id).dead);
  EXPECT_EQ(notifications_->waiting(), 0U);
}

TEST_F(Post, IsADeadLetterAtOnceWhereItWouldBeRefusedAgain) {
  subscribe("hooks.example.com");
  happens(job_named("one"));
  answer(DeliveryOutcome{.status = 404, .answer = "no\nsuch \x1b[31mhook"});

  ASSERT_EQ(dead().size(), 1U);
  EXPECT_EQ(dead()[0].fault, "answered 404: no such  [31mhook");
}

TEST_F(Post, IsADeadLetterAtOnceWhereItsAddressIsForbiddenByNow) {
  subscribe("hooks.example.com");
  happens(job_named("one"));
  answer(DeliveryOutcome{.fault = base::Error{.what = "no notification goes to 10.0.0.1"},
                         .is_forbidden = true});

  ASSERT_EQ(dead().size(), 1U);
  EXPECT_EQ(dead()[0].fault, "no notification goes to 10.0.0.1");
}

TEST_F(Post, SendsNothingToAReceiverThatAnsweredGoneUntilAPingArrives) {
  const std::string id = subscribe("hooks.example.com");
  happens(job_named("one"));
  happens(job_named("two"));
  answer(410);

  EXPECT_EQ(dead().size(), 2U);
  EXPECT_TRUE(subscriptions_.at(id).gone);
  EXPECT_TRUE(sent_.empty());
  happens(job_named("three"));
  EXPECT_EQ(dead().size(), 2U);
  EXPECT_EQ(notifications_->retry("lab", {dead()[0].id}, kAda).error().code, ErrorCode::kConflict);
  EXPECT_EQ(*notifications_->retry("lab", {}, kAda), 0);

  notifications_->test("lab", id, kAda, [](const Result<DeliveryOutcome>& outcome) {
    EXPECT_EQ(outcome->status, 200);
  });
  answer(200);
  EXPECT_FALSE(subscriptions_.at(id).gone);
  EXPECT_EQ(*notifications_->retry("lab", {}, kAda), 2);
}

TEST_F(Post, BringsADeadLetterOnItsWayAgain) {
  subscribe("hooks.example.com");
  happens(job_named("one"));
  const std::string id = sent_.front().id();
  answer(400);
  pass(hours(48));

  EXPECT_EQ(notifications_->retry("lab", {id, "unknown"}, kAda).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(notifications_->retry("other", {id}, kAda).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(*notifications_->retry("lab", {id}, kAda), 1);

  EXPECT_TRUE(dead().empty());
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_.front().id(), id);
  answer(500);  // the delivery may be retried for another day
  EXPECT_TRUE(dead().empty());
  EXPECT_EQ(deliveries_.at(id).attempts, 1);
}

TEST_F(Post, SendsOneDeliveryOfASubscriptionAtATimeWithoutDelayingOtherSubscriptions) {
  subscribe("slow.example.com");
  subscribe("quick.example.com");
  happens(job_named("one"));
  happens(job_named("two"));

  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_NE(sent_[0].host(), sent_[1].host());
  if (sent_.front().host() == "slow.example.com") std::swap(sent_[0], sent_[1]);
  answer(200);
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0].host(), "slow.example.com");
  EXPECT_EQ(sent_[1].host(), "quick.example.com");
}

TEST_F(Post, HasOnlySomeDeliveriesOfAProjectUnderWay) {
  for (int i = 0; i < 6; ++i) subscribe("h" + std::to_string(i) + ".example.com");
  subscribe("other.example.com", "other");
  happens(job_named("one"));
  happens(job_named("one", "other"));

  ASSERT_EQ(sent_.size(), Notifications::kMostUnderWay + 1);
  EXPECT_EQ(sent_.back().host(), "other.example.com");
  answer(500);
  EXPECT_EQ(sent_.size(), Notifications::kMostUnderWay + 1);
}

TEST_F(Post, KeepsABoundedNumberWaitingAndDead) {
  subscribe("hooks.example.com");
  constexpr size_t kMany = 2 * Notifications::kMostWaiting + 500;
  for (size_t i = 0; i < kMany; ++i) happens(job_named("one"));
  settle();

  EXPECT_EQ(notifications_->waiting(),
            Notifications::kMostWaiting + 1);  // and the delivery under way
  EXPECT_EQ(dead().size(), Notifications::kMostDead);
  EXPECT_EQ(deliveries_.size(), Notifications::kMostWaiting + 1 + Notifications::kMostDead);
  EXPECT_NE(dead()[0].fault.find("already wait for this receiver"), std::string::npos);
}

TEST_F(Post, KeepsTheBoundWithinOneCommit) {
  subscribe("hooks.example.com");
  DraftCounts drafted;
  std::vector<Delivery> drafts;
  for (size_t i = 0; i < Notifications::kMostWaiting + 2; ++i) {
    for (Delivery& each : notifications_->draft(job_named("one"), Happening::kFailed, drafted)) {
      drafts.push_back(std::move(each));
    }
  }

  EXPECT_FALSE(drafts[Notifications::kMostWaiting - 1].dead);
  EXPECT_TRUE(drafts[Notifications::kMostWaiting].dead);
  EXPECT_TRUE(drafts[Notifications::kMostWaiting + 1].dead);
  notifications_->take(std::move(drafts));
  EXPECT_EQ(notifications_->waiting(), Notifications::kMostWaiting);
  EXPECT_EQ(dead().size(), 2U);
}

TEST_F(Post, RevivesOnlyAsManyDeadLettersAsFitIntoTheQueue) {
  subscribe("hooks.example.com");
  // One is under way.
  for (size_t i = 0; i < Notifications::kMostWaiting + 4; ++i) happens(job_named("one"));
  ASSERT_EQ(dead().size(), 3U);
  const std::string newest = dead()[0].id;
  const std::string oldest = dead()[2].id;
  EXPECT_EQ(notifications_->retry("lab", {oldest}, kAda).error().code, ErrorCode::kConflict);
  EXPECT_EQ(notifications_->retry("lab", {}, kAda).error().code, ErrorCode::kConflict);
  answer(200);
  answer(200);

  EXPECT_EQ(*notifications_->retry("lab", {}, kAda), 2);

  ASSERT_EQ(dead().size(), 1U);
  EXPECT_EQ(dead()[0].id, newest);
  EXPECT_EQ(notifications_->waiting(), Notifications::kMostWaiting + 1);
}

TEST_F(Post, AllDeadLettersAreTriedAgainTheOldestFirst) {
  subscribe("hooks.example.com");
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) {
    happens(job_named("one"));
    ids.push_back(sent_.front().id());
    answer(400);
  }
  ASSERT_EQ(*notifications_->retry("lab", {}, kAda), 20);

  std::vector<std::string> order;
  while (!sent_.empty()) {
    order.push_back(sent_.front().id());
    answer(200);
  }

  EXPECT_EQ(order, ids);
}

/// The loop was busy when the timer of the first project expired.
TEST_F(Post, RetryOfAnotherProjectIsNotLostWhenItsTimerHasExpired) {
  subscribe("a.example.com", "other");
  subscribe("b.example.com");
  happens(job_named("one", "other"));
  answer(503);
  ASSERT_TRUE(sent_.empty());
  clock_.advance(*notifications_->next_due() - clock_.now());

  happens(job_named("one"));
  for (int round = 0; round < 1000 && sent_.size() < 2; ++round) settle();

  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0].host(), "b.example.com");
  EXPECT_EQ(sent_[1].host(), "a.example.com");
}

/// The quick receiver is subscribed before, between or after the slow ones, so that its id comes
/// first, last or in the middle.
TEST_F(Post, SlowReceiversOfAProjectLeaveTurnsToOthers) {
  constexpr int kSlow = 5;
  constexpr int kEvents = 10;
  for (int place = 0; place <= kSlow; ++place) {
    const std::string project = "p" + std::to_string(place);
    for (int i = 0; i <= kSlow; ++i) {
      subscribe((i == place ? "quick" : "slow" + std::to_string(i)) + ".example.com", project);
    }
    for (int i = 0; i < kEvents; ++i) happens(job_named("one", project));

    int arrived = 0;
    int timeouts = 0;
    while (arrived < kEvents && timeouts <= kSlow) {
      const auto quick = std::find_if(sent_.begin(), sent_.end(), [](const Sent& each) {
        return each.host() == "quick.example.com";
      });
      if (quick == sent_.end()) {
        ++timeouts;
        answer(DeliveryOutcome{.fault = base::Error{.what = "no answer within 15 s"}});
        continue;
      }
      std::rotate(sent_.begin(), quick, quick + 1);
      ++arrived;
      answer(200);
    }

    EXPECT_EQ(arrived, kEvents) << place;
    notifications_->project_is_gone(project);
    while (!sent_.empty()) answer(200);
  }
}

TEST_F(Post, AReceiverThatHasFailedIsTriedAgainBesideBusyReceivers) {
  subscribe("failed.example.com");
  happens(job_named("one"));
  answer(503);
  for (int i = 0; i < 4; ++i) subscribe("quick" + std::to_string(i) + ".example.com");
  pass(std::chrono::hours(1));
  for (int i = 0; i < 10; ++i) happens(job_named("one"));

  const auto is_tried = [&] {
    return std::any_of(sent_.begin(), sent_.end(),
                       [](const Sent& each) { return each.host() == "failed.example.com"; });
  };
  for (int i = 0; i < 5 && !is_tried(); ++i) answer(200);

  EXPECT_TRUE(is_tried());
}

TEST_F(Post, WhoseReceiversAllFailAreTriedInTurn) {
  for (int i = 0; i < 5; ++i) subscribe("h" + std::to_string(i) + ".example.com");
  for (int i = 0; i < 10; ++i) happens(job_named("one"));

  std::map<std::string, int> tries;
  for (int i = 0; i < 25; ++i) {
    ++tries[sent_.front().host()];
    answer(503);
  }

  EXPECT_EQ(tries.size(), 5U);
  for (const auto& [host, count] : tries) EXPECT_EQ(count, 5) << host;
}

TEST_F(Post, WakesForADeliveryAlthoughAnotherProjectHasNoRoomForItsOwn) {
  subscribe("other.example.com", "other");
  happens(job_named("one", "other"));
  answer(500);
  for (int i = 0; i < 6; ++i) subscribe("h" + std::to_string(i) + ".example.com");
  happens(job_named("one"));  // two deliveries are due and not sent

  const auto next = notifications_->next_due();

  ASSERT_TRUE(next);
  EXPECT_GT(*next, clock_.now());
}

TEST_F(Post, ForgetsDeadLettersAfterAWeek) {
  subscribe("hooks.example.com");
  happens(job_named("one"));
  answer(400);
  pass(Notifications::kDeadAreKept);
  EXPECT_EQ(dead().size(), 1U);
  pass(seconds(1));

  EXPECT_TRUE(dead().empty());
  EXPECT_TRUE(deliveries_.empty());
}

TEST_F(Post, ContinuesAfterARestart) {
  const std::string subscription = subscribe("hooks.example.com");
  happens(job_named("one"));
  const std::string failed = sent_.front().id();
  answer(500);
  happens(job_named("two"));  // being sent when the server is killed
  const std::string under_way = sent_.front().id();

  start();

  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_.front().id(), under_way);
  answer(200);
  pass(seconds(10));
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_.front().id(), failed);
  answer(200);
  EXPECT_TRUE(deliveries_.empty());
  EXPECT_EQ(notifications_->subscriptions("lab").front().id, subscription);
}

TEST_F(Post, CountsNoAttemptThatTheLeavingServerGaveUp) {
  subscribe("hooks.example.com");
  happens(job_named("one"));
  const std::string id = sent_.front().id();
  const Sent given_up = std::move(sent_.front());
  sent_.clear();
  given_up.done(DeliveryOutcome{.fault = base::Error{.what = "the server is shutting down"},
                                .is_cancelled = true});

  EXPECT_EQ(deliveries_.at(id).attempts, 0);
  EXPECT_TRUE(dead().empty());
}

TEST_F(Post, StoresTheOutcomeOfADeliveryOnceTheStoreWorksAgain) {
  subscribe("hooks.example.com");
  happens(job_named("one"));
  store_works_ = false;
  answer(200);
  EXPECT_EQ(deliveries_.size(), 1U);

  store_works_ = true;
  happens(job_named("two"));
  answer(200);
  EXPECT_TRUE(deliveries_.empty());
}

TEST_F(Post, RemovesASubscriptionWithAllThatWasForIt) {
  const std::string id = subscribe("hooks.example.com");
  happens(job_named("one"));
  happens(job_named("two"));
  answer(404);

  EXPECT_EQ(notifications_->remove("other", id, kAda).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(notifications_->remove("lab", id, kAda));

  EXPECT_TRUE(subscriptions_.empty());
  EXPECT_TRUE(deliveries_.empty());
  EXPECT_TRUE(dead().empty());
  answer(200);  // has no effect, because the delivery was removed
  EXPECT_TRUE(deliveries_.empty());
  EXPECT_EQ(notifications_->waiting(), 0U);
}

TEST_F(Post, SignsWithTheNewKeyOnceItWasRotated) {
  const auto added = add({.project = "lab", .url = "https://h", .on = {Happening::kFailed}});
  const auto rotated = notifications_->rotate("lab", added->subscription.id, kAda);
  ASSERT_TRUE(rotated);
  EXPECT_NE(rotated->key, added->key);
  EXPECT_EQ(rotated->key.size(), 64U);

  happens(job_named("one"));

  const OutgoingNotification& errand = sent_.front().errand;
  EXPECT_EQ(errand.headers.at(kSignatureHeader),
            signature_of(rotated->key, clock_.now(), errand.body));
}

TEST_F(Post, KeepsNoKeyInTheClear) {
  const auto added = add({.project = "lab", .url = "https://h", .on = {Happening::kFailed}});

  const Subscription& kept = subscriptions_.at(added->subscription.id);
  EXPECT_EQ(kept.sealed_key.find(added->key), std::string::npos);
  EXPECT_FALSE(kept.sealed_key.empty());
}

TEST_F(Post, ReportsEveryFaultOfASubscription) {
  const auto added =
      add({.project = "lab", .url = "https://user@h", .on = {}, .job = "Train [a-z]"});

  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::kInvalid);
  Texts fields;
  for (const base::Fault& fault : added.error().faults) fields.push_back(fault.field);
  EXPECT_EQ(fields, (Texts{"url", "on", "job"}));
  EXPECT_TRUE(subscriptions_.empty());
}

TEST_F(Post, RefusesLabelsThatNoJobCanHave) {
  for (const std::map<std::string, std::string>& labels :
       {std::map<std::string, std::string>{{"", "x"}},
        {{"a=b", "x"}},
        {{std::string(129, 'a'), "x"}},
        {{"team", std::string(257, 'x')}},
        {{"team", "a\nb"}}}) {
    const auto added =
        add({.project = "lab", .url = "https://h", .on = {Happening::kFailed}, .labels = labels});

    ASSERT_FALSE(added);
    ASSERT_EQ(added.error().faults.size(), 1U);
    EXPECT_EQ(added.error().faults[0].field, "labels");
  }
  EXPECT_TRUE(add({.project = "lab",
                   .url = "https://h",
                   .on = {Happening::kFailed},
                   .labels = {{std::string(128, 'a'), std::string(256, 'x')}}}));
}

TEST_F(Post, RefusesASubscriptionToAForbiddenAddress) {
  allowed_ = base::Error{.code = ErrorCode::kRefused, .what = "no"};
  EXPECT_EQ(add({.project = "lab", .url = "https://h", .on = {Happening::kFailed}}).error().code,
            ErrorCode::kRefused);
  EXPECT_TRUE(subscriptions_.empty());
}

TEST_F(Post, TakesANameWithoutAnAddressForTheCallersFault) {
  allowed_ = base::Error{.code = ErrorCode::kUnavailable, .what = "host 'h' has no address"};
  EXPECT_EQ(add({.project = "lab", .url = "https://h", .on = {Happening::kFailed}}).error().code,
            ErrorCode::kInvalid);
}

TEST_F(Post, RefusesASubscriptionOfAProjectThatWasRemovedInTheMeantime) {
  has_project_ = false;
  EXPECT_EQ(add({.project = "lab", .url = "https://h", .on = {Happening::kFailed}}).error().code,
            ErrorCode::kNotFound);
}

TEST_F(Post, HasOnlySomeChecksAndPingsOfAProjectUnderWayAndWaiting) {
  const std::string id = subscribe("hooks.example.com");
  const SubscriptionRequest request{
      .project = "lab", .url = "https://h", .on = {Happening::kFailed}};
  constexpr size_t kMost = Notifications::kMostUnderWay + Notifications::kMostProbesWaiting;
  std::vector<Result<IssuedSubscription>> answers;
  checks_wait_ = true;
  for (size_t i = 0; i < kMost + 1; ++i) {
    notifications_->add(request, kAda, [&](Result<IssuedSubscription> answer) {
      answers.push_back(std::move(answer));
    });
  }

  EXPECT_EQ(checks_.size(), Notifications::kMostUnderWay);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].error().code, ErrorCode::kExhausted);
  EXPECT_NE(base::detail_of<TooManyProbes>(answers[0].error()), nullptr);
  std::vector<ErrorCode> pings;
  notifications_->test("lab", id, kAda, [&](const Result<DeliveryOutcome>& outcome) {
    pings.push_back(outcome.error().code);
  });
  EXPECT_EQ(pings, std::vector<ErrorCode>{ErrorCode::kExhausted});
  happens(job_named("one"));
  EXPECT_TRUE(sent_.empty());  // the delivery waits for its turn, too

  while (!checks_.empty()) {
    const auto done = std::move(checks_.front());
    checks_.pop_front();
    done({});
    EXPECT_LE(checks_.size(), Notifications::kMostUnderWay);
  }
  EXPECT_EQ(answers.size(), kMost + 1);
  EXPECT_EQ(subscriptions_.size(), kMost + 1);
  ASSERT_EQ(sent_.size(), 1U);
  answer(200);
  notifications_->test("lab", id, kAda, [](const Result<DeliveryOutcome>&) {});
  EXPECT_EQ(sent_.size(), 1U);  // the refused test has left nothing behind
}

TEST_F(Post, PingsWaitForTheirTurn) {
  const std::string id = subscribe("hooks.example.com");
  for (size_t i = 1; i < Notifications::kMostUnderWay + 1; ++i) {
    subscribe("h" + std::to_string(i) + ".example.com");
  }
  happens(job_named("one"));
  ASSERT_EQ(sent_.size(), Notifications::kMostUnderWay);
  bool answered = false;
  notifications_->test("lab", id, kAda, [&](const Result<DeliveryOutcome>& outcome) {
    EXPECT_EQ(outcome->status, 204);
    answered = true;
  });
  EXPECT_EQ(sent_.size(), Notifications::kMostUnderWay);

  answer(200);
  ASSERT_EQ(sent_.size(), Notifications::kMostUnderWay);
  EXPECT_EQ(sent_.back().errand.headers.at("muster-event"), "ping");
  std::swap(sent_.front(), sent_.back());
  answer(204);
  EXPECT_TRUE(answered);
  EXPECT_EQ(sent_.size(), Notifications::kMostUnderWay);  // the fifth delivery has its turn
}

TEST_F(Post, PingsThatWaitedForTheirTurnUseTheSubscriptionAsItIsThen) {
  const std::string removed = subscribe("removed.example.com");
  const std::string rotated = subscribe("rotated.example.com");
  checks_wait_ = true;
  for (size_t i = 0; i < Notifications::kMostUnderWay; ++i) {
    notifications_->add({.project = "lab", .url = "https://h", .on = {Happening::kFailed}}, kAda,
                        [](const Result<IssuedSubscription>&) {});
  }
  std::vector<ErrorCode> refused;
  for (const std::string& id : {removed, rotated}) {
    notifications_->test("lab", id, kAda, [&](const Result<DeliveryOutcome>& outcome) {
      if (!outcome) refused.push_back(outcome.error().code);
    });
  }
  ASSERT_TRUE(notifications_->remove("lab", removed, kAda));
  const auto renewed = notifications_->rotate("lab", rotated, kAda);
  ASSERT_TRUE(renewed);

  const auto done = std::move(checks_.front());
  checks_.pop_front();
  done({});

  EXPECT_EQ(refused, std::vector<ErrorCode>{ErrorCode::kNotFound});
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_.front().host(), "rotated.example.com");
  EXPECT_EQ(sent_.front().errand.headers.at(kSignatureHeader),
            signature_of(renewed->key, clock_.now(), sent_.front().errand.body));
  EXPECT_EQ(std::count(audit_.begin(), audit_.end(), "notification.test"), 1);
}

TEST_F(Post, TakesSoManySubscriptionsOfAProjectAndNoMore) {
  for (size_t i = 0; i < Notifications::kMostOfProject; ++i) subscribe("hooks.example.com");
  // The address is not looked up: it would be an error of another kind.
  allowed_ = base::Error{.code = ErrorCode::kRefused, .what = "no"};
  EXPECT_EQ(add({.project = "lab", .url = "https://h", .on = {Happening::kFailed}}).error().code,
            ErrorCode::kExhausted);
  allowed_ = {};
  EXPECT_TRUE(add({.project = "other", .url = "https://h", .on = {Happening::kFailed}}));
}

TEST_F(Post, RemovesTheSubscriptionsOfARemovedProject) {
  subscribe("hooks.example.com");
  const std::string other = subscribe("hooks.example.com", "other");
  happens(job_named("one"));
  happens(job_named("two"));
  NotificationChanges changes;
  notifications_->add_removals_of_project("lab", changes);

  EXPECT_EQ(changes.removed_subscriptions.size(), 1U);
  EXPECT_EQ(changes.removed_deliveries.size(), 2U);
  notifications_->project_is_gone("lab");
  EXPECT_TRUE(notifications_->subscriptions("lab").empty());
  EXPECT_EQ(notifications_->subscriptions("other").front().id, other);
  EXPECT_EQ(notifications_->waiting(), 0U);
}

TEST_F(Post, RecordsChangesInTheAuditLog) {
  const std::string id = subscribe("hooks.example.com");
  ASSERT_TRUE(notifications_->rotate("lab", id, kAda));
  notifications_->test("lab", id, kAda, [](const Result<DeliveryOutcome>&) {});
  ASSERT_TRUE(notifications_->remove("lab", id, kAda));

  EXPECT_EQ(audit_, (Texts{"notification.add", "notification.rotate", "notification.test",
                           "notification.remove"}));
}

TEST_F(Post, PingsOneAtATime) {
  const std::string id = subscribe("hooks.example.com");
  std::vector<std::string> outcomes;
  const auto note = [&](const Result<DeliveryOutcome>& outcome) {
    outcomes.push_back(outcome ? std::to_string(outcome->status) : outcome.error().what);
  };
  notifications_->test("lab", id, kAda, note);
  notifications_->test("lab", id, kAda, note);
  EXPECT_EQ(sent_.front().errand.headers.at("muster-event"), "ping");
  answer(500);

  EXPECT_EQ(outcomes, (Texts{"a test of this subscription is already running", "500"}));
  EXPECT_TRUE(dead().empty());  // a ping is not tried again
}

}  // namespace
}  // namespace muster::notify
