// Subscriptions to notifications and dead letters as JSON. docs/api.md shows each shape by example.
//
// Pure; thread-safe. Reading as in wire.h. A key is sent only in the answer that creates it, and a
// delivery's body never.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/notification.h"
#include "record/table.h"

namespace muster::api {

using base::Result;

/// POST /v1/projects/NAME/notifications
struct SubscriptionRequest {
  std::string url;
  std::vector<job::Happening> on;
  std::string job;
  std::map<std::string, std::string> labels;
  bool with_lines = false;
  bool members = false;

  bool operator==(const SubscriptionRequest&) const = default;
};
const record::Table& table_of(const SubscriptionRequest*);
std::string subscription_request_to_json(const SubscriptionRequest& request);
Result<SubscriptionRequest> subscription_request_from_json(std::string_view text);

/// The answer to it and to a rotation: the subscription and, only here, its key.
struct KeyedSubscription {
  job::Subscription subscription;
  std::string key;

  bool operator==(const KeyedSubscription&) const = default;
};
const record::Table& table_of(const KeyedSubscription*);
std::string keyed_subscription_to_json(const KeyedSubscription& keyed);
Result<KeyedSubscription> keyed_subscription_from_json(std::string_view text);

/// {"subscriptions": [...]}, without keys.
std::string subscriptions_to_json(const std::vector<job::Subscription>& subscriptions);
Result<std::vector<job::Subscription>> subscriptions_from_json(std::string_view text);

/// POST .../notifications/ID/test
struct PingResult {
  bool arrived = false;
  int status = 0;  ///< of the answer; 0: no answer
  std::string fault;
  std::string advice;
  std::chrono::milliseconds took{0};

  bool operator==(const PingResult&) const = default;
};
const record::Table& table_of(const PingResult*);
std::string ping_result_to_json(const PingResult& result);
Result<PingResult> ping_result_from_json(std::string_view text);

/// {"deliveries": [...]}
std::string dead_letters_to_json(const std::vector<job::Delivery>& letters);
Result<std::vector<job::Delivery>> dead_letters_from_json(std::string_view text);

/// {"ids": [...]}; empty: all.
std::string retry_ids_to_json(const std::vector<std::string>& ids);
Result<std::vector<std::string>> retry_ids_from_json(std::string_view text);
/// {"retried": 3}
std::string retried_to_json(int count);
Result<int> retried_from_json(std::string_view text);

}  // namespace muster::api
