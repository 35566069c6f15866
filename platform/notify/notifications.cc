#include "notify/notifications.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "notify/courier.h"
#include "notify/payload.h"

namespace muster::notify {

using job::Delivery;
using job::Happening;
using job::Subscription;

namespace {

constexpr size_t kDeliveryIdLength = 20;
constexpr std::chrono::seconds kKeepPause{1};
constexpr std::chrono::hours kLongestSleep{1};

}  // namespace

// --- jobs

void Notifications::load(std::vector<Subscription> subscriptions,
                         std::vector<Delivery> deliveries) {
  for (Subscription& each : subscriptions) add_subscriber(std::move(each));
  for (Delivery& each : deliveries) {
    last_time_ = std::max(last_time_, each.created);
    if (subscribers_.contains(each.subscription)) {
      deliveries_.put(std::move(each));
    } else {
      deliveries_.mark_changed(each.id);
      keep_soon();
    }
  }
  look();
}

void Notifications::add_subscriber(Subscription subscription) {
  of_project_[subscription.project].insert(subscription.id);
  const std::string id = subscription.id;
  subscribers_[id].subscription = std::move(subscription);
}

void Notifications::remove_subscriber(const std::string& id) {
  const auto found = subscribers_.find(id);
  const auto siblings = of_project_.find(found->second.subscription.project);
  siblings->second.erase(id);
  if (siblings->second.empty()) of_project_.erase(siblings);
  subscribers_.erase(found);
}

std::vector<Notifications::Subscriber*> Notifications::subscribers_of(const std::string& project) {
  std::vector<Subscriber*> found;
  const auto ids = of_project_.find(project);
  if (ids == of_project_.end()) return found;
  for (const std::string& id : ids->second) found.push_back(&subscribers_.at(id));
  return found;
}

Delivery Notifications::new_delivery(const Subscription& subscription, Happening happening,
                                     DraftCounts& drafted) {
  const base::Time now = unique_time();
  Delivery delivery{.id = base::random_name(parts_.random, kDeliveryIdLength),
                    .subscription = subscription.id,
                    .project = subscription.project,
                    .happening = happening,
                    .created = now,
                    .next = now};
  size_t& of_commit = drafted[subscription.id];
  if (deliveries_.due(subscription.id) + of_commit >= kMostWaiting) {
    delivery.dead = now;
    delivery.fault = std::to_string(kMostWaiting) + " notifications already wait for this receiver";
  } else {
    ++of_commit;
  }
  return delivery;
}

std::vector<Delivery> Notifications::draft(const job::Job& job, Happening happening,
                                           DraftCounts& drafted) {
  std::vector<Delivery> drafts;
  for (const Subscriber* const subscriber : subscribers_of(job.spec.project)) {
    const Subscription& subscription = subscriber->subscription;
    if (!matches(subscription, job, happening)) continue;
    Delivery delivery = new_delivery(subscription, happening, drafted);
    delivery.job = job.spec.name;
    delivery.body =
        payload_of(job, happening, delivery.id, delivery.created,
                   subscription.with_lines ? PayloadLines::kOfFailure : PayloadLines::kNone);
    drafts.push_back(std::move(delivery));
  }
  return drafts;
}

std::vector<Delivery> Notifications::draft(const job::ObjectEnd& end, DraftCounts& drafted) {
  std::vector<Delivery> drafts;
  for (const Subscriber* const subscriber : subscribers_of(end.project)) {
    if (!matches(subscriber->subscription, end)) continue;
    Delivery delivery = new_delivery(subscriber->subscription, happening_of(end), drafted);
    delivery.object = end.kind;
    delivery.job = end.name;
    delivery.body = payload_of(end, delivery.id, delivery.created);
    drafts.push_back(std::move(delivery));
  }
  return drafts;
}

std::string Notifications::payload_for_hook(const job::Job& job, Happening happening) {
  return payload_of(job, happening, base::random_name(parts_.random, kDeliveryIdLength),
                    unique_time(), PayloadLines::kOfFailure);
}

std::string Notifications::payload_for_hook(const job::ObjectEnd& end) {
  return payload_of(end, base::random_name(parts_.random, kDeliveryIdLength), unique_time());
}

void Notifications::take(std::vector<Delivery> deliveries) {
  const base::Time now = parts_.clock.now();
  std::set<std::string> projects;
  for (Delivery& each : deliveries) {
    if (!subscribers_.contains(each.subscription)) continue;
    projects.insert(each.project);
    deliveries_.put(std::move(each));
  }
  if (projects.empty()) return;
  for (const std::string& project : projects) send_due(project);
  after_look(now);
}

// --- projects

void Notifications::add_removals_of_project(const std::string& project,
                                            NotificationChanges& changes) const {
  const auto ids = of_project_.find(project);
  if (ids != of_project_.end()) {
    changes.removed_subscriptions.insert(changes.removed_subscriptions.end(), ids->second.begin(),
                                         ids->second.end());
  }
  std::vector<std::string> deliveries = deliveries_.of_project(project);
  changes.removed_deliveries.insert(changes.removed_deliveries.end(),
                                    std::make_move_iterator(deliveries.begin()),
                                    std::make_move_iterator(deliveries.end()));
}

void Notifications::project_is_gone(const std::string& project) {
  NotificationChanges gone;
  add_removals_of_project(project, gone);
  for (const std::string& id : gone.removed_deliveries) deliveries_.erase(id);
  for (const std::string& id : gone.removed_subscriptions) remove_subscriber(id);
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
  NotificationChanges changes;
  deliveries_.add_changes(changes);
  for (const std::string& id : changed_subscriptions_) {
    const auto found = subscribers_.find(id);
    if (found != subscribers_.end()) changes.subscriptions.push_back(found->second.subscription);
  }
  const auto kept = parts_.keep(changes);
  if (kept) {
    deliveries_.changes_are_kept();
    changed_subscriptions_.clear();
    return;
  }
  // If the server ends before this succeeds, arrived notifications are sent once more.
  base::log_error("results of notifications are not stored yet: " + kept.error().to_string());
  keep_again_ = parts_.loop.after(kKeepPause, [this] { keep_soon(); });
}

/// Later than every time that it returned before, so that notifications keep the order of the
/// events.
base::Time Notifications::unique_time() {
  last_time_ = std::max(parts_.clock.now(), last_time_ + std::chrono::nanoseconds(1));
  return last_time_;
}

// Deliveries: each is sent when it is due, and again, until it arrives or becomes a dead letter.

using base::Error;
using base::ErrorCode;

// --- sending

void Notifications::look() {
  timer_.reset();  // the timer's work is done here, for all projects
  const base::Time now = parts_.clock.now();
  std::set<std::string> projects;
  for (const std::string& id : deliveries_.with_due(std::max(now, last_time_))) {
    const auto found = subscribers_.find(id);
    if (found != subscribers_.end()) projects.insert(found->second.subscription.project);
  }
  for (const std::string& project : projects) send_due(project);
  after_look(now);
}

void Notifications::look_at(const std::string& project) {
  const base::Time now = parts_.clock.now();
  send_due(project);
  after_look(now);
}

/// `now`: read before the due deliveries were sent, so that none becomes due unnoticed in between.
void Notifications::after_look(base::Time now) {
  if (deliveries_.forget_dead(now - kDeadAreKept, kMostDead)) keep_soon();
  wake_in_time(now);
}

/// The subscriptions of a project take turns: the one that was sent to least recently comes first.
void Notifications::send_due(const std::string& project) {
  std::vector<Subscriber*> next = subscribers_of(project);
  std::erase_if(next, [this](const Subscriber* each) {
    return !each->under_way.empty() || deliveries_.due(each->subscription.id) == 0;
  });
  std::stable_sort(next.begin(), next.end(), [](const Subscriber* left, const Subscriber* right) {
    return left->last_turn < right->last_turn;
  });
  for (Subscriber* const each : next) send_next(*each);
}

/// The requests of the project to receivers whose last attempt failed.
size_t Notifications::failed_under_way(const std::string& project) {
  const std::vector<Subscriber*> all = subscribers_of(project);
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const Subscriber* each) {
    return each->has_failed && !each->under_way.empty();
  }));
}

