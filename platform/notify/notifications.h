// The subscriptions to notifications, and their deliveries: waiting, under way, and dead
// (undeliverable).
//
// A delivery is stored in the commit of its event (draft(), then take()), and stays in the store
// until it has arrived or is given up: it is delivered at least once, even if the server crashes.
// Each subscription has a queue with one delivery under way, and each project has a limit of
// deliveries under way, so that a slow receiver does not delay others.
//
// On the EventLoop's thread; what Dependencies refers to must outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "access/audit.h"
#include "access/secret_box.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/random.h"
#include "base/result.h"
#include "job/job.h"
#include "job/notification.h"
#include "notify/courier.h"

namespace muster::notify {

using base::Result;

/// Changes to be stored in one commit.
struct NotificationChanges {
  std::vector<job::Subscription> subscriptions;
  std::vector<std::string> removed_subscriptions;
  std::vector<job::Delivery> deliveries;
  std::vector<std::string> removed_deliveries;
  std::vector<access::AuditRecord> audit;
};

/// A new subscription as it is requested.
struct SubscriptionRequest {
  std::string project;
  std::string url;
  std::vector<job::Happening> on;
  std::string job;
  std::map<std::string, std::string> labels;
  bool with_lines = false;
};

/// A new subscription with its key, which is not shown again.
struct IssuedSubscription {
  job::Subscription subscription;
  std::string key;  ///< these characters are the key of the HMAC
};

class Notifications {
 public:
  static constexpr size_t kMostOfProject = 50;   ///< subscriptions
  static constexpr size_t kMostWaiting = 1'000;  ///< deliveries of a subscription
  static constexpr size_t kMostDead = 1'000;     ///< deliveries of a project
  static constexpr size_t kMostUnderWay = 4;     ///< of a project
  static constexpr std::chrono::days kDeadAreKept{7};

  struct Dependencies {
    base::EventLoop& loop;
    const base::Clock& clock;
    base::RandomSource& random;
    const access::SecretBox& box;
    /// Courier::send() and Courier::check().
    std::function<void(OutgoingNotification, std::function<void(DeliveryOutcome)>)> send;
    std::function<void(Receiver, std::function<void(Result<void>)>)> check;
    std::function<Result<void>(const NotificationChanges&)> keep;
    std::function<bool(const std::string& project)> has_project;
  };

  explicit Notifications(Dependencies parts) : parts_(std::move(parts)) {}

  /// As loaded from the store. To be called once, before anything else.
  void load(std::vector<job::Subscription> subscriptions, std::vector<job::Delivery> deliveries);
  void set_schedule(const RetrySchedule& schedule) { schedule_ = schedule; }

  // Jobs.

  /// The deliveries for an event of a job, to be committed with the event.
  std::vector<job::Delivery> draft(const job::Job& job, job::Happening happening);
  /// The payload for the command hook, with its own id.
  std::string payload_for_hook(const job::Job& job, job::Happening happening);
  /// The deliveries were committed.
  void take(std::vector<job::Delivery> deliveries);

  // Projects. The changes that follow the removal of a project belong to its commit.

  void add_what_goes_with(const std::string& project, NotificationChanges& changes) const;
  void project_is_gone(const std::string& project);

  // Subscriptions. Each change is committed, with its record in the audit log, before it returns.

  std::vector<job::Subscription> subscriptions(const std::string& project) const;  ///< oldest first
  /// kInvalid with every fault, an unknown host name included; kRefused: the rules forbid the
  /// address; kExhausted: the project has too many subscriptions.
  void add(SubscriptionRequest request, const access::Actor& by,
           std::function<void(Result<IssuedSubscription>)> done);
  /// Removes the subscription and its deliveries. kNotFound, as in the other functions.
  Result<void> remove(const std::string& project, const std::string& id, const access::Actor& by);
  /// Later notifications are signed with the new key.
  Result<IssuedSubscription> rotate(const std::string& project, const std::string& id,
                                    const access::Actor& by);
  /// Sends one ping now. If it arrives, a subscription whose receiver was gone becomes active
  /// again.
  void test(const std::string& project, const std::string& id, const access::Actor& by,
            std::function<void(Result<DeliveryOutcome>)> done);

  // Dead letters.

  std::vector<job::Delivery> dead(const std::string& project) const;  ///< newest first
  /// Delivers these dead letters again, or all of them; returns their number. kNotFound: an unknown
  /// delivery; kConflict: its receiver is gone.
  Result<int> retry(const std::string& project, const std::vector<std::string>& ids,
                    const access::Actor& by);

  /// Sends due deliveries. A timer calls it; a test calls it after it has moved its clock.
  void look();
  /// The number of deliveries that have neither arrived nor been given up.
  size_t waiting() const { return waiting_; }
  /// When the next delivery is due; nothing: none waits.
  std::optional<base::Time> next_due() const;

 private:
  static constexpr size_t kDeliveryIdLength = 20;

  /// By time, then by id.
  using Order = std::set<std::pair<base::Time, std::string>>;
  struct Queue {
    job::Subscription subscription;
    Order due;
    std::string under_way;  ///< id of the delivery; empty: none
    bool is_being_tested = false;
  };

  Queue* find(const std::string& project, const std::string& id);
  static base::Error unknown(const std::string& id);
  Result<IssuedSubscription> keep_new(const SubscriptionRequest& request, const access::Actor& by);
  std::string seal_new_key(job::Subscription& subscription);
  Result<OutgoingNotification> errand_of(const job::Subscription& subscription,
                                         const std::string& id, job::Happening happening,
                                         const std::string& body) const;

  void put(job::Delivery delivery);
  void send_next(Queue& queue);
  void settle(const std::string& subscription, const std::string& id,
              const DeliveryOutcome& outcome);
  void tried_in_vain(Queue& queue, job::Delivery& delivery, const DeliveryOutcome& outcome);
  void is_gone(Queue& queue);
  void bury(job::Delivery& delivery, std::string fault);
  void erase(const std::string& id);
  void forget_old_dead(const std::string& project);
  void wake_in_time();

  // Results of deliveries are stored soon; a failed commit is tried again.
  void keep_soon();
  void keep_now();

  base::Time stamp();
  access::AuditRecord record(const access::Actor& by, std::string action,
                             const job::Subscription& subscription) const;

  Dependencies parts_;
  RetrySchedule schedule_;
  std::map<std::string, Queue> queues_;              ///< by the subscription's id
  std::map<std::string, job::Delivery> deliveries_;  ///< by id, dead ones included
  std::map<std::string, Order> dead_;                ///< by project
  std::map<std::string, size_t> under_way_;          ///< by project
  size_t waiting_ = 0;
  std::set<std::string> changed_;  ///< ids of changed or removed deliveries
  std::set<std::string> changed_subscriptions_;
  bool is_keep_posted_ = false;
  base::EventLoop::Interest keep_again_;
  base::EventLoop::Interest timer_;
  base::Time last_stamp_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// Why the last attempt failed: "answered 500: ...", or that there was no answer.
std::string fault_of(const DeliveryOutcome& outcome);

/// Every fault of a requested subscription except faults of its address, each with its field. Pure.
std::vector<base::Fault> faults_of(const SubscriptionRequest& request);

}  // namespace muster::notify
