// The subscriptions to notifications, and their deliveries: waiting, under way, and dead
// (undeliverable).
//
// A delivery is stored in the commit of its event (draft(), then take()), and stays in the store
// until it has arrived or is given up: it is delivered at least once, even if the server crashes.
// Each subscription has a queue with one delivery under way. Each project has a limit of deliveries
// under way; its subscriptions take turns, and those whose last attempt failed leave one of these
// places to the others, so that slow receivers do not delay the others of the project.
//
// On the EventLoop's thread; what Dependencies refers to must outlive it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
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
#include "notify/deliveries.h"
#include "notify/subscription.h"

namespace muster::notify {

/// Detail of an error: too many checks and pings of the project wait.
struct TooManyProbes : base::ErrorDetail {};

/// How many deliveries were drafted for the commit that is being made, by subscription.
using DraftCounts = std::unordered_map<std::string, size_t>;

class Notifications {
 public:
  static constexpr size_t kMostOfProject = 50;   ///< subscriptions
  static constexpr size_t kMostWaiting = 1'000;  ///< deliveries of a subscription
  static constexpr size_t kMostDead = 1'000;     ///< deliveries of a project
  /// Deliveries, checks of addresses and pings of a project.
  static constexpr size_t kMostUnderWay = 4;
  static constexpr size_t kMostProbesWaiting = 4;  ///< checks and pings of a project
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

  /// The deliveries for an event of a job, to be committed with the event. `drafted`: of all drafts
  /// for the same commit; empty before the first.
  std::vector<job::Delivery> draft(const job::Job& job, job::Happening happening,
                                   DraftCounts& drafted);
  /// The same for the end of an array or a sweep.
  std::vector<job::Delivery> draft(const job::ObjectEnd& end, DraftCounts& drafted);
  /// The payload for the command hook, with its own id.
  std::string payload_for_hook(const job::Job& job, job::Happening happening);
  std::string payload_for_hook(const job::ObjectEnd& end);
  /// The deliveries were committed.
  void take(std::vector<job::Delivery> deliveries);

  // Projects. The changes that follow the removal of a project belong to its commit.

  void add_removals_of_project(const std::string& project, NotificationChanges& changes) const;
  void project_is_gone(const std::string& project);

  // Subscriptions. Each change is committed, with its record in the audit log, before it returns.

  std::vector<job::Subscription> subscriptions(const std::string& project) const;  ///< oldest first
  /// kInvalid with every fault, an unknown host name included; kRefused: the rules forbid the
  /// address; kExhausted: the project has too many subscriptions, or (with TooManyProbes) too many
  /// checks and pings wait.
  void add(SubscriptionRequest request, const access::Actor& by,
           std::function<void(Result<IssuedSubscription>)> done);
  /// Removes the subscription and its deliveries. kNotFound, as in the other functions.
  Result<void> remove(const std::string& project, const std::string& id, const access::Actor& by);
  /// Later notifications are signed with the new key.
  Result<IssuedSubscription> rotate(const std::string& project, const std::string& id,
                                    const access::Actor& by);
  /// Sends one ping now. If it arrives, a subscription whose receiver was gone becomes active
  /// again. kExhausted, with TooManyProbes: too many checks and pings wait.
  void test(const std::string& project, const std::string& id, const access::Actor& by,
            std::function<void(Result<DeliveryOutcome>)> done);

  // Dead letters.

  /// Newest first.
  std::vector<job::Delivery> dead(const std::string& project) const {
    return deliveries_.dead(project);
  }
  /// Delivers these dead letters again, or all of them, the oldest first; returns their number. Of
  /// all, those of receivers that are gone and those for which a queue has no room stay dead.
  /// kNotFound: an unknown delivery; kConflict: its receiver is gone, its queue is full, or the queues
  /// have room for none.
  Result<int> retry(const std::string& project, const std::vector<std::string>& ids,
                    const access::Actor& by);

  /// Sends due deliveries. A timer calls it; a test calls it after it has moved its clock.
  void look();
  /// The number of deliveries that have neither arrived nor been given up.
  size_t waiting() const { return deliveries_.waiting(); }
  /// When the next delivery becomes due; nothing: each delivery that waits is due.
  std::optional<base::Time> next_due() const;

 private:
  struct Subscriber {
    job::Subscription subscription;
    std::string under_way;  ///< id of the delivery that is being sent; empty: no delivery
    bool is_being_tested = false;
    uint64_t last_turn = 0;   ///< when a delivery was last sent: see turns_; 0: none was
    bool has_failed = false;  ///< the last attempt
  };

  job::Delivery new_delivery(const job::Subscription& subscription, job::Happening happening,
                             DraftCounts& drafted);
  void add_subscriber(job::Subscription subscription);
  void remove_subscriber(const std::string& id);
  /// The subscriptions of the project, by their ids.
  std::vector<Subscriber*> subscribers_of(const std::string& project);
  Subscriber* find(const std::string& project, const std::string& id);
  Result<IssuedSubscription> keep_new(const SubscriptionRequest& request, const access::Actor& by);

  Result<void> has_room(const std::string& project) const;
  Subscriber* pinged(const std::string& project, const std::string& id);

  void look_at(const std::string& project);
  void after_look(base::Time now);
  void send_due(const std::string& project);
  void send_next(Subscriber& subscriber);
  size_t failed_under_way(const std::string& project);
  Result<void> begin_probe(const std::string& project, std::function<void()> probe);
  void end_request(const std::string& project);
  void settle(const std::string& project, const std::string& subscription, const std::string& id,
              const DeliveryOutcome& outcome);
  void attempt_failed(Subscriber& subscriber, const std::string& id,
                      const DeliveryOutcome& outcome);
  void receiver_is_gone(Subscriber& subscriber);
  void bury(const std::string& id, const std::string& fault);
  void wake_in_time(base::Time now);

  // Results of deliveries are stored soon; a failed commit is tried again.
  void keep_soon();
  void keep_now();

  base::Time unique_time();
  access::AuditRecord record(const job::Subscription& subscription, std::string action,
                             const access::Actor& by) const {
    return audit_record(subscription, std::move(action), by, parts_.clock.now());
  }

  Dependencies parts_;
  RetrySchedule schedule_;
  std::map<std::string, Subscriber> subscribers_;            ///< by the id of the subscription
  std::map<std::string, std::set<std::string>> of_project_;  ///< the ids of its subscriptions
  uint64_t turns_ = 0;                                       ///< how many deliveries were sent
  DeliveryTable deliveries_;
  std::map<std::string, size_t> under_way_;  ///< by project
  /// Checks and pings, by project; no queue is empty.
  std::map<std::string, std::deque<std::function<void()>>> waiting_probes_;
  std::set<std::string> changed_subscriptions_;
  bool is_keep_posted_ = false;
  base::EventLoop::Interest keep_again_;
  base::EventLoop::Interest timer_;
  base::Time wake_at_{};    ///< when timer_ expires
  base::Time last_time_{};  ///< that unique_time() returned
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::notify
