// The books of one pool: quota, requests and allocations of each project, up the tree of projects.
// It decides which project is served next, which may get more, and which may reclaim from which.
// It contains no nodes.
//
// Every change has an exact inverse, so that a trial books on the ledger itself. Not thread-safe.
// Sources of the rules: KAI Scheduler's proportion plugin (queue_order, reclaimable,
// capacity_policy).
#pragma once

#include <array>
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

/// The order in which projects are served, the least key first. A key depends only on its own
/// project and the job at its head. When a project is served, the keys of its siblings stay valid.
struct OrderKey {
  bool over_fair_share = false;
  bool over_deserved_with_job = false;
  int negative_priority = 0;
  bool uses_resource_without_share = false;
  double dominant_share_with_job = 0;
  double dominant_share = 0;
  double allocatable_share = 0;
  uint64_t sequence = 0;

  auto operator<=>(const OrderKey&) const = default;
};

/// Why a project may not have more, with the numbers.
struct CapacityRefusal {
  enum class What { kLimit, kQuotaOfNonPreemptible } what = What::kLimit;
  ProjectIndex project = kNoProject;  ///< the project of the tree that has the bound
  Resource resource = Resource::kGpu;
  int64_t bound = 0;      ///< the limit, or the quota
  int64_t allocated = 0;  ///< now; for a quota, by non-preemptible gangs only
  int64_t requested = 0;

  bool operator==(const CapacityRefusal&) const = default;
};

/// The amounts of one project, for listings and messages.
struct Standing {
  Amounts deserved;
  Amounts limit;
  Amounts fair_share;
  Amounts allocated;
  Amounts allocated_non_preemptible;
  Amounts requested;  ///< by running and waiting gangs
};

class Ledger {
 public:
  /// Sets the projects, with their quotas of `pool`. Parents may come after their children. A
  /// project whose parent is missing, or that is in a cycle, counts as a top-level project
  /// (check_projects() reports it). A project keeps its index, even after it was removed: its
  /// bookings then count nowhere until they are released or the project is added again.
  void set_projects(const std::vector<Project>& projects, const std::string& pool);
  void set_total(const Amounts& total);
  void set_decay(double decay);

  /// kNoProject if no project has this name.
  ProjectIndex find(const std::string& name) const;
  const std::string& name(ProjectIndex project) const;
  ProjectIndex parent(ProjectIndex project) const;  ///< kNoProject at the top
  const std::vector<ProjectIndex>& children(
      ProjectIndex project) const;  ///< of kNoProject: the top
  int priority(ProjectIndex project) const;
  /// The ancestors of `one` and `other` (or they themselves) that are siblings. kNoProject twice if
  /// one is an ancestor of the other, or both are the same.
  std::pair<ProjectIndex, ProjectIndex> siblings_above(ProjectIndex one, ProjectIndex other) const;
  Standing standing(ProjectIndex project) const;

  /// Adds to the requests of waiting and running gangs, from which fair shares are computed.
  void add_request(ProjectIndex leaf, const Amounts& amounts);
  void remove_request(ProjectIndex leaf, const Amounts& amounts);

  void allocate(ProjectIndex leaf, const Amounts& amounts, bool preemptible);
  void release(ProjectIndex leaf, const Amounts& amounts, bool preemptible);

  /// Notes that the order of the project may have changed for a reason outside the ledger.
  void note_change(ProjectIndex project);
  /// The projects whose order_key() or may_reclaim() may differ from the last call, and those that
  /// were noted. Nothing: all of them.
  std::optional<std::vector<ProjectIndex>> take_changes();

  /// Updates the fair shares. REQUIRES: called after a change of requests, totals or projects,
  /// before any question below. Cheap if nothing changed.
  void settle_fair_shares();

  /// Whether a fair share differs from a division of all resources among all projects. For tests.
  bool has_stale_shares() const;

  /// Nothing if `leaf` and all its ancestors may hold `request` more: within their limits, and for
  /// non-preemptible gangs within their quotas.
  std::optional<CapacityRefusal> refuses(ProjectIndex leaf, const Amounts& request,
                                         bool preemptible) const;

  /// The key of `project` (at any level) with `with_job` added to its allocation.
  OrderKey order_key(ProjectIndex project, const Amounts& with_job) const;

  /// Whether `leaf` may reclaim at all: with the request it stays within its fair share and, if the
  /// request is not preemptible, within the quota at every level. The fair shares of its ancestors
  /// do not matter here, because reclaiming from a sibling does not change them. For victims
  /// further away, is_fair_between() checks them.
  bool may_reclaim(ProjectIndex leaf, const Amounts& request, bool preemptible) const;

  /// Whether `reclaimer` may evict a gang of `victim` for `request`. REQUIRES: the victim's gang is
  /// still booked, the request is not. True if the victim holds more than it may keep (the larger
  /// of quota and fair share, within its limit), or if the reclaimer stays within its quota and the
  /// victim is over quota. Compares the ancestors of both that are siblings. Considers only the
  /// resources in `request`.
  bool may_take(ProjectIndex reclaimer, const Amounts& request, ProjectIndex victim) const;

