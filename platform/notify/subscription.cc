#include "notify/subscription.h"

#include <algorithm>
#include <utility>

#include "job/validate.h"
#include "notify/payload.h"

namespace muster::notify {

using base::Error;
using base::ErrorCode;
using job::Happening;
using job::Subscription;

namespace {

constexpr size_t kIdLength = 12;

/// The name under which a key is sealed. No secret has a name with a blank.
std::string seal_name(const std::string& id) {
  return "notification " + id;
}

/// The beginning of the text, without control characters.
std::string shortened(std::string_view text) {
  constexpr size_t kMost = 200;
  std::string plain;
  for (const char each : text.substr(0, kMost)) {
    plain += static_cast<unsigned char>(each) < ' ' || each == '\x7f' ? ' ' : each;
  }
  if (text.size() > kMost) plain += "...";
  return plain;
}

}  // namespace

std::vector<base::Fault> faults_of(const SubscriptionRequest& request) {
  constexpr size_t kLongestPattern = 128;
  constexpr size_t kMostLabels = 16;
  std::vector<base::Fault> faults;
  if (const auto receiver = receiver_of(request.url); !receiver) {
    const auto* const fault = base::detail_of<UrlFault>(receiver.error());
    faults.push_back(
        {.field = "url", .what = fault == nullptr ? receiver.error().what : fault->what});
  }
  if (request.on.empty()) faults.push_back({.field = "on", .what = "must name at least one event"});
  const bool is_pattern = std::all_of(request.job.begin(), request.job.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' ||
           letter == '*' || letter == '?';
  });
  if (!is_pattern || request.job.size() > kLongestPattern) {
    faults.push_back({.field = "job",
                      .what =
                          "is not a pattern of names; use at most 128 small letters, digits, '-', "
                          "'*' and '?'"});
  }
  if (request.labels.size() > kMostLabels) {
    faults.push_back({.field = "labels", .what = "has more than 16 labels"});
    return faults;
  }
  for (const auto& [name, value] : request.labels) {
    if (job::is_label_name(name) && job::is_label_value(value)) continue;
    faults.push_back({.field = "labels",
                      .what = "has a label that no job can have; use names of 1 to 128 bytes "
                              "without '=' and values of at most 256 bytes, both without control "
                              "characters"});
    break;
  }
  return faults;
}

Subscription subscription_of(const SubscriptionRequest& request, const access::Actor& by,
                             base::Time created, base::RandomSource& random) {
  Subscription subscription{.id = base::random_name(random, kIdLength),
                            .project = request.project,
                            .url = request.url,
                            .job = request.job,
                            .labels = request.labels,
                            .with_lines = request.with_lines,
                            .members = request.members,
                            .created = created,
                            .created_by = by.user};
  for (const Happening happening : job::all_happenings()) {
    const bool is_requested =
        std::find(request.on.begin(), request.on.end(), happening) != request.on.end();
    if (is_requested) subscription.on.push_back(happening);
  }
  return subscription;
}

namespace {

bool matches_event(const Subscription& subscription, Happening happening,
                   const std::string& project, const std::string& name,
                   const std::map<std::string, std::string>& labels) {
  if (subscription.gone || subscription.project != project) return false;
  if (std::find(subscription.on.begin(), subscription.on.end(), happening) ==
      subscription.on.end()) {
    return false;
  }
  if (!subscription.job.empty() && !job::matches_pattern(subscription.job, name)) {
    return false;
  }
  return std::all_of(subscription.labels.begin(), subscription.labels.end(),
                     [&](const auto& label) {
                       const auto found = labels.find(label.first);
                       return found != labels.end() && found->second == label.second;
                     });
}

bool is_member(const job::Job& job) {
  using Kind = job::JobOrigin::Kind;
  return job.origin && (job.origin->kind == Kind::kArray || job.origin->kind == Kind::kSweep);
}

}  // namespace

bool matches(const Subscription& subscription, const job::Job& job, Happening happening) {
  if (is_member(job) && !subscription.members) return false;
  return matches_event(subscription, happening, job.spec.project, job.spec.name, job.spec.labels);
}

bool matches(const Subscription& subscription, const job::ObjectEnd& end) {
  return matches_event(subscription, happening_of(end), end.project, end.name, end.labels);
}

std::string seal_new_key(Subscription& subscription, const access::SecretBox& box,
                         base::RandomSource& random) {
  std::string key = base::to_hex(random.bytes<32>());
  subscription.sealed_key = box.seal(key, subscription.project, seal_name(subscription.id), random);
  return key;
}

Result<OutgoingNotification> notification_to(const Subscription& subscription,
                                             const access::SecretBox& box, const std::string& id,
                                             const std::string& event, const std::string& body,
                                             base::Time now) {
  MUSTER_TRY(Receiver receiver, receiver_of(subscription.url));
  auto key = box.open(subscription.sealed_key, subscription.project, seal_name(subscription.id));
  if (!key) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "the key of the subscription was encrypted with another key of the server",
                 .advice = "make a new key: muster notify rotate " + subscription.id};
  }
  return OutgoingNotification{.receiver = std::move(receiver),
                              .headers = {{"content-type", "application/json"},
                                          {"user-agent", "muster"},
                                          {kEventHeader, event},
                                          {kDeliveryHeader, id},
                                          {kSignatureHeader, signature_of(*key, now, body)}},
                              .body = body};
}

access::AuditRecord audit_record(const Subscription& subscription, std::string action,
                                 const access::Actor& by, base::Time now) {
  access::AuditRecord record{.time = now,
                             .actor = by,
                             .action = std::move(action),
                             .target = subscription.id,
                             .project = subscription.project};
  const std::string receiver = job::origin_of(subscription.url);
  if (record.action == "notification.add") {
    record.changes.push_back({.field = "receiver", .after = receiver});
  } else if (record.action == "notification.remove") {
    record.changes.push_back({.field = "receiver", .before = receiver});
  }
  return record;
}

Error unknown_subscription(const std::string& id) {
  return {.code = ErrorCode::kNotFound,
          .what = "the project has no subscription '" + id + "'",
          .advice = "muster notify list shows the subscriptions"};
}

std::string fault_of(const DeliveryOutcome& outcome) {
  if (outcome.fault) return outcome.fault->what;
  std::string fault = "answered " + std::to_string(outcome.status);
  if (outcome.status >= 300 && outcome.status < 400) fault += ", and no redirect is followed";
  if (!outcome.answer.empty()) fault += ": " + shortened(outcome.answer);
  return fault;
}

}  // namespace muster::notify
