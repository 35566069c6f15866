// Who is told of what in which project, what is under way to them, and what could not be delivered.
//
// A delivery is queued in the commit of what it tells of (draft(), then take()), and stays in the
// store until it has arrived or is given up: at least once, whatever happens to the server. Each
// subscription has a queue of its own with one delivery under way, and each project a few, so that
// no receiver makes another wait.
//
// On the EventLoop's thread; its parts must outlive it.
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

/// What is to be kept, all or nothing.
struct Changes {
  std::vector<job::Subscription> subscriptions;
  std::vector<std::string> removed_subscriptions;
  std::vector<job::Delivery> deliveries;
  std::vector<std::string> removed_deliveries;
  std::vector<access::AuditRecord> audit;
};

/// A subscription that somebody wants.
struct Wish {
  std::string project;
  std::string url;
  std::vector<job::Happening> on;
  std::string job;
  std::map<std::string, std::string> labels;
  bool with_lines = false;
};

/// The one moment in which the key is known.
struct Keyed {
  job::Subscription subscription;
  std::string key;  ///< its characters are the key of the HMAC
};

class Notifications {
 public:
  static constexpr size_t kMostOfProject = 50;   ///< subscriptions
  static constexpr size_t kMostWaiting = 1'000;  ///< deliveries of a subscription
  static constexpr size_t kMostDead = 1'000;     ///< deliveries of a project
  static constexpr size_t kMostUnderWay = 4;     ///< of a project
  static constexpr std::chrono::days kDeadAreKept{7};

  struct Parts {
    base::EventLoop& loop;
    const base::Clock& clock;
    base::RandomSource& random;
    const access::SecretBox& box;
    /// As Courier::send() and Courier::check().
    std::function<void(Errand, std::function<void(Outcome)>)> send;
    std::function<void(Receiver, std::function<void(Result<void>)>)> check;
    std::function<Result<void>(const Changes&)> keep;
    std::function<bool(const std::string& project)> has_project;
  };

  explicit Notifications(Parts parts) : parts_(std::move(parts)) {}

  /// Takes over what the store holds. To be called once, before anything else.
  void load(std::vector<job::Subscription> subscriptions, std::vector<job::Delivery> deliveries);
  void set_schedule(const RetrySchedule& schedule) { schedule_ = schedule; }

  // Of jobs.

  /// What has to be told of it: to be committed with it.
  std::vector<job::Delivery> draft(const job::Job& job, job::Happening happening);
  /// The same for the server's own command, with an id of its own.
  std::string payload_for_hook(const job::Job& job, job::Happening happening);
  /// That has been committed.
  void take(std::vector<job::Delivery> deliveries);

  // Of projects. What goes with one is for its commit; then it is forgotten.

  void add_what_goes_with(const std::string& project, Changes& changes) const;
  void project_is_gone(const std::string& project);

  // Subscriptions. Each change is committed, with its record in the audit log, before it returns.

  std::vector<job::Subscription> subscriptions(const std::string& project) const;  ///< oldest first
  /// kInvalid with every fault; kRefused, with why, for an address that is not to be reached;
  /// kExhausted where the project has too many. A name without an address is kInvalid, too.
  void add(Wish wish, const access::Actor& by, std::function<void(Result<Keyed>)> done);
  /// With what is still to be delivered to it. kNotFound, as in the others.
  Result<void> remove(const std::string& project, const std::string& id, const access::Actor& by);
  /// What is sent from now on is signed with the new key.
  Result<Keyed> rotate(const std::string& project, const std::string& id, const access::Actor& by);
  /// Sends a ping now, once. One that arrives brings a subscription back whose receiver was gone.
  void test(const std::string& project, const std::string& id, const access::Actor& by,
            std::function<void(Result<Outcome>)> done);

  // Dead letters.

  std::vector<job::Delivery> dead(const std::string& project) const;  ///< newest first
  /// Begins anew with these, or with all. How many. kNotFound: one is not there; kConflict: its
  /// receiver is gone.
  Result<int> retry(const std::string& project, const std::vector<std::string>& ids,
                    const access::Actor& by);

  /// Sends what is due. Called by itself in time; by a test that has moved its clock.
  void look();
  /// How many have neither arrived nor been given up.
  size_t waiting() const { return waiting_; }
  /// When the next one is due; nothing: none waits.
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
  Result<Keyed> keep_new(const Wish& wish, const access::Actor& by);
  std::string seal_new_key(job::Subscription& subscription);
  Result<Errand> errand_of(const job::Subscription& subscription, const std::string& id,
                           job::Happening happening, const std::string& body) const;

  void put(job::Delivery delivery);
  void send_next(Queue& queue);
  void settle(const std::string& subscription, const std::string& id, const Outcome& outcome);
  void tried_in_vain(Queue& queue, job::Delivery& delivery, const Outcome& outcome);
  void is_gone(Queue& queue);
  void bury(job::Delivery& delivery, std::string fault);
  void erase(const std::string& id);
  void forget_old_dead(const std::string& project);
  void wake_in_time();

  // What changed by itself is kept soon, and tried again where that fails.
  void keep_soon();
  void keep_now();

  base::Time stamp();
  access::AuditRecord record(const access::Actor& by, std::string action,
                             const job::Subscription& subscription) const;

  Parts parts_;
  RetrySchedule schedule_;
  std::map<std::string, Queue> queues_;              ///< by the subscription's id
  std::map<std::string, job::Delivery> deliveries_;  ///< by id, the dead ones, too
  std::map<std::string, Order> dead_;                ///< by project
  std::map<std::string, size_t> under_way_;          ///< by project
  size_t waiting_ = 0;
  std::set<std::string> changed_;  ///< deliveries, or what was one
  std::set<std::string> changed_subscriptions_;
  bool is_keep_posted_ = false;
  base::EventLoop::Interest keep_again_;
  base::EventLoop::Interest timer_;
  base::Time last_stamp_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// Why the last attempt failed, for people: "answered 500: ...", or that there was no answer.
std::string fault_of(const Outcome& outcome);

// What is wrong with a subscription that somebody wants, but for its address.
//
// Pure; thread-safe.

/// Every fault, each with its field.
std::vector<base::Fault> faults_of(const Wish& wish);

}  // namespace muster::notify
