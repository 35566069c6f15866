// The books of one pool: who deserves, asked for, and holds how much, up the tree of projects.
// It answers who is next, who may have more, and who may take from whom; it knows no nodes.
//
// A trial books and unbooks on the ledger itself: every change has its exact inverse. Not
// thread-safe. Sources of the rules: KAI Scheduler's proportion plugin (queue_order, reclaimable,
// capacity_policy).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "schedule/model.h"

namespace muster::schedule {

using ProjectIndex = int;
inline constexpr ProjectIndex kNoProject = -1;

/// Who is served first; less is earlier. Absolute values of one project with the job at its head,
/// so that keys of siblings can be kept in a heap: only the key of the one served changes.
struct OrderKey {
  bool over_fair_share = false;
  bool over_deserved_with_job = false;
  int negative_priority = 0;
  bool uses_what_it_has_no_share_of = false;
  double dominant_share_with_job = 0;
  double dominant_share = 0;
  double allocatable_share = 0;
  uint64_t sequence = 0;

  auto operator<=>(const OrderKey&) const = default;
};

/// Why a project may not have more, with the numbers.
struct CapacityRefusal {
  enum class What { kLimit, kQuotaOfNonPreemptible } what = What::kLimit;
  ProjectIndex project = kNoProject;  ///< at which level
  Resource resource = Resource::kGpu;
  int64_t bound = 0;      ///< the limit, or the quota
  int64_t allocated = 0;  ///< already; of non-preemptible gangs where it is the quota
  int64_t requested = 0;

  bool operator==(const CapacityRefusal&) const = default;
};

/// How a project stands, for listings and sentences.
struct Standing {
  Amounts deserved;
  Amounts limit;
  Amounts fair_share;
  Amounts allocated;
  Amounts allocated_non_preemptible;
  Amounts requested;  ///< what runs and what waits
};

class Ledger {
 public:
  /// The projects with the quotas of `pool`. Parents may come after their children; a cycle or a
  /// missing parent is a fault of check_projects(), and such a project counts as one at the top.
  /// Indices stay: of a project that is still there, and of one that is gone, whose bookings count
  /// nowhere until they are released, or until it comes back.
  void set_projects(const std::vector<Project>& projects, const std::string& pool);
  void set_total(const Amounts& total);
  void set_decay(double decay);

  /// kNoProject where there is none of this name.
  ProjectIndex find(const std::string& name) const;
  const std::string& name(ProjectIndex project) const;
  ProjectIndex parent(ProjectIndex project) const;  ///< kNoProject at the top
  const std::vector<ProjectIndex>& children(
      ProjectIndex project) const;  ///< of kNoProject: the top
  int priority(ProjectIndex project) const;
  /// The siblings at which the paths from the top to `one` and `other` part; kNoProject twice where
  /// one of them is above the other, or both are the same.
  std::pair<ProjectIndex, ProjectIndex> siblings_above(ProjectIndex one, ProjectIndex other) const;
  Standing standing(ProjectIndex project) const;

  /// What its gangs ask for in all, waiting and running: what fair shares go by.
  void add_request(ProjectIndex leaf, const Amounts& amounts);
  void remove_request(ProjectIndex leaf, const Amounts& amounts);

  void allocate(ProjectIndex leaf, const Amounts& amounts, bool preemptible);
  void release(ProjectIndex leaf, const Amounts& amounts, bool preemptible);

  /// To be called after requests, totals or projects have changed, and before any question below;
  /// cheap when nothing changed.
  void settle_fair_shares();

  /// Nothing, where `leaf` and all above it may have `request` more: limits for all, deserved for
  /// non-preemptible gangs.
  std::optional<CapacityRefusal> refuses(ProjectIndex leaf, const Amounts& request,
                                         bool preemptible) const;

  /// The place of `project` (any level) among its siblings when `with_job` is added to it.
  OrderKey order_key(ProjectIndex project, const Amounts& with_job) const;

  /// Whether `leaf` may look for victims at all: with the request it stays within its fair share
  /// and, where that is not preemptible, within deserved at every level. The fair shares of the
  /// levels above do not count here: who takes from its own siblings adds nothing to them. Who
  /// takes from further away is held to them by is_fair_between().
  bool may_reclaim(ProjectIndex leaf, const Amounts& request, bool preemptible) const;

