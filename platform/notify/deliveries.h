// The deliveries of notifications that have not arrived: the waiting ones in the order in which
// they are due, and the dead letters. Also their changes that are not in the store yet.
//
// Plain data: no I/O, no clock. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "access/audit.h"
#include "base/clock.h"
#include "job/notification.h"

namespace muster::notify {

/// Changes to be stored in one commit.
struct NotificationChanges {
  std::vector<job::Subscription> subscriptions;
  std::vector<std::string> removed_subscriptions;
  std::vector<job::Delivery> deliveries;
  std::vector<std::string> removed_deliveries;
  std::vector<access::AuditRecord> audit;
};

class DeliveryTable {
 public:
  /// Adds a delivery that waits or is dead.
  void put(job::Delivery delivery);
  /// nullptr: it has arrived or was removed.
  const job::Delivery* find(const std::string& id) const;
  void erase(const std::string& id);
  std::vector<std::string> of_subscription(const std::string& subscription) const;
  std::vector<std::string> of_project(const std::string& project) const;
  /// The number of deliveries that are not dead.
  size_t waiting() const { return waiting_; }

  // Due deliveries. One that was taken is in no order until it is put back, buried or erased.

  /// When the first delivery of a subscription becomes due after `now`; nothing: of no subscription.
  std::optional<base::Time> next_due(base::Time now) const;
  /// The subscriptions whose first delivery is due at `now`.
  std::vector<std::string> with_due(base::Time now) const;
  size_t due(const std::string& subscription) const;
  /// The first delivery of the subscription that may be sent: another attempt that is due at `now`,
  /// or a first attempt that is due at `latest`. nullptr: no delivery may be sent.
  const job::Delivery* first_due(const std::string& subscription, base::Time now,
                                 base::Time latest) const;
  /// REQUIRES: the delivery is due.
  void take(const std::string& id);
  void put_back(const std::string& id);
  /// An attempt failed.
  void count_attempt(const std::string& id, std::string fault);
  void retry_at(const std::string& id, base::Time next);
  /// All due deliveries of the subscription, which are taken.
  std::vector<std::string> take_all(const std::string& subscription);

  // Dead letters.

  /// REQUIRES: the delivery was taken.
  const job::Delivery& bury(const std::string& id, base::Time when, std::string fault);
  std::vector<job::Delivery> dead(const std::string& project) const;  ///< newest first
  bool has_dead() const { return !dead_.empty(); }
  /// Forgets the dead letters from before that time, and of each project the oldest ones above
  /// `most`. False: nothing was forgotten.
  bool forget_dead(base::Time before, size_t most);

  // Changes for the store.

  void mark_changed(const std::string& id) { changed_.insert(id); }
  /// Adds the marked deliveries, or their removal.
  void add_changes(NotificationChanges& changes) const;
  void changes_are_kept() { changed_.clear(); }

 private:
  /// By time, then by id.
  using Order = std::set<std::pair<base::Time, std::string>>;
  /// Every change of due_, so that heads_ follows.
  template <class Change>
  void change_due(const std::string& subscription, const Change& change);

  std::map<std::string, job::Delivery> deliveries_;  ///< by id, dead ones included
  std::map<std::string, Order> due_;                 ///< by subscription; no order is empty
  Order heads_;                                      ///< the first time of each order, with its key
  std::map<std::string, Order> dead_;                ///< by project
  size_t waiting_ = 0;
  std::set<std::string> changed_;  ///< ids of changed or removed deliveries
};

}  // namespace muster::notify