void Notifications::send_next(Subscriber& subscriber) {
  const Subscription& subscription = subscriber.subscription;
  if (!subscriber.under_way.empty()) return;
  // If the clock was set back, a unique time may be far ahead of it: such a delivery is due at once.
  // The pause before another attempt is counted from the clock.
  const Delivery* const due =
      deliveries_.first_due(subscription.id, parts_.clock.now(), last_time_);
  if (due == nullptr) return;
  size_t& of_project = under_way_[subscription.project];
  if (of_project >= kMostUnderWay) return;
  // A slow receiver takes the whole time limit of a request, so these leave the last one to others.
  const bool may_be_slow = subscriber.has_failed;
  if (may_be_slow && failed_under_way(subscription.project) >= kMostUnderWay - 1) return;
  ++of_project;
  subscriber.last_turn = ++turns_;
  const std::string id = due->id;
  deliveries_.take(id);
  subscriber.under_way = id;
  const Delivery& delivery = *deliveries_.find(id);
  auto settled = [this, of = subscription.id, project = delivery.project, id,
                  alive = std::weak_ptr<bool>(alive_)](const DeliveryOutcome& outcome) {
    if (alive.expired()) return;
    end_request(project);
    settle(project, of, id, outcome);
  };
  auto request =
      notification_to(subscription, parts_.box, id, event_name(delivery.happening, delivery.object),
                      delivery.body, parts_.clock.now());
  if (request) return parts_.send(*std::move(request), std::move(settled));
  parts_.loop.post(
      [settled, fault = std::move(request).error()] { settled(DeliveryOutcome{.fault = fault}); });
}

