// A subscription by itself: its faults, the jobs that it matches, its key, and the requests to its
// receiver.
//
// Pure functions; thread-safe. Randomness and time are arguments.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "access/audit.h"
#include "access/secret_box.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/result.h"
#include "job/job.h"
#include "job/notification.h"
#include "notify/courier.h"

namespace muster::notify {

using base::Result;

/// A new subscription as it is requested.
struct SubscriptionRequest {
  std::string project;
  std::string url;
  std::vector<job::Happening> on;
  std::string job;
  std::map<std::string, std::string> labels;
  bool with_lines = false;
  bool members = false;
};

/// A new subscription with its key, which is not shown again.
struct IssuedSubscription {
  job::Subscription subscription;
  std::string key;  ///< these characters are the key of the HMAC
};

/// Every fault of a requested subscription except faults of its address, each with its field.
std::vector<base::Fault> faults_of(const SubscriptionRequest& request);

/// The requested subscription, still without a key.
job::Subscription subscription_of(const SubscriptionRequest& request, const access::Actor& by,
                                  base::Time created, base::RandomSource& random);

/// Whether the subscription asks for this event of this job, and its receiver is not gone.
/// Members of arrays and trials of sweeps match only if it asks for them.
bool matches(const job::Subscription& subscription, const job::Job& job, job::Happening happening);
/// The same for the end of an array or a sweep.
bool matches(const job::Subscription& subscription, const job::ObjectEnd& end);

/// Gives the subscription a new key, sealed with the key of the server. Returns the new key.
std::string seal_new_key(job::Subscription& subscription, const access::SecretBox& box,
                         base::RandomSource& random);

/// A signed request to the receiver. `id`: of the delivery; `body`: its payload. kRefused: the key
/// of the subscription was sealed with another key of the server. `event`: as of event_name().
Result<OutgoingNotification> notification_to(const job::Subscription& subscription,
                                             const access::SecretBox& box, const std::string& id,
                                             const std::string& event, const std::string& body,
                                             base::Time now);

/// The audit record of a change of the subscription. It contains the origin of the receiver's URL,
/// because the rest of the URL may be a secret.
access::AuditRecord audit_record(const job::Subscription& subscription, std::string action,
                                 const access::Actor& by, base::Time now);

/// kNotFound: the project has no subscription of this id.
base::Error unknown_subscription(const std::string& id);

/// Why the last attempt failed: "answered 500: ...", or that there was no answer.
std::string fault_of(const DeliveryOutcome& outcome);

}  // namespace muster::notify
