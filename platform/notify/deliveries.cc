#include "notify/deliveries.h"

#include <algorithm>
#include <utility>

namespace muster::notify {

using job::Delivery;

template <class Change>
void DeliveryTable::change_due(const std::string& subscription, const Change& change) {
  Order& order = due_[subscription];
  if (!order.empty()) heads_.erase({order.begin()->first, subscription});
  change(order);
  if (order.empty()) {
    due_.erase(subscription);
  } else {
    heads_.emplace(order.begin()->first, subscription);
  }
}

void DeliveryTable::put(Delivery delivery) {
  const std::string id = delivery.id;
  if (delivery.dead) {
    dead_[delivery.project].emplace(*delivery.dead, id);
  } else {
    change_due(delivery.subscription, [&](Order& order) { order.emplace(delivery.next, id); });
    ++waiting_;
  }
  deliveries_[id] = std::move(delivery);
}

const Delivery* DeliveryTable::find(const std::string& id) const {
  const auto found = deliveries_.find(id);
  return found == deliveries_.end() ? nullptr : &found->second;
}

void DeliveryTable::erase(const std::string& id) {
  const auto found = deliveries_.find(id);
  if (found == deliveries_.end()) return;
  const Delivery& delivery = found->second;
  if (delivery.dead) {
    const auto letters = dead_.find(delivery.project);
    letters->second.erase({*delivery.dead, id});
    if (letters->second.empty()) dead_.erase(letters);
  } else {
    --waiting_;
    change_due(delivery.subscription, [&](Order& order) { order.erase({delivery.next, id}); });
  }
  deliveries_.erase(found);
}

std::vector<std::string> DeliveryTable::of_subscription(const std::string& subscription) const {
  std::vector<std::string> ids;
  for (const auto& [id, delivery] : deliveries_) {
    if (delivery.subscription == subscription) ids.push_back(id);
  }
  return ids;
}

std::vector<std::string> DeliveryTable::of_project(const std::string& project) const {
  std::vector<std::string> ids;
  for (const auto& [id, delivery] : deliveries_) {
    if (delivery.project == project) ids.push_back(id);
  }
  return ids;
}

std::optional<base::Time> DeliveryTable::next_due(base::Time now) const {
  const auto next = heads_.lower_bound({now + base::Time::duration(1), ""});
  if (next == heads_.end()) return std::nullopt;
  return next->first;
}

std::vector<std::string> DeliveryTable::with_due(base::Time now) const {
  std::vector<std::string> subscriptions;
  for (const auto& [when, subscription] : heads_) {
    if (when > now) break;
    subscriptions.push_back(subscription);
  }
  return subscriptions;
}

size_t DeliveryTable::due(const std::string& subscription) const {
  const auto found = due_.find(subscription);
  return found == due_.end() ? 0 : found->second.size();
}

const Delivery* DeliveryTable::first_due(const std::string& subscription, base::Time now,
                                         base::Time latest) const {
  const auto found = due_.find(subscription);
  if (found == due_.end()) return nullptr;
  for (const auto& [when, id] : found->second) {
    if (when > std::max(now, latest)) break;
    const Delivery& delivery = deliveries_.at(id);
    if (when <= now || delivery.attempts == 0) return &delivery;
  }
  return nullptr;
}

void DeliveryTable::take(const std::string& id) {
  const Delivery& delivery = deliveries_.at(id);
  change_due(delivery.subscription, [&](Order& order) { order.erase({delivery.next, id}); });
}

void DeliveryTable::put_back(const std::string& id) {
  const Delivery& delivery = deliveries_.at(id);
  change_due(delivery.subscription, [&](Order& order) { order.emplace(delivery.next, id); });
}

void DeliveryTable::count_attempt(const std::string& id, std::string fault) {
  Delivery& delivery = deliveries_.at(id);
  ++delivery.attempts;
  delivery.fault = std::move(fault);
  changed_.insert(id);
}

void DeliveryTable::retry_at(const std::string& id, base::Time next) {
  deliveries_.at(id).next = next;
  put_back(id);
}

std::vector<std::string> DeliveryTable::take_all(const std::string& subscription) {
  std::vector<std::string> ids;
  change_due(subscription, [&](Order& order) {
    for (const auto& [when, id] : std::exchange(order, {})) ids.push_back(id);
  });
  return ids;
}

const Delivery& DeliveryTable::bury(const std::string& id, base::Time when, std::string fault) {
  Delivery& delivery = deliveries_.at(id);
  delivery.fault = std::move(fault);
  delivery.dead = when;
  dead_[delivery.project].emplace(when, id);
  changed_.insert(id);
  --waiting_;
  return delivery;
}

std::vector<Delivery> DeliveryTable::dead(const std::string& project) const {
  std::vector<Delivery> found;
  const auto letters = dead_.find(project);
  if (letters == dead_.end()) return found;
  for (auto letter = letters->second.rbegin(); letter != letters->second.rend(); ++letter) {
    found.push_back(deliveries_.at(letter->second));
  }
  return found;
}

bool DeliveryTable::forget_dead(base::Time before, size_t most) {
  std::vector<std::string> forgotten;
  for (const auto& [project, letters] : dead_) {
    size_t left = letters.size();
    for (const auto& [when, id] : letters) {
      if (left <= most && when >= before) break;
      forgotten.push_back(id);
      --left;
    }
  }
  for (const std::string& id : forgotten) {
    erase(id);
    changed_.insert(id);
  }
  return !forgotten.empty();
}

void DeliveryTable::add_changes(NotificationChanges& changes) const {
  for (const std::string& id : changed_) {
    if (const Delivery* const delivery = find(id)) {
      changes.deliveries.push_back(*delivery);
    } else {
      changes.removed_deliveries.push_back(id);
    }
  }
}

}  // namespace muster::notify