/// Checks of addresses and pings precede deliveries, because a caller waits for them.
Result<void> Notifications::begin_probe(const std::string& project, std::function<void()> probe) {
  size_t& of_project = under_way_[project];
  if (of_project < kMostUnderWay) {
    ++of_project;
    probe();
    return {};
  }
  auto& waiting = waiting_probes_[project];
  if (waiting.size() >= kMostProbesWaiting) {
    return Error{.code = ErrorCode::kExhausted,
                 .what = "project '" + project + "' has " + std::to_string(kMostProbesWaiting) +
                         " new subscriptions and tests that wait for their turn",
                 .advice = "try again when they are answered",
                 .detail = std::make_shared<const TooManyProbes>()};
  }
  waiting.push_back(std::move(probe));
  return {};
}

/// A delivery, a check or a ping of the project has ended. The caller calls look().
void Notifications::end_request(const std::string& project) {
  const auto waiting = waiting_probes_.find(project);
  if (waiting == waiting_probes_.end()) {
    --under_way_[project];
    return;
  }
  const std::function<void()> next = std::move(waiting->second.front());
  waiting->second.pop_front();
  if (waiting->second.empty()) waiting_probes_.erase(waiting);
  next();
}

void Notifications::settle(const std::string& project, const std::string& subscription,
                           const std::string& id, const DeliveryOutcome& outcome) {
  const auto subscriber = subscribers_.find(subscription);
  const bool exists = subscriber != subscribers_.end();
  if (exists && subscriber->second.under_way == id) subscriber->second.under_way.clear();
  // It may have been removed meanwhile.
  if (!exists || deliveries_.find(id) == nullptr) return look_at(project);
  if (outcome.is_cancelled) return deliveries_.put_back(id);
  const bool has_arrived =
      !outcome.fault && verdict_on(outcome.status) == DeliveryVerdict::kArrived;
  subscriber->second.has_failed = !has_arrived;
  if (has_arrived) {
    deliveries_.erase(id);
    deliveries_.mark_changed(id);
  } else {
    attempt_failed(subscriber->second, id, outcome);
  }
  keep_soon();
  look_at(project);
}

