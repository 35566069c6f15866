// What is to be told of jobs, and how what changes by itself is kept. The rest of the class stands
// in subscriptions.cc and deliveries.cc.
#include "notify/notifications.h"

#include <algorithm>

#include "base/log.h"
#include "notify/payload.h"

namespace muster::notify {

using job::Delivery;
using job::Happening;
using job::Subscription;

namespace {

constexpr std::chrono::seconds kKeepPause{1};

bool wants(const Subscription& subscription, const job::Job& job, Happening happening) {
  if (subscription.gone || subscription.project != job.spec.project) return false;
  if (std::find(subscription.on.begin(), subscription.on.end(), happening) ==
      subscription.on.end()) {
    return false;
  }
  if (!subscription.job.empty() && !job::matches_pattern(subscription.job, job.spec.name)) {
    return false;
  }
  return std::all_of(subscription.labels.begin(), subscription.labels.end(),
                     [&](const auto& label) {
                       const auto found = job.spec.labels.find(label.first);
                       return found != job.spec.labels.end() && found->second == label.second;
                     });
}

}  // namespace

// --- jobs

void Notifications::load(std::vector<Subscription> subscriptions,
                         std::vector<Delivery> deliveries) {
  for (Subscription& each : subscriptions) {
    const std::string id = each.id;
    queues_[id].subscription = std::move(each);
  }
  for (Delivery& each : deliveries) {
    last_stamp_ = std::max(last_stamp_, each.created);
    if (queues_.contains(each.subscription)) {
      put(std::move(each));
    } else {
      changed_.insert(each.id);
      keep_soon();
    }
  }
  look();
}

std::vector<Delivery> Notifications::draft(const job::Job& job, Happening happening) {
  std::vector<Delivery> drafts;
  for (const auto& [id, queue] : queues_) {
    const Subscription& subscription = queue.subscription;
    if (!wants(subscription, job, happening)) continue;
    const base::Time now = stamp();
    Delivery delivery{.id = base::random_name(parts_.random, kDeliveryIdLength),
                      .subscription = id,
                      .project = subscription.project,
                      .happening = happening,
                      .job = job.spec.name,
                      .created = now,
                      .next = now};
    delivery.body = payload_of(job, happening, delivery.id, now,
                               subscription.with_lines ? Lines::kOfFailure : Lines::kNone);
    if (queue.due.size() >= kMostWaiting) {
      delivery.dead = now;
      delivery.fault = std::to_string(kMostWaiting) + " notifications wait for it already";
    }
    drafts.push_back(std::move(delivery));
  }
  return drafts;
}

std::string Notifications::payload_for_hook(const job::Job& job, Happening happening) {
  return payload_of(job, happening, base::random_name(parts_.random, kDeliveryIdLength), stamp(),
                    Lines::kOfFailure);
}

void Notifications::take(std::vector<Delivery> deliveries) {
  for (Delivery& each : deliveries) {
    if (queues_.contains(each.subscription)) put(std::move(each));
  }
  look();
}

void Notifications::put(Delivery delivery) {
  const std::string id = delivery.id;
  if (delivery.dead) {
    dead_[delivery.project].emplace(*delivery.dead, id);
  } else {
    queues_.at(delivery.subscription).due.emplace(delivery.next, id);
    ++waiting_;
  }
  deliveries_[id] = std::move(delivery);
}

// --- projects

void Notifications::add_what_goes_with(const std::string& project, Changes& changes) const {
  for (const auto& [id, queue] : queues_) {
    if (queue.subscription.project == project) changes.removed_subscriptions.push_back(id);
  }
  for (const auto& [id, delivery] : deliveries_) {
    if (delivery.project == project) changes.removed_deliveries.push_back(id);
  }
}

void Notifications::project_is_gone(const std::string& project) {
  Changes gone;
  add_what_goes_with(project, gone);
  for (const std::string& id : gone.removed_deliveries) erase(id);
  for (const std::string& id : gone.removed_subscriptions) queues_.erase(id);
}

// --- keeping

void Notifications::keep_soon() {
  if (std::exchange(is_keep_posted_, true)) return;
  parts_.loop.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) keep_now();
  });
}

void Notifications::keep_now() {
  is_keep_posted_ = false;
  Changes changes;
  for (const std::string& id : changed_) {
    const auto found = deliveries_.find(id);
    if (found == deliveries_.end()) {
      changes.removed_deliveries.push_back(id);
    } else {
      changes.deliveries.push_back(found->second);
    }
  }
  for (const std::string& id : changed_subscriptions_) {
    const auto found = queues_.find(id);
    if (found != queues_.end()) changes.subscriptions.push_back(found->second.subscription);
  }
  const auto kept = parts_.keep(changes);
  if (kept) {
    changed_.clear();
    changed_subscriptions_.clear();
    return;
  }
  // Should the server end before it succeeds, what has arrived will arrive once more.
  base::log_error("what became of notifications is not kept yet: " + kept.error().to_string());
  keep_again_ = parts_.loop.after(kKeepPause, [this] { keep_soon(); });
}

/// No two are the same, so that the order of what is told is that in which it happened.
base::Time Notifications::stamp() {
  last_stamp_ = std::max(parts_.clock.now(), last_stamp_ + std::chrono::nanoseconds(1));
  return last_stamp_;
}

access::AuditRecord Notifications::record(const access::Actor& by, std::string action,
                                          const Subscription& subscription) const {
  access::AuditRecord record{.time = parts_.clock.now(),
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

}  // namespace muster::notify