  /// Whether a gang of `victim` may be taken for `request` of `reclaimer`, as the books stand right
  /// before that (the gang still booked, the request not yet): the victim holds more than it may
  /// keep (its quota or fair share, the larger, within its limit), or the reclaimer stays within
  /// deserved and the victim is above it. Compared at the first level where their paths differ.
  /// Resources that `request` does not ask for do not count.
  bool may_take(ProjectIndex reclaimer, const Amounts& request, ProjectIndex victim) const;

  /// Whether the books, with all evictions and the request booked, leave the reclaimer no better
  /// off than `victim`, which it took from: within its fair share, or using less of it than that
  /// one of its own, at the level where their paths part. The guard against taking back and forth.
  bool is_fair_between(ProjectIndex reclaimer, const Amounts& request, ProjectIndex victim) const;

 private:
  /// What is booked, of a project's own gangs or of all below it, too.
  struct Books {
    WideAmounts allocated;
    WideAmounts non_preemptible;
    WideAmounts requested;
  };
  struct Account {
    std::string name;
    ProjectIndex parent = kNoProject;
    std::vector<ProjectIndex> children;  ///< the oldest first
    bool present = false;                ///< among the projects; else only what was booked remains
    Quota quota;
    int priority = 0;
    uint64_t sequence = 0;
    Amounts past_use;
    Books own;
    Books in_all;
    Amounts fair_share;
    unsigned unsettled = 0;  ///< bit r: its children's shares of resource r are out of date
  };

  Account& at(ProjectIndex project);  ///< kNoProject: the pool
  const Account& at(ProjectIndex project) const;
  std::vector<ProjectIndex> path(ProjectIndex project) const;  ///< from the top down
  void enter(const Project& project, const std::string& pool);
  void link(const std::vector<Project>& projects);
  void sum_up();
  template <class Change>
  void at_each_level(ProjectIndex leaf, const Change& change);
  void unsettle_above(ProjectIndex leaf, const Amounts& amounts);
  void settle_children(ProjectIndex project, std::vector<ProjectIndex>& to_settle);
  static int64_t allocatable(const Account& account, Resource resource);
  double dominant_share(const Account& account, const WideAmounts& allocated) const;
  bool is_fair_to(const Account& reclaimer, const Account& sibling, const Amounts& request) const;

  Account pool_;  ///< the root: its fair share is the total
  std::vector<Account> accounts_;
  std::unordered_map<std::string, ProjectIndex> by_name_;
  double decay_ = 0;
};

/// Every fault of a set of projects at once: a parent that is missing, a cycle, a negative weight,
/// a quota above the limit. Quotas that add up to more than the parent's are no fault.
std::vector<base::Fault> check_projects(const std::vector<Project>& projects);

// How what there is of one resource is shared out among sibling projects: first what each deserves,
// then the rest by priority and weight (water-filling), in whole units with the largest remainder
// first.
//
// The rules are KAI Scheduler's (pkg/scheduler/plugins/proportion/resource_division), whose unit
// vectors are this function's table test. Pure.

/// One project's claim on one resource. Amounts in any one unit.
struct Claimant {
  int64_t deserved = 0;  ///< kUnlimited: all there is
  int64_t limit = kUnlimited;
  int64_t request = 0;    ///< what runs and what waits
  double weight = 0;      ///< of what is left over; 0: none of it
  int priority = 100;     ///< larger first, of what is left over
  double past_use = 0;    ///< decayed use, as a part of all there is (0 to 1)
  uint64_t sequence = 0;  ///< order of creation
};

struct FairShares {
  std::vector<int64_t> share;  ///< by claimant
  int64_t left = 0;            ///< what nobody can or may take
};

/// `unit` is what is never divided: 1000 for thousandths of whole GPUs. `decay` is how much past
/// use weighs (0: not at all).
FairShares fair_shares(int64_t total, const std::vector<Claimant>& claimants, int64_t unit,
                       double decay = 0);

// Trees of projects as they are given: by the names of their parents, faults included.

/// By project: the index of its parent; -1 where it has none, or names one that is not there. Of
/// several projects of one name, the first is meant.
std::vector<int> parents_of(const std::vector<Project>& projects);

/// The cycles in `parents`, each from its lowest index along the parents; those with the lowest
/// index first.
std::vector<std::vector<int>> cycles_of(const std::vector<int>& parents);

}  // namespace muster::schedule
