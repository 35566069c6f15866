
#include "notify/notifications.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "notify/courier.h"
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
    delivery.body =
        payload_of(job, happening, delivery.id, now,
                   subscription.with_lines ? PayloadLines::kOfFailure : PayloadLines::kNone);
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
                    PayloadLines::kOfFailure);
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

void Notifications::add_what_goes_with(const std::string& project,
                                       NotificationChanges& changes) const {
  for (const auto& [id, queue] : queues_) {
    if (queue.subscription.project == project) changes.removed_subscriptions.push_back(id);
  }
  for (const auto& [id, delivery] : deliveries_) {
    if (delivery.project == project) changes.removed_deliveries.push_back(id);
  }
}

void Notifications::project_is_gone(const std::string& project) {
  NotificationChanges gone;
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
  NotificationChanges changes;
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
  // If the server ends before this succeeds, arrived notifications are sent once more.
  base::log_error("results of notifications are not stored yet: " + kept.error().to_string());
  keep_again_ = parts_.loop.after(kKeepPause, [this] { keep_soon(); });
}

/// Unique times, so that notifications keep the order of the events.
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

// Deliveries: each is sent when it is due, and again, until it arrives or becomes a dead letter.

using base::Error;
using base::ErrorCode;

namespace {

constexpr std::chrono::hours kLongestSleep{1};

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

std::string fault_of(const DeliveryOutcome& outcome) {
  if (outcome.fault) return outcome.fault->what;
  std::string fault = "answered " + std::to_string(outcome.status);
  if (outcome.status >= 300 && outcome.status < 400) fault += ", and no redirect is followed";
  if (!outcome.answer.empty()) fault += ": " + shortened(outcome.answer);
  return fault;
}

// --- sending

void Notifications::look() {
  for (auto& [id, queue] : queues_) send_next(queue);
  std::vector<std::string> projects;
  for (const auto& [project, letters] : dead_) projects.push_back(project);
  for (const std::string& project : projects) forget_old_dead(project);
  wake_in_time();
}

void Notifications::send_next(Queue& queue) {
  if (!queue.under_way.empty() || queue.due.empty()) return;
  // A stamp may be ahead of the clock, by much if the clock was set back.
  if (queue.due.begin()->first > std::max(parts_.clock.now(), last_stamp_)) return;
  size_t& of_project = under_way_[queue.subscription.project];
  if (of_project >= kMostUnderWay) return;
  ++of_project;
  const std::string id = queue.due.extract(queue.due.begin()).value().second;
  queue.under_way = id;
  const Delivery& delivery = deliveries_.at(id);
  auto settled = [this, subscription = queue.subscription.id, project = delivery.project, id,
                  alive = std::weak_ptr<bool>(alive_)](const DeliveryOutcome& outcome) {
    if (alive.expired()) return;
    --under_way_[project];
    settle(subscription, id, outcome);
  };
  auto errand = errand_of(queue.subscription, id, delivery.happening, delivery.body);
  if (errand) return parts_.send(*std::move(errand), std::move(settled));
  parts_.loop.post(
      [settled, fault = std::move(errand).error()] { settled(DeliveryOutcome{.fault = fault}); });
}

void Notifications::settle(const std::string& subscription, const std::string& id,
                           const DeliveryOutcome& outcome) {
  const auto queue = queues_.find(subscription);
  const auto delivery = deliveries_.find(id);
  if (queue != queues_.end() && queue->second.under_way == id) queue->second.under_way.clear();
  // It may have been removed meanwhile.
  if (queue == queues_.end() || delivery == deliveries_.end()) return look();
  if (outcome.is_cancelled) {
    queue->second.due.emplace(delivery->second.next, id);
    return;
  }
  changed_.insert(id);
  if (!outcome.fault && verdict_on(outcome.status) == DeliveryVerdict::kArrived) {
    erase(id);
  } else {
    tried_in_vain(queue->second, delivery->second, outcome);
  }
  keep_soon();
  look();
}

void Notifications::tried_in_vain(Queue& queue, Delivery& delivery,
                                  const DeliveryOutcome& outcome) {
  ++delivery.attempts;
  delivery.fault = fault_of(outcome);
  const DeliveryVerdict verdict = outcome.is_forbidden ? DeliveryVerdict::kNever
                                  : outcome.fault      ? DeliveryVerdict::kAgain
                                                       : verdict_on(outcome.status);
  std::optional<base::Time> next;
  if (verdict == DeliveryVerdict::kAgain) {
    const double dice = static_cast<double>(parts_.random.bytes<1>()[0]) / 255.0;
    next = next_attempt(schedule_, delivery.created, parts_.clock.now(), delivery.attempts, dice);
  }
  if (next) {
    delivery.next = *next;
    queue.due.emplace(*next, delivery.id);
    return;
  }
  bury(delivery, delivery.fault);
  if (verdict == DeliveryVerdict::kGone) is_gone(queue);
}

/// The receiver no longer exists: waiting and later notifications are not sent.
void Notifications::is_gone(Queue& queue) {
  queue.subscription.gone = stamp();
  changed_subscriptions_.insert(queue.subscription.id);
  const Order waits = std::exchange(queue.due, {});
  for (const auto& [when, id] : waits) bury(deliveries_.at(id), "the receiver is gone");
}

/// REQUIRES: it is in no queue any more.
void Notifications::bury(Delivery& delivery, std::string fault) {
  delivery.fault = std::move(fault);
  delivery.dead = stamp();
  dead_[delivery.project].emplace(*delivery.dead, delivery.id);
  changed_.insert(delivery.id);
  --waiting_;
  base::log_warning("a notification could not be delivered",
                    {{"project", delivery.project},
                     {"subscription", delivery.subscription},
                     {"delivery", delivery.id},
                     {"attempts", delivery.attempts},
                     {"fault", delivery.fault}});
}

/// From the queue or the dead letters.
void Notifications::erase(const std::string& id) {
  const auto found = deliveries_.find(id);
  if (found == deliveries_.end()) return;
  const Delivery& delivery = found->second;
  if (delivery.dead) {
    const auto letters = dead_.find(delivery.project);
    letters->second.erase({*delivery.dead, id});
    if (letters->second.empty()) dead_.erase(letters);
  } else {
    --waiting_;
    const auto queue = queues_.find(delivery.subscription);
    if (queue != queues_.end()) queue->second.due.erase({delivery.next, id});
  }
  deliveries_.erase(found);
}

void Notifications::forget_old_dead(const std::string& project) {
  const base::Time before = parts_.clock.now() - kDeadAreKept;
  while (dead_.contains(project)) {
    const Order& letters = dead_.at(project);
    const auto oldest = *letters.begin();
    if (letters.size() <= kMostDead && oldest.first >= before) return;
    erase(oldest.second);
    changed_.insert(oldest.second);
    keep_soon();
  }
}

std::optional<base::Time> Notifications::next_due() const {
  std::optional<base::Time> next;
  for (const auto& [id, queue] : queues_) {
    if (queue.due.empty() || !queue.under_way.empty()) continue;
    if (!next || queue.due.begin()->first < *next) next = queue.due.begin()->first;
  }
  return next;
}

void Notifications::wake_in_time() {
  timer_.reset();
  const auto next = next_due();
  if (!next && dead_.empty()) return;
  const std::chrono::nanoseconds longest = kLongestSleep;
  const auto pause = next ? *next - parts_.clock.now() : longest;
  // A due delivery that was not sent waits for another delivery of its project, whose end calls
  // look().
  if (pause <= std::chrono::nanoseconds(0)) return;
  timer_ = parts_.loop.after(std::min(pause, longest), [this] { look(); });
}

// --- dead letters

std::vector<Delivery> Notifications::dead(const std::string& project) const {
  std::vector<Delivery> found;
  const auto letters = dead_.find(project);
  if (letters == dead_.end()) return found;
  for (auto letter = letters->second.rbegin(); letter != letters->second.rend(); ++letter) {
    found.push_back(deliveries_.at(letter->second));
  }
  return found;
}

Result<int> Notifications::retry(const std::string& project, const std::vector<std::string>& ids,
                                 const access::Actor& by) {
  NotificationChanges changes;
  const base::Time now = stamp();
  for (const Delivery& letter : dead(project)) {
    if (!ids.empty() && std::find(ids.begin(), ids.end(), letter.id) == ids.end()) continue;
    const Subscription& subscription = queues_.at(letter.subscription).subscription;
    if (subscription.gone && !ids.empty()) {
      return Error{
          .code = ErrorCode::kConflict,
          .what = "the receiver of '" + letter.id + "' has answered that it no longer exists",
          .advice = "a successful ping activates it again: muster notify test " + subscription.id};
    }
    if (subscription.gone) continue;
    Delivery again = letter;
    again.created = now;
    again.next = now;
    again.attempts = 0;
    again.dead.reset();
    changes.deliveries.push_back(std::move(again));
  }
  for (const std::string& id : ids) {
    const bool is_there = std::any_of(changes.deliveries.begin(), changes.deliveries.end(),
                                      [&](const Delivery& delivery) { return delivery.id == id; });
    if (is_there) continue;
    return Error{.code = ErrorCode::kNotFound,
                 .what = "the project has no dead letter '" + id + "'",
                 .advice = "muster notify dead shows the dead letters"};
  }
  if (changes.deliveries.empty()) return 0;
  access::AuditRecord told = record(by, "notification.retry", {.project = project});
  told.target = std::to_string(changes.deliveries.size()) + " dead letters";
  changes.audit.push_back(std::move(told));
  MUSTER_CHECK(parts_.keep(changes));
  for (Delivery& delivery : changes.deliveries) {
    erase(delivery.id);
    put(std::move(delivery));
  }
  look();
  return static_cast<int>(changes.deliveries.size());
}

// Subscriptions, their keys, and what is sent to them.

namespace {

constexpr size_t kIdLength = 12;

/// The name under which a key is sealed. No secret has a name with a blank.
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

void Notifications::add(SubscriptionRequest request, const access::Actor& by,
                        std::function<void(Result<IssuedSubscription>)> done) {
  if (auto faults = faults_of(request); !faults.empty()) {
    return done(Error{.code = ErrorCode::kInvalid,
                      .what = "the subscription is invalid",
                      .faults = std::move(faults)});
  }
  auto receiver = receiver_of(request.url);
  if (!receiver) return done(std::move(receiver).error());
  parts_.check(*std::move(receiver), [this, request = std::move(request), by,
                                      done = std::move(done)](Result<void> allowed) {
    if (!allowed) {
      Error error = std::move(allowed).error();
      // An unknown host name is an error of the caller.
      if (error.code == ErrorCode::kUnavailable) error.code = ErrorCode::kInvalid;
      return done(std::move(error));
    }
    done(keep_new(request, by));
  });
}

Result<IssuedSubscription> Notifications::keep_new(const SubscriptionRequest& request,
                                                   const access::Actor& by) {
  if (!parts_.has_project(request.project)) {
    return Error{.code = ErrorCode::kNotFound,
                 .what = "there is no project '" + request.project + "' any more"};
  }
  if (subscriptions(request.project).size() >= kMostOfProject) {
    return Error{.code = ErrorCode::kExhausted,
                 .what = "project '" + request.project + "' has " + std::to_string(kMostOfProject) +
                         " subscriptions, which is the limit",
                 .advice = "remove some: muster notify remove"};
  }
  Subscription subscription{.id = base::random_name(parts_.random, kIdLength),
                            .project = request.project,
                            .url = request.url,
                            .job = request.job,
                            .labels = request.labels,
                            .with_lines = request.with_lines,
                            .created = stamp(),
                            .created_by = by.user};
  for (const Happening happening : job::all_happenings()) {
    const bool wanted =
        std::find(request.on.begin(), request.on.end(), happening) != request.on.end();
    if (wanted) subscription.on.push_back(happening);
  }
  std::string key = seal_new_key(subscription);
  MUSTER_CHECK(parts_.keep(
      {.subscriptions = {subscription}, .audit = {record(by, "notification.add", subscription)}}));
  queues_[subscription.id].subscription = subscription;
  return IssuedSubscription{.subscription = std::move(subscription), .key = std::move(key)};
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
          .advice = "muster notify list shows the subscriptions"};
}

Result<void> Notifications::remove(const std::string& project, const std::string& id,
                                   const access::Actor& by) {
  const Queue* const queue = find(project, id);
  if (queue == nullptr) return unknown(id);
  NotificationChanges changes{.removed_subscriptions = {id},
                              .audit = {record(by, "notification.remove", queue->subscription)}};
  for (const auto& [delivery_id, delivery] : deliveries_) {
    if (delivery.subscription == id) changes.removed_deliveries.push_back(delivery_id);
  }
  MUSTER_CHECK(parts_.keep(changes));
  for (const std::string& delivery : changes.removed_deliveries) erase(delivery);
  queues_.erase(id);
  return {};
}

Result<IssuedSubscription> Notifications::rotate(const std::string& project, const std::string& id,
                                                 const access::Actor& by) {
  Queue* const queue = find(project, id);
  if (queue == nullptr) return unknown(id);
  Subscription changed = queue->subscription;
  std::string key = seal_new_key(changed);
  MUSTER_CHECK(parts_.keep(
      {.subscriptions = {changed}, .audit = {record(by, "notification.rotate", changed)}}));
  queue->subscription = changed;
  return IssuedSubscription{.subscription = std::move(changed), .key = std::move(key)};
}

void Notifications::test(const std::string& project, const std::string& id, const access::Actor& by,
                         std::function<void(Result<DeliveryOutcome>)> done) {
  Queue* const queue = find(project, id);
  if (queue == nullptr) return done(unknown(id));
  if (queue->is_being_tested) {
    return done(Error{.code = ErrorCode::kConflict, .what = "a test of it is running already"});
  }
  const std::string ping = base::random_name(parts_.random, kDeliveryIdLength);
  auto errand = errand_of(queue->subscription, ping, Happening::kPing,
                          ping_payload(project, ping, parts_.clock.now()));
  if (!errand) return done(std::move(errand).error());
  const auto kept = parts_.keep({.audit = {record(by, "notification.test", queue->subscription)}});
  if (!kept) return done(kept.error());
  queue->is_being_tested = true;
  parts_.send(
      *std::move(errand), [this, project, id, done = std::move(done)](DeliveryOutcome outcome) {
        Queue* const tested = find(project, id);
        if (tested == nullptr) return done(unknown(id));
        tested->is_being_tested = false;
        if (verdict_on(outcome.status) == DeliveryVerdict::kArrived && tested->subscription.gone) {
          tested->subscription.gone.reset();
          changed_subscriptions_.insert(id);
          keep_soon();
        }
        done(std::move(outcome));
      });
}

Result<OutgoingNotification> Notifications::errand_of(const Subscription& subscription,
                                                      const std::string& id, Happening happening,
                                                      const std::string& body) const {
  MUSTER_TRY(Receiver receiver, receiver_of(subscription.url));
  auto key =
      parts_.box.open(subscription.sealed_key, subscription.project, seal_name(subscription.id));
  if (!key) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "its key was sealed with another key of the server",
                 .advice = "make a new one: muster notify rotate " + subscription.id};
  }
  return OutgoingNotification{
      .receiver = std::move(receiver),
      .headers = {{"content-type", "application/json"},
                  {"user-agent", "muster"},
                  {kEventHeader, event_name(happening)},
                  {kDeliveryHeader, id},
                  {kSignatureHeader, signature_of(*key, parts_.clock.now(), body)}},
      .body = body};
}

std::vector<base::Fault> faults_of(const SubscriptionRequest& request) {
  constexpr size_t kLongestPattern = 128;
  constexpr size_t kMostLabels = 16;
  std::vector<base::Fault> faults;
  if (const auto receiver = receiver_of(request.url); !receiver) {
    const auto* const fault = base::detail_of<UrlFault>(receiver.error());
    faults.push_back(
        {.field = "url", .what = fault == nullptr ? receiver.error().what : fault->what});
  }
  if (request.on.empty()) faults.push_back({.field = "on", .what = "names no event"});
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
  }
  return faults;
}

}  // namespace muster::notify