  /// Whether the result of a reclaim is fair. REQUIRES: all evictions and the request are booked.
  /// True if the reclaimer is within its fair share, or uses a smaller part of its fair share than
  /// the victim does of its own. Compares the ancestors of both that are siblings. Prevents two
  /// projects from reclaiming the same resources from each other again and again.
  bool is_fair_between(ProjectIndex reclaimer, const Amounts& request, ProjectIndex victim) const;

 private:
  /// Sums of bookings: of a project's own gangs, or including its subprojects.
  struct Books {
    WideAmounts allocated;
    WideAmounts non_preemptible;
    WideAmounts requested;
  };
  /// What the last division of a resource left, from which a changed request can be answered.
  struct Division {
    Wide rest = 0;            ///< after the quotas; negative: they add up to more than there is
    bool has_takers = false;  ///< a child requests more than its quota
  };
  struct Account {
    std::string name;
    ProjectIndex parent = kNoProject;
    std::vector<ProjectIndex> children;  ///< oldest first
    bool present = false;                ///< false: removed; only its bookings remain
    Quota quota;
    int priority = 0;
    uint64_t sequence = 0;
    Amounts past_use;
    Books own;
    Books in_all;
    Amounts fair_share;
    bool is_changed = false;       ///< is in `changed_`
    Amounts divided_request;       ///< the request from which `fair_share` was computed
    bool request_changed = false;  ///< is in `changed_requests` of the project above

    // The division of this project's fair share among its children.
    unsigned unsettled = 0;  ///< bit r: all shares of resource r have to be computed again
    std::vector<ProjectIndex> changed_requests;  ///< children with a new request since then
    std::array<Division, kResources.size()> divisions;
  };

  Account& at(ProjectIndex project);  ///< kNoProject: the pool
  const Account& at(ProjectIndex project) const;
  std::vector<ProjectIndex> path(ProjectIndex project) const;  ///< from the top down
  void enter(const Project& project, const std::string& pool);
  void link(const std::vector<Project>& projects);
  void sum_up();
  template <class Change>
  void at_each_level(ProjectIndex leaf, const Change& change);
  void note_request(ProjectIndex leaf);
  void note_changes(ProjectIndex leaf);
  void set_fair_share(ProjectIndex project, Resource resource, int64_t share);
  void settle_children(ProjectIndex project, std::vector<ProjectIndex>& to_settle);
  void divide(Account& above, Resource resource);
  bool settle_request(Account& above, ProjectIndex child, Resource resource);
  static int64_t allocatable(const Account& account, Resource resource);
  double dominant_share(const Account& account, const WideAmounts& allocated) const;
  bool is_fair_to(const Account& reclaimer, const Account& sibling, const Amounts& request) const;

  Account pool_;  ///< the root; its fair share is the total
  std::vector<Account> accounts_;
  std::unordered_map<std::string, ProjectIndex> by_name_;
  double decay_ = 0;
  std::vector<ProjectIndex> changed_;
  bool have_all_changed_ = true;
};

/// All faults of a set of projects: missing parents, cycles, negative weights, quotas above limits.
/// Quotas of children may add up to more than the quota of the parent.
std::vector<base::Fault> check_projects(const std::vector<Project>& projects);

// Fair shares: the division of one resource among sibling projects. Each first gets its quota. The
// rest is divided by priority and weight (water-filling), in whole units, largest remainder first.
//
// The rules are those of KAI Scheduler (pkg/scheduler/plugins/proportion/resource_division), whose
// test vectors are also tests of fair_shares(). Pure.

/// One project and one resource. All amounts have the same unit.
struct Claimant {
  int64_t deserved = 0;  ///< kUnlimited: the total
  int64_t limit = kUnlimited;
  int64_t request = 0;    ///< of running and waiting gangs
  double weight = 0;      ///< for the rest; 0: no share of it
  int priority = 100;     ///< for the rest; larger first
  double past_use = 0;    ///< decayed use, as a fraction of the total
  uint64_t sequence = 0;  ///< order of creation
};

struct FairShares {
  std::vector<int64_t> share;  ///< by claimant
  int64_t left = 0;            ///< the amount that no claimant may or can use
  Wide rest = 0;               ///< of the total, after the quotas; may be negative
  bool has_takers = false;     ///< a claimant may get a part of the rest
};

/// Divides `total`. `unit` is the smallest amount: 1000 for thousandths of GPUs, to give whole
/// GPUs. `decay` is the weight of past use (0: none).
FairShares fair_shares(int64_t total, const std::vector<Claimant>& claimants, int64_t unit,
                       double decay = 0);

// The tree of projects before it was checked: it may have faults.

/// For each project the index of its parent; -1 if it has none or the parent is missing. If several
/// projects have the parent's name, the first one counts.
std::vector<int> parents_of(const std::vector<Project>& projects);

/// The cycles in `parents`. Each begins at its lowest index; they are sorted by that index.
std::vector<std::vector<int>> cycles_of(const std::vector<int>& parents);

}  // namespace muster::schedule