void Notifications::attempt_failed(Subscriber& subscriber, const std::string& id,
                                   const DeliveryOutcome& outcome) {
  deliveries_.count_attempt(id, fault_of(outcome));
  const Delivery& delivery = *deliveries_.find(id);
  const DeliveryVerdict verdict = outcome.is_forbidden ? DeliveryVerdict::kNever
                                  : outcome.fault      ? DeliveryVerdict::kAgain
                                                       : verdict_on(outcome.status);
  std::optional<base::Time> next;
  if (verdict == DeliveryVerdict::kAgain) {
    const double dice = static_cast<double>(parts_.random.bytes<1>()[0]) / 255.0;
    next = next_attempt(schedule_, delivery.created, parts_.clock.now(), delivery.attempts, dice);
  }
  if (next) return deliveries_.retry_at(id, *next);
  bury(id, fault_of(outcome));
  if (verdict == DeliveryVerdict::kGone) receiver_is_gone(subscriber);
}

/// Waiting and later notifications are not sent.
void Notifications::receiver_is_gone(Subscriber& subscriber) {
  subscriber.subscription.gone = unique_time();
  const std::string& id = subscriber.subscription.id;
  changed_subscriptions_.insert(id);
  for (const std::string& delivery : deliveries_.take_all(id)) {
    bury(delivery, "the receiver is gone");
  }
}

/// REQUIRES: the delivery was taken from the due ones.
void Notifications::bury(const std::string& id, const std::string& fault) {
  const Delivery& delivery = deliveries_.bury(id, unique_time(), fault);
  base::log_warning("a notification could not be delivered",
                    {{"project", delivery.project},
                     {"subscription", delivery.subscription},
                     {"delivery", delivery.id},
                     {"attempts", delivery.attempts},
                     {"fault", delivery.fault}});
}

std::optional<base::Time> Notifications::next_due() const {
  return deliveries_.next_due(parts_.clock.now());
}

/// Sets the timer for the next delivery that is not due yet. A delivery that is due and was not sent
/// waits for another request of its project, whose end calls look_at(). If the timer has expired,
/// and the loop has not called look() yet, look() is posted: other projects depend on it.
void Notifications::wake_in_time(base::Time now) {
  if (timer_ && wake_at_ <= now) {
    parts_.loop.post([this, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) look();
    });
  }
  timer_.reset();
  const auto next = deliveries_.next_due(now);
  if (!next && !deliveries_.has_dead()) return;
  std::chrono::nanoseconds pause = kLongestSleep;
  if (next) pause = std::min<std::chrono::nanoseconds>(pause, *next - now);
  wake_at_ = now + pause;
  timer_ = parts_.loop.after(pause, [this] { look(); });
}

// --- dead letters

namespace {

/// `id`: of a dead letter; empty: of none of them.
Error no_room_for_another_try(const std::string& id) {
  const std::string most = std::to_string(Notifications::kMostWaiting);
  return {.code = ErrorCode::kConflict,
          .what = id.empty()
                      ? "each receiver of the dead letters has " + most + " notifications that wait"
                      : most + " notifications already wait for the receiver of '" + id + "'",
          .advice = "try again when some of these have been delivered"};
}

}  // namespace

