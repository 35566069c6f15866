#include "api/notification_wire.h"

#include "api/fields.h"
#include "api/schemas.h"
#include "job/notification.h"
#include "record/field.h"

namespace muster::api {

using job::Delivery;
using job::Subscription;
using record::As;
using record::field;
using record::Sent;
using record::Table;

struct DeadLetterIds {
  std::vector<std::string> ids;
};
struct Retried {
  int retried = 0;
};

const Table& table_of(const DeadLetterIds*) {
  static const Table table = record::table<DeadLetterIds>(
      "DeadLetterIds",
      {field<&DeadLetterIds::ids>("ids", {.help = "Empty: all dead letters of the project.",
                                          .need = Need::kRequired,
                                          .schema = R"({"items": {"type": "string"}})",
                                          // A project keeps no more dead letters.
                                          .most_items = 1000})});
  return table;
}

const Table& table_of(const Retried*) {
  static const Table table =
      record::table<Retried>(
          "Retried", {field<&Retried::retried>(
                         "retried", {.help = "The number of notifications that are sent again.",
                                     .need = Need::kRequired})})
          .as_answer();
  return table;
}

const Table& table_of(const SubscriptionRequest*) {
  static const Table table = record::table<SubscriptionRequest>(
      "SubscriptionRequest",
      {field<&SubscriptionRequest::url>(
           "url", {.help = "An https URL without user and fragment.",
                   .need = Need::kRequired,
                   .max_length = 2048,
                   .schema = R"({"example": "https://hooks.example.com/muster"})"}),
       field<&SubscriptionRequest::on>(
           "on", {.help = "The events of jobs, arrays and sweeps that are sent.",
                  .need = Need::kRequired,
                  .schema = R"({"minItems": 1})"}),
       field<&SubscriptionRequest::job>(
           "job", {.help = "A pattern of job names, with * and ?. Empty: every job.",
                   .max_length = 128,
                   .pattern = "^[a-z0-9*?-]*$"}),
       field<&SubscriptionRequest::labels>(
           "labels", {.help = "The job must have all of these labels.",
                      .schema = R"({"additionalProperties": {"type": "string"}})",
                      .most_items = 16}),
       field<&SubscriptionRequest::with_lines>(
           "with_lines", {.help = "Also send the last lines of a failed job."}),
       field<&SubscriptionRequest::members>(
           "members", {.help = "Also send the events of each member of an array and each trial of "
                               "a sweep. Otherwise only the end of the array or the sweep is "
                               "sent."})});
  return table;
}

const Table& table_of(const KeyedSubscription*) {
  static const Table table =
      record::table<KeyedSubscription>(
          "KeyedSubscription",
          {field<&KeyedSubscription::subscription>("subscription", {.need = Need::kRequired}),
           field<&KeyedSubscription::key>("key",
                                          {.help = "The signing key. Only this answer contains it.",
                                           .need = Need::kRequired})})
          .as_answer();
  return table;
}

const Table& table_of(const PingResult*) {
  static const Table table =
      record::table<PingResult>(
          "PingResult",
          {field<&PingResult::arrived>("arrived", {.need = Need::kRequired}),
           field<&PingResult::status>(
               "status",
               {.help = "The HTTP status of the answer. 0: no answer.", .sent = Sent::kAlways}),
           field<&PingResult::fault>(
               "fault", {.help = "Why it was not delivered.", .sent = Sent::kAlways}, As::kProse),
           field<&PingResult::advice>("advice", {.sent = Sent::kAlways}, As::kProse),
           field<&PingResult::took>("took", {.sent = Sent::kAlways})})
          .as_answer();
  return table;
}

void add_notification_schemas(record::Schemas& schemas) {
  schemas.add(record::table_for<SubscriptionRequest>());
  schemas.add_list("Subscriptions", "subscriptions", record::table_for<Subscription>(),
                   "Oldest first.");
  schemas.add(record::table_for<KeyedSubscription>());
  schemas.add(record::table_for<PingResult>());
  schemas.add_list("DeadLetters", "deliveries", record::table_for<Delivery>(), "Newest first.");
  schemas.add(record::table_for<DeadLetterIds>());
  schemas.add(record::table_for<Retried>());
}

std::string subscription_request_to_json(const SubscriptionRequest& request) {
  return record::to_json(request);
}
Result<SubscriptionRequest> subscription_request_from_json(std::string_view text) {
  return record::from_json<SubscriptionRequest>(text, "subscription");
}

std::string keyed_subscription_to_json(const KeyedSubscription& keyed) {
  return record::to_json(keyed);
}
Result<KeyedSubscription> keyed_subscription_from_json(std::string_view text) {
  return record::from_json<KeyedSubscription>(text, "subscription");
}

std::string subscriptions_to_json(const std::vector<Subscription>& subscriptions) {
  return record::list_to_json("subscriptions", subscriptions);
}
Result<std::vector<Subscription>> subscriptions_from_json(std::string_view text) {
  return record::list_from_json<Subscription>(text, "subscriptions");
}

std::string ping_result_to_json(const PingResult& result) {
  return record::to_json(result);
}
Result<PingResult> ping_result_from_json(std::string_view text) {
  return record::from_json<PingResult>(text, "result of a ping");
}

std::string dead_letters_to_json(const std::vector<Delivery>& letters) {
  return record::list_to_json("deliveries", letters);
}
Result<std::vector<Delivery>> dead_letters_from_json(std::string_view text) {
  return record::list_from_json<Delivery>(text, "deliveries");
}

std::string retry_ids_to_json(const std::vector<std::string>& ids) {
  return record::to_json(DeadLetterIds{ids});
}
Result<std::vector<std::string>> retry_ids_from_json(std::string_view text) {
  MUSTER_TRY(DeadLetterIds letters, record::from_json<DeadLetterIds>(text, "list of dead letters"));
  return std::move(letters.ids);
}

std::string retried_to_json(int count) {
  return record::to_json(Retried{count});
}
Result<int> retried_from_json(std::string_view text) {
  MUSTER_TRY(const Retried answer, record::from_json<Retried>(text, "answer"));
  return answer.retried;
}

}  // namespace muster::api
