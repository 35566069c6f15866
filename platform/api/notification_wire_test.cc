#include "api/notification_wire.h"

#include <gtest/gtest.h>

#include "api/test_values.h"

namespace muster::api {
namespace {

using job::Happening;

job::Subscription full_subscription() {
  return {.id = "s1",
          .project = "lab",
          .url = "https://hooks.example.com/a?b=c",
          .on = {Happening::kStarted, Happening::kFailed},
          .job = "train-*",
          .labels = {{"team", "vision"}, {"nightly", ""}},
          .with_lines = true,
          .created = kTime,
          .created_by = "ada",
          .gone = kTime + std::chrono::hours(1)};
}

TEST(NotificationWire, ReadsBackUnchanged) {
  const SubscriptionRequest request{.url = "https://hooks.example.com",
                                    .on = job::all_happenings(),
                                    .job = "a*",
                                    .labels = {{"x", "y"}},
                                    .with_lines = true};
  EXPECT_EQ(*subscription_request_from_json(subscription_request_to_json(request)), request);

  const KeyedSubscription keyed{.subscription = full_subscription(), .key = "k"};
  EXPECT_EQ(*keyed_subscription_from_json(keyed_subscription_to_json(keyed)), keyed);

  job::Subscription there = full_subscription();
  there.gone.reset();
  const std::vector<job::Subscription> list{full_subscription(), there};
  EXPECT_EQ(*subscriptions_from_json(subscriptions_to_json(list)), list);

  const PingResult ping{.arrived = false,
                        .status = 500,
                        .fault = "answered 500",
                        .advice = "look there",
                        .took = std::chrono::milliseconds(12)};
  EXPECT_EQ(*ping_result_from_json(ping_result_to_json(ping)), ping);

  const std::vector<std::string> ids{"d1", "d2"};
  EXPECT_EQ(*retry_ids_from_json(retry_ids_to_json(ids)), ids);
  EXPECT_EQ(*retried_from_json(retried_to_json(7)), 7);
}

TEST(NotificationWire, ContainsADeadLetterWithoutItsBody) {
  const job::Delivery letter{.id = "d1",
                             .subscription = "s1",
                             .happening = Happening::kStopped,
                             .job = "train-7",
                             .body = "confidential",
                             .created = kTime,
                             .attempts = 3,
                             .fault = "answered 404",
                             .dead = kTime};
  const std::string json = dead_letters_to_json({letter});

  EXPECT_EQ(json.find("confidential"), std::string::npos);
  job::Delivery without = letter;
  without.body.clear();
  EXPECT_EQ(*dead_letters_from_json(json), std::vector<job::Delivery>{without});
}

TEST(NotificationWire, ContainsNoSealedKey) {
  job::Subscription subscription = full_subscription();
  subscription.sealed_key = "sealed";

  EXPECT_EQ(subscriptions_to_json({subscription}).find("sealed"), std::string::npos);
}

TEST(NotificationWire, NamesEventsThatCannotBeSubscribedTo) {
  const auto read = subscription_request_from_json(R"({"url": "u", "on": ["failed", "ping"]})");

  ASSERT_FALSE(read);
  ASSERT_EQ(read.error().faults.size(), 1U);
  EXPECT_EQ(read.error().faults[0].field, "on[1]");
  EXPECT_NE(read.error().faults[0].what.find("'ping'"), std::string::npos);
}

TEST(NotificationWire, RefusesALongerListThanAProjectHasDeadLetters) {
  std::vector<std::string> ids(1000, "d1");
  EXPECT_TRUE(retry_ids_from_json(retry_ids_to_json(ids)));
  ids.emplace_back("d2");

  const auto read = retry_ids_from_json(retry_ids_to_json(ids));

  ASSERT_FALSE(read);
  ASSERT_EQ(read.error().faults.size(), 1U);
  EXPECT_EQ(read.error().faults[0].field, "ids");
}

}  // namespace
}  // namespace muster::api
