#include "store/notification_document.h"

#include "store/document.h"

namespace muster::store {

using job::Delivery;
using job::Happening;
using job::Subscription;

namespace {

/// Unlike those that can be asked for, a delivery may be a ping.
Happening happening_in(const CborValue& name) {
  const std::string text(name.text());
  return text == "ping" ? Happening::kPing : job::happening_of(text).value();
}

Subscription read_subscription(const CborValue& value) {
  Subscription subscription{.id = value.at("id").text(),
                            .project = value.at("project").text(),
                            .url = bytes_of(value.at("url")),
                            .on = list_of<Happening>(value.at("on"), happening_in),
                            .job = bytes_of(value.at("job")),
                            .sealed_key = bytes_of(value.at("sealed_key")),
                            .created = time_of(value.at("created")),
                            .created_by = value.at("created_by").text()};
  for (const CborValue& label : value.at("labels").list()) {
    subscription.labels[bytes_of(label.list().at(0))] = bytes_of(label.list().at(1));
  }
  read_if_there(value, "with_lines", subscription.with_lines, flag_of);
  read_if_there(value, "gone", subscription.gone, time_of);
  return subscription;
}

Delivery read_delivery(const CborValue& value) {
  Delivery delivery{.id = value.at("id").text(),
                    .subscription = value.at("subscription").text(),
                    .project = value.at("project").text(),
                    .happening = happening_in(value.at("happening")),
                    .job = bytes_of(value.at("job")),
                    .body = bytes_of(value.at("body")),
                    .created = time_of(value.at("created")),
                    .attempts = int_of(value.at("attempts")),
                    .next = time_of(value.at("next")),
                    .fault = bytes_of(value.at("fault"))};
  read_if_there(value, "dead", delivery.dead, time_of);
  return delivery;
}

}  // namespace

std::string to_subscription_document(const Subscription& subscription) {
  std::string document;
  CborWriter out(document);
  const auto time = [&](base::Time when) { write_time(out, when); };
  out.map(11);
  out.key("id").text(subscription.id);
  out.key("project").text(subscription.project);
  out.key("url").bytes(subscription.url);
  out.key("on").list(subscription.on.size());
  for (const Happening happening : subscription.on) out.text(job::to_string(happening));
  out.key("job").bytes(subscription.job);
  out.key("labels").list(subscription.labels.size());
  for (const auto& [name, label] : subscription.labels) out.list(2).bytes(name).bytes(label);
  out.key("with_lines").flag(subscription.with_lines);
  out.key("sealed_key").bytes(subscription.sealed_key);
  out.key("created");
  time(subscription.created);
  out.key("created_by").text(subscription.created_by);
  out.key("gone");
  write_optional(out, subscription.gone, time);
  return document;
}

std::string to_delivery_document(const Delivery& delivery) {
  std::string document;
  CborWriter out(document);
  const auto time = [&](base::Time when) { write_time(out, when); };
  out.map(11);
  out.key("id").text(delivery.id);
  out.key("subscription").text(delivery.subscription);
  out.key("project").text(delivery.project);
  out.key("happening").text(job::to_string(delivery.happening));
  out.key("job").bytes(delivery.job);
  out.key("body").bytes(delivery.body);
  out.key("created");
  time(delivery.created);
  out.key("attempts").number(delivery.attempts);
  out.key("next");
  time(delivery.next);
  out.key("fault").bytes(delivery.fault);
  out.key("dead");
  write_optional(out, delivery.dead, time);
  return document;
}

base::Result<Subscription> from_subscription_document(std::string_view document) {
  return read_document(document, "subscription to notifications", read_subscription);
}

base::Result<Delivery> from_delivery_document(std::string_view document) {
  return read_document(document, "delivery of a notification", read_delivery);
}

}  // namespace muster::store
