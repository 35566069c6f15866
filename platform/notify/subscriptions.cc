// Who is to be told: subscriptions, their keys, and what is sent to them.
#include <algorithm>
#include <utility>

#include "notify/happenings.h"
#include "notify/notifications.h"
#include "notify/payload.h"
#include "notify/signature.h"
#include "notify/wish_faults.h"

namespace muster::notify {

using base::Error;
using base::ErrorCode;
using job::Happening;
using job::Subscription;

namespace {

constexpr size_t kIdLength = 12;

/// What a sealed key belongs to, beside its project: no secret has a name with a blank.
std::string seal_name(const std::string& id) {
  return "notification " + id;
}

}  // namespace

std::vector<Subscription> Notifications::subscriptions(const std::string& project) const {
  std::vector<Subscription> found;
  for (const auto& [id, queue] : queues_) {
    if (queue.subscription.project == project) found.push_back(queue.subscription);
  }
  std::sort(found.begin(), found.end(), [](const Subscription& left, const Subscription& right) {
    return std::pair(left.created, left.id) < std::pair(right.created, right.id);
  });
  return found;
}

void Notifications::add(Wish wish, const access::Actor& by,
                        std::function<void(Result<Keyed>)> done) {
  if (auto faults = faults_of(wish); !faults.empty()) {
    return done(Error{.code = ErrorCode::kInvalid,
                      .what = "the subscription cannot be kept as it is",
                      .faults = std::move(faults)});
  }
  auto receiver = receiver_of(wish.url);
  if (!receiver) return done(std::move(receiver).error());
  parts_.check(*std::move(receiver),
               [this, wish = std::move(wish), by, done = std::move(done)](Result<void> allowed) {
                 if (!allowed) {
                   Error error = std::move(allowed).error();
                   // A name without an address is the caller's fault, not the server's.
                   if (error.code == ErrorCode::kUnavailable) error.code = ErrorCode::kInvalid;
                   return done(std::move(error));
                 }
                 done(keep_new(wish, by));
               });
}

Result<Keyed> Notifications::keep_new(const Wish& wish, const access::Actor& by) {
  if (!parts_.has_project(wish.project)) {
    return Error{.code = ErrorCode::kNotFound,
                 .what = "there is no project '" + wish.project + "' any more"};
  }
  if (subscriptions(wish.project).size() >= kMostOfProject) {
    return Error{.code = ErrorCode::kExhausted,
                 .what = "project '" + wish.project + "' has " + std::to_string(kMostOfProject) +
                         " subscriptions, and no more are kept",
                 .advice = "remove some: muster notify remove"};
  }
  Subscription subscription{.id = base::random_name(parts_.random, kIdLength),
                            .project = wish.project,
                            .url = wish.url,
                            .job = wish.job,
                            .labels = wish.labels,
                            .with_lines = wish.with_lines,
                            .created = stamp(),
                            .created_by = by.user};
  for (const Happening happening : job::all_happenings()) {
    const bool wanted = std::find(wish.on.begin(), wish.on.end(), happening) != wish.on.end();
    if (wanted) subscription.on.push_back(happening);
  }
  std::string key = seal_new_key(subscription);
  MUSTER_CHECK(parts_.keep(
      {.subscriptions = {subscription}, .audit = {record(by, "notification.add", subscription)}}));
  queues_[subscription.id].subscription = subscription;
  return Keyed{.subscription = std::move(subscription), .key = std::move(key)};
}

std::string Notifications::seal_new_key(Subscription& subscription) {
  std::string key = base::to_hex(parts_.random.bytes<32>());
  subscription.sealed_key =
      parts_.box.seal(key, subscription.project, seal_name(subscription.id), parts_.random);
  return key;
}

Notifications::Queue* Notifications::find(const std::string& project, const std::string& id) {
  const auto found = queues_.find(id);
  const bool is_there = found != queues_.end() && found->second.subscription.project == project;
  return is_there ? &found->second : nullptr;
}

Error Notifications::unknown(const std::string& id) {
  return {.code = ErrorCode::kNotFound,
          .what = "the project has no subscription '" + id + "'",
          .advice = "muster notify list shows those there are"};
}

Result<void> Notifications::remove(const std::string& project, const std::string& id,
                                   const access::Actor& by) {
  const Queue* const queue = find(project, id);
  if (queue == nullptr) return unknown(id);
  Changes changes{.removed_subscriptions = {id},
                  .audit = {record(by, "notification.remove", queue->subscription)}};
  for (const auto& [delivery_id, delivery] : deliveries_) {
    if (delivery.subscription == id) changes.removed_deliveries.push_back(delivery_id);
  }
  MUSTER_CHECK(parts_.keep(changes));
  for (const std::string& delivery : changes.removed_deliveries) erase(delivery);
  queues_.erase(id);
  return {};
}

Result<Keyed> Notifications::rotate(const std::string& project, const std::string& id,
                                    const access::Actor& by) {
  Queue* const queue = find(project, id);
  if (queue == nullptr) return unknown(id);
  Subscription changed = queue->subscription;
  std::string key = seal_new_key(changed);
  MUSTER_CHECK(parts_.keep(
      {.subscriptions = {changed}, .audit = {record(by, "notification.rotate", changed)}}));
  queue->subscription = changed;
  return Keyed{.subscription = std::move(changed), .key = std::move(key)};
}

void Notifications::test(const std::string& project, const std::string& id, const access::Actor& by,
                         std::function<void(Result<Outcome>)> done) {
  Queue* const queue = find(project, id);
  if (queue == nullptr) return done(unknown(id));
  if (queue->is_being_tested) {
    return done(Error{.code = ErrorCode::kConflict, .what = "it is being tested already"});
  }
  const std::string ping = base::random_name(parts_.random, kDeliveryIdLength);
  auto errand = errand_of(queue->subscription, ping, Happening::kPing,
                          ping_payload(project, ping, parts_.clock.now()));
  if (!errand) return done(std::move(errand).error());
  const auto kept = parts_.keep({.audit = {record(by, "notification.test", queue->subscription)}});
  if (!kept) return done(kept.error());
  queue->is_being_tested = true;
  parts_.send(*std::move(errand), [this, project, id, done = std::move(done)](Outcome outcome) {
    Queue* const tested = find(project, id);
    if (tested == nullptr) return done(unknown(id));
    tested->is_being_tested = false;
    if (verdict_on(outcome.status) == Verdict::kArrived && tested->subscription.gone) {
      tested->subscription.gone.reset();
      changed_subscriptions_.insert(id);
      keep_soon();
    }
    done(std::move(outcome));
  });
}

Result<Errand> Notifications::errand_of(const Subscription& subscription, const std::string& id,
                                        Happening happening, const std::string& body) const {
  MUSTER_TRY(Receiver receiver, receiver_of(subscription.url));
  auto key =
      parts_.box.open(subscription.sealed_key, subscription.project, seal_name(subscription.id));
  if (!key) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "its key was sealed with another key of the server",
                 .advice = "make a new one: muster notify rotate " + subscription.id};
  }
  return Errand{.receiver = std::move(receiver),
                .headers = {{"content-type", "application/json"},
                            {"user-agent", "muster"},
                            {kEventHeader, event_name(happening)},
                            {kDeliveryHeader, id},
                            {kSignatureHeader, signature_of(*key, parts_.clock.now(), body)}},
                .body = body};
}

}  // namespace muster::notify