Result<int> Notifications::retry(const std::string& project, const std::vector<std::string>& ids,
                                 const access::Actor& by) {
  NotificationChanges changes;
  std::set<std::string_view> missing(ids.begin(), ids.end());
  DraftCounts revived;
  bool is_full = false;
  std::vector<Delivery> letters = dead(project);
  std::reverse(letters.begin(), letters.end());
  for (const Delivery& letter : letters) {
    if (!ids.empty() && missing.erase(letter.id) == 0) continue;
    const Subscription& subscription = subscribers_.at(letter.subscription).subscription;
    if (subscription.gone && !ids.empty()) {
      return Error{
          .code = ErrorCode::kConflict,
          .what = "the receiver of '" + letter.id + "' has answered that it no longer exists",
          .advice = "a successful ping activates it again: muster notify test " + subscription.id};
    }
    if (subscription.gone) continue;
    size_t& of_subscription = revived[letter.subscription];
    if (deliveries_.due(letter.subscription) + of_subscription >= kMostWaiting) {
      if (!ids.empty()) return no_room_for_another_try(letter.id);
      is_full = true;
      continue;
    }
    ++of_subscription;
    Delivery again = letter;
    again.created = unique_time();
    again.next = again.created;
    again.attempts = 0;
    again.dead.reset();
    changes.deliveries.push_back(std::move(again));
  }
  if (!missing.empty()) {
    return Error{.code = ErrorCode::kNotFound,
                 .what = "the project has no dead letter '" + std::string(*missing.begin()) + "'",
                 .advice = "muster notify dead shows the dead letters"};
  }
  if (changes.deliveries.empty() && is_full) return no_room_for_another_try("");
  if (changes.deliveries.empty()) return 0;
  access::AuditRecord audit = record({.project = project}, "notification.retry", by);
  audit.target = std::to_string(changes.deliveries.size()) + " dead letters";
  changes.audit.push_back(std::move(audit));
  MUSTER_CHECK(parts_.keep(changes));
  for (Delivery& delivery : changes.deliveries) {
    deliveries_.erase(delivery.id);
    deliveries_.put(std::move(delivery));
  }
  look_at(project);
  return static_cast<int>(changes.deliveries.size());
}

// Subscriptions and their keys.

std::vector<Subscription> Notifications::subscriptions(const std::string& project) const {
  std::vector<Subscription> found;
  const auto ids = of_project_.find(project);
  if (ids == of_project_.end()) return found;
  for (const std::string& id : ids->second) found.push_back(subscribers_.at(id).subscription);
  std::sort(found.begin(), found.end(), [](const Subscription& left, const Subscription& right) {
    return std::pair(left.created, left.id) < std::pair(right.created, right.id);
  });
  return found;
}

void Notifications::add(SubscriptionRequest request, const access::Actor& by,
                        std::function<void(Result<IssuedSubscription>)> done) {
  if (auto faults = faults_of(request); !faults.empty()) {
    return done(Error{.code = ErrorCode::kInvalid,
                      .what = "the subscription is invalid",
                      .faults = std::move(faults)});
  }
  auto receiver = receiver_of(request.url);
  if (!receiver) return done(std::move(receiver).error());
  if (const auto room = has_room(request.project); !room) return done(room.error());
  const std::string project = request.project;
  auto checked = [this, request = std::move(request), by, done](Result<void> allowed) {
    end_request(request.project);
    look_at(request.project);
    if (!allowed) {
      Error error = std::move(allowed).error();
      // An unknown host name is an error of the caller.
      if (error.code == ErrorCode::kUnavailable) error.code = ErrorCode::kInvalid;
      return done(std::move(error));
    }
    done(keep_new(request, by));
  };
  const auto begun =
      begin_probe(project, [this, receiver = *std::move(receiver), checked = std::move(checked)] {
        parts_.check(receiver, checked);
      });
  if (!begun) done(begun.error());
}

Result<void> Notifications::has_room(const std::string& project) const {
  if (subscriptions(project).size() < kMostOfProject) return {};
  return Error{.code = ErrorCode::kExhausted,
               .what = "project '" + project + "' has " + std::to_string(kMostOfProject) +
                       " subscriptions, which is the limit",
               .advice = "remove some: muster notify remove"};
}

Result<IssuedSubscription> Notifications::keep_new(const SubscriptionRequest& request,
                                                   const access::Actor& by) {
  if (!parts_.has_project(request.project)) {
    return Error{.code = ErrorCode::kNotFound,
                 .what = "project '" + request.project + "' was removed"};
  }
  // Other subscriptions may have been added during the check of the address.
  MUSTER_CHECK(has_room(request.project));
  Subscription subscription = subscription_of(request, by, unique_time(), parts_.random);
  std::string key = seal_new_key(subscription, parts_.box, parts_.random);
  MUSTER_CHECK(parts_.keep(
      {.subscriptions = {subscription}, .audit = {record(subscription, "notification.add", by)}}));
  add_subscriber(subscription);
  return IssuedSubscription{.subscription = std::move(subscription), .key = std::move(key)};
}

