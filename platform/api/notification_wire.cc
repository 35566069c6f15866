#include "api/notification_wire.h"

#include "api/fields.h"

namespace muster::api {

using job::Delivery;
using job::Happening;
using job::Subscription;

namespace {

void write_happenings(JsonWriter& json, const std::vector<Happening>& happenings) {
  std::vector<std::string> names;
  for (const Happening happening : happenings) names.emplace_back(job::to_string(happening));
  json.key("on").texts(names);
}

void read_happenings(Fields& fields, std::vector<Happening>& into) {
  std::vector<std::string> names;
  fields.read("on", names, Need::kRequired);
  for (const std::string& name : names) {
    const auto happening = job::happening_of(name);
    if (happening) {
      into.push_back(*happening);
    } else {
      fields.fault("on",
                   "'" + name + "' is not one of started, requeued, succeeded, failed and stopped");
    }
  }
}

void write_labels(JsonWriter& json, const std::map<std::string, std::string>& labels) {
  json.key("labels").open('{');
  for (const auto& [name, value] : labels) json.key(name).text(value);
  json.close('}');
}

void write_subscription(JsonWriter& json, const Subscription& subscription) {
  json.open('{');
  json.key("id").text(subscription.id);
  json.key("project").text(subscription.project);
  json.key("url").text(subscription.url);
  write_happenings(json, subscription.on);
  json.key("job").text(subscription.job);
  write_labels(json, subscription.labels);
  json.key("with_lines").flag(subscription.with_lines);
  json.key("created").time(subscription.created);
  json.key("created_by").text(subscription.created_by);
  json.key("gone");
  subscription.gone ? json.time(*subscription.gone) : json.null();
  json.close('}');
}

void read_subscription(Fields& fields, Subscription& subscription) {
  fields.read("id", subscription.id, Need::kRequired);
  fields.read("project", subscription.project, Need::kRequired);
  fields.read("url", subscription.url, Need::kRequired);
  read_happenings(fields, subscription.on);
  fields.read("job", subscription.job);
  fields.read("labels", subscription.labels);
  fields.read("with_lines", subscription.with_lines);
  fields.read("created", subscription.created);
  fields.read("created_by", subscription.created_by);
  fields.read("gone", subscription.gone);
}

void write_letter(JsonWriter& json, const Delivery& letter) {
  json.open('{');
  json.key("id").text(letter.id);
  json.key("subscription").text(letter.subscription);
  json.key("event").text(job::to_string(letter.happening));
  json.key("job").text(letter.job);
  json.key("created").time(letter.created);
  json.key("attempts").number(letter.attempts);
  json.key("fault").prose(letter.fault);
  json.key("dead");
  letter.dead ? json.time(*letter.dead) : json.null();
  json.close('}');
}

void read_letter(Fields& fields, Delivery& letter) {
  fields.read("id", letter.id, Need::kRequired);
  fields.read("subscription", letter.subscription, Need::kRequired);
  std::string event;
  fields.read("event", event, Need::kRequired);
  letter.happening = job::happening_of(event).value_or(Happening::kPing);
  fields.read("job", letter.job);
  fields.read("created", letter.created);
  fields.read("attempts", letter.attempts);
  fields.read("fault", letter.fault);
  fields.read("dead", letter.dead);
}

}  // namespace

std::string subscription_request_to_json(const SubscriptionRequest& request) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  json.key("url").text(request.url);
  write_happenings(json, request.on);
  json.key("job").text(request.job);
  write_labels(json, request.labels);
  json.key("with_lines").flag(request.with_lines);
  json.close('}');
  return text;
}

Result<SubscriptionRequest> subscription_request_from_json(std::string_view text) {
  SubscriptionRequest request;
  MUSTER_CHECK(read_document(text, "subscription", [&](Fields& fields) {
    fields.read("url", request.url, Need::kRequired);
    read_happenings(fields, request.on);
    fields.read("job", request.job);
    fields.read("labels", request.labels);
    fields.read("with_lines", request.with_lines);
  }));
  return request;
}

std::string keyed_subscription_to_json(const KeyedSubscription& keyed) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("subscription");
  write_subscription(json, keyed.subscription);
  json.key("key").text(keyed.key).close('}');
  return text;
}

Result<KeyedSubscription> keyed_subscription_from_json(std::string_view text) {
  KeyedSubscription keyed;
  MUSTER_CHECK(read_document(text, "subscription", [&](Fields& fields) {
    fields.object(
        "subscription", [&](Fields& inner) { read_subscription(inner, keyed.subscription); },
        Need::kRequired);
    fields.read("key", keyed.key, Need::kRequired);
  }));
  return keyed;
}

std::string subscriptions_to_json(const std::vector<Subscription>& subscriptions) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("subscriptions").open('[');
  for (const Subscription& subscription : subscriptions) write_subscription(json, subscription);
  json.close(']').close('}');
  return text;
}

Result<std::vector<Subscription>> subscriptions_from_json(std::string_view text) {
  std::vector<Subscription> subscriptions;
  MUSTER_CHECK(read_document(text, "list of subscriptions", [&](Fields& fields) {
    fields.each(
        "subscriptions",
        [&](Fields& inner) { read_subscription(inner, subscriptions.emplace_back()); },
        Need::kRequired);
  }));
  return subscriptions;
}

std::string ping_result_to_json(const PingResult& result) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  json.key("arrived").flag(result.arrived);
  json.key("status").number(result.status);
  json.key("fault").prose(result.fault);
  json.key("advice").prose(result.advice);
  json.key("took_ms").number(result.took.count());
  json.close('}');
  return text;
}

Result<PingResult> ping_result_from_json(std::string_view text) {
  PingResult result;
  MUSTER_CHECK(read_document(text, "result of a ping", [&](Fields& fields) {
    fields.read("arrived", result.arrived, Need::kRequired);
    fields.read("status", result.status);
    fields.read("fault", result.fault);
    fields.read("advice", result.advice);
    fields.read("took_ms", result.took);
  }));
  return result;
}

std::string dead_letters_to_json(const std::vector<Delivery>& letters) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("deliveries").open('[');
  for (const Delivery& letter : letters) write_letter(json, letter);
  json.close(']').close('}');
  return text;
}

Result<std::vector<Delivery>> dead_letters_from_json(std::string_view text) {
  std::vector<Delivery> letters;
  MUSTER_CHECK(read_document(text, "list of dead letters", [&](Fields& fields) {
    fields.each(
        "deliveries", [&](Fields& inner) { read_letter(inner, letters.emplace_back()); },
        Need::kRequired);
  }));
  return letters;
}

std::string retry_ids_to_json(const std::vector<std::string>& ids) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("ids").texts(ids).close('}');
  return text;
}

Result<std::vector<std::string>> retry_ids_from_json(std::string_view text) {
  std::vector<std::string> ids;
  MUSTER_CHECK(read_document(text, "list of dead letters",
                             [&](Fields& fields) { fields.read("ids", ids, Need::kRequired); }));
  return ids;
}

std::string retried_to_json(int count) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("retried").number(count).close('}');
  return text;
}

Result<int> retried_from_json(std::string_view text) {
  int count = 0;
  MUSTER_CHECK(read_document(
      text, "answer", [&](Fields& fields) { fields.read("retried", count, Need::kRequired); }));
  return count;
}

}  // namespace muster::api
