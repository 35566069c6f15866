// Deliveries on their way: each is sent when it is due, and again, until it arrives or is a dead
// letter.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "notify/notifications.h"

namespace muster::notify {

using base::Error;
using base::ErrorCode;
using job::Delivery;
using job::Subscription;

namespace {

constexpr std::chrono::hours kLongestSleep{1};

/// The text without what could end a line or colour a terminal, and not much of it.
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

std::string fault_of(const Outcome& outcome) {
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
  // A stamp may be a little ahead of the clock, or much, where that was set back.
  if (queue.due.begin()->first > std::max(parts_.clock.now(), last_stamp_)) return;
  size_t& of_project = under_way_[queue.subscription.project];
  if (of_project >= kMostUnderWay) return;
  ++of_project;
  const std::string id = queue.due.extract(queue.due.begin()).value().second;
  queue.under_way = id;
  const Delivery& delivery = deliveries_.at(id);
  auto settled = [this, subscription = queue.subscription.id, project = delivery.project, id,
                  alive = std::weak_ptr<bool>(alive_)](const Outcome& outcome) {
    if (alive.expired()) return;
    --under_way_[project];
    settle(subscription, id, outcome);
  };
  auto errand = errand_of(queue.subscription, id, delivery.happening, delivery.body);
  if (errand) return parts_.send(*std::move(errand), std::move(settled));
  parts_.loop.post(
      [settled, fault = std::move(errand).error()] { settled(Outcome{.fault = fault}); });
}

void Notifications::settle(const std::string& subscription, const std::string& id,
                           const Outcome& outcome) {
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
  if (!outcome.fault && verdict_on(outcome.status) == Verdict::kArrived) {
    erase(id);
  } else {
    tried_in_vain(queue->second, delivery->second, outcome);
  }
  keep_soon();
  look();
}

void Notifications::tried_in_vain(Queue& queue, Delivery& delivery, const Outcome& outcome) {
  ++delivery.attempts;
  delivery.fault = fault_of(outcome);
  const Verdict verdict = outcome.is_forbidden ? Verdict::kNever
                          : outcome.fault      ? Verdict::kAgain
                                               : verdict_on(outcome.status);
  std::optional<base::Time> next;
  if (verdict == Verdict::kAgain) {
    const double dice = static_cast<double>(parts_.random.bytes<1>()[0]) / 255.0;
    next = next_attempt(schedule_, delivery.created, parts_.clock.now(), delivery.attempts, dice);
  }
  if (next) {
    delivery.next = *next;
    queue.due.emplace(*next, delivery.id);
    return;
  }
  bury(delivery, delivery.fault);
  if (verdict == Verdict::kGone) is_gone(queue);
}

/// The receiver wants no more: neither what waits nor what is to come.
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

/// From wherever it is.
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
  // What is due and was not sent waits for another of its project, whose end calls look().
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
  Changes changes;
  const base::Time now = stamp();
  for (const Delivery& letter : dead(project)) {
    if (!ids.empty() && std::find(ids.begin(), ids.end(), letter.id) == ids.end()) continue;
    const Subscription& subscription = queues_.at(letter.subscription).subscription;
    if (subscription.gone && !ids.empty()) {
      return Error{
          .code = ErrorCode::kConflict,
          .what = "the receiver of '" + letter.id + "' has answered that it is gone",
          .advice = "a ping that arrives brings it back: muster notify test " + subscription.id};
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
                 .what = "no dead letter of the project is '" + id + "'",
                 .advice = "muster notify dead shows them"};
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

}  // namespace muster::notify