Notifications::Subscriber* Notifications::find(const std::string& project, const std::string& id) {
  const auto found = subscribers_.find(id);
  const bool is_there =
      found != subscribers_.end() && found->second.subscription.project == project;
  return is_there ? &found->second : nullptr;
}

Result<void> Notifications::remove(const std::string& project, const std::string& id,
                                   const access::Actor& by) {
  const Subscriber* const subscriber = find(project, id);
  if (subscriber == nullptr) return unknown_subscription(id);
  NotificationChanges changes{
      .removed_subscriptions = {id},
      .removed_deliveries = deliveries_.of_subscription(id),
      .audit = {record(subscriber->subscription, "notification.remove", by)}};
  MUSTER_CHECK(parts_.keep(changes));
  for (const std::string& delivery : changes.removed_deliveries) deliveries_.erase(delivery);
  remove_subscriber(id);
  return {};
}

Result<IssuedSubscription> Notifications::rotate(const std::string& project, const std::string& id,
                                                 const access::Actor& by) {
  Subscriber* const subscriber = find(project, id);
  if (subscriber == nullptr) return unknown_subscription(id);
  Subscription changed = subscriber->subscription;
  std::string key = seal_new_key(changed, parts_.box, parts_.random);
  MUSTER_CHECK(parts_.keep(
      {.subscriptions = {changed}, .audit = {record(changed, "notification.rotate", by)}}));
  subscriber->subscription = changed;
  return IssuedSubscription{.subscription = std::move(changed), .key = std::move(key)};
}

void Notifications::test(const std::string& project, const std::string& id, const access::Actor& by,
                         std::function<void(Result<DeliveryOutcome>)> done) {
  Subscriber* const subscriber = find(project, id);
  if (subscriber == nullptr) return done(unknown_subscription(id));
  if (subscriber->is_being_tested) {
    return done(Error{.code = ErrorCode::kConflict,
                      .what = "a test of this subscription is already running"});
  }
  const auto send = [this, project, id, by, done] {
    // While the ping waited for its turn, the subscription may have been removed, or got a new key.
    const Subscriber* const current = find(project, id);
    if (current == nullptr) {
      pinged(project, id);
      return done(unknown_subscription(id));
    }
    const std::string ping = base::random_name(parts_.random, kDeliveryIdLength);
    const base::Time now = parts_.clock.now();
    auto request =
        notification_to(current->subscription, parts_.box, ping, event_name(Happening::kPing),
                        ping_payload(project, ping, now), now);
    if (!request) {
      pinged(project, id);
      return done(std::move(request).error());
    }
    const auto kept =
        parts_.keep({.audit = {record(current->subscription, "notification.test", by)}});
    if (!kept) {
      pinged(project, id);
      return done(kept.error());
    }
    parts_.send(*std::move(request), [this, project, id, done](DeliveryOutcome outcome) {
      Subscriber* const tested = pinged(project, id);
      if (tested == nullptr) return done(unknown_subscription(id));
      if (verdict_on(outcome.status) == DeliveryVerdict::kArrived && tested->subscription.gone) {
        tested->subscription.gone.reset();
        changed_subscriptions_.insert(id);
        keep_soon();
      }
      done(std::move(outcome));
    });
  };
  subscriber->is_being_tested = true;
  const auto begun = begin_probe(project, send);
  if (begun) return;
  subscriber->is_being_tested = false;
  done(begun.error());
}

/// A ping has ended. Returns its subscription, unless that was removed meanwhile.
Notifications::Subscriber* Notifications::pinged(const std::string& project,
                                                 const std::string& id) {
  end_request(project);
  look_at(project);
  Subscriber* const subscriber = find(project, id);
  if (subscriber != nullptr) subscriber->is_being_tested = false;
  return subscriber;
}

}  // namespace muster::notify
