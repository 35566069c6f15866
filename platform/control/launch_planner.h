// From a placed gang to the plans that the engine starts: gathers the facts that `launch` needs
// about this server, the nodes, the images and the secrets of the job.
//
// On the EventLoop's thread. Everything that the constructor refers to must outlive it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "control/accounts.h"
#include "control/node_table.h"
#include "control/submission.h"
#include "engine/engine.h"
#include "job/job.h"
#include "launch/plan.h"

namespace muster::control {

/// The data that a later server needs to plan workers that join a running gang: the secrets of its
/// attempt, and how its tasks reach each other, which was settled at its start.
struct KeptSeed {
  launch::GangSeed seed;
  launch::Reach reach = launch::Reach::kLoopback;
};
/// The text is a secret, and is stored sealed.
std::string to_text(const KeptSeed& kept);
std::optional<KeptSeed> kept_seed_of(std::string_view text);
/// The name under which the text is sealed, which differs for each attempt. No user's secret can
/// have this name.
std::string seal_name(const job::Job& job);

using ImagesByTask = std::map<std::string, launch::ImageFacts>;

class LaunchPlanner {
 public:
  /// `accounts`: nullptr: this server keeps no secrets.
  LaunchPlanner(engine::Engine& engine, const NodeTable& nodes, const SiteFacts& site,
                Accounts* accounts, base::RandomSource& random)
      : engine_(engine), nodes_(nodes), site_(site), accounts_(accounts), random_(random) {}

  struct Planned {
    launch::GangPlan plan;
    launch::GangSeed seed;
  };
  /// Plans a gang, and stores in the job how its ranks are launched. `reach`: how its tasks reach
  /// each other; nothing: as the nodes of its tasks allow.
  Result<Planned> plan(job::Job& job, std::optional<launch::Reach> reach,
                       const ImagesByTask& images) const;
  /// Plans workers that join a running gang. kRefused: a worker on its node cannot join.
  Result<launch::Growth> plan_growth(const job::Job& job, const std::set<std::string>& joining,
                                     const KeptSeed& kept, const ImagesByTask& images) const;
  /// How tasks reach each other that may be on any node.
  launch::Reach reach_of_all_nodes() const { return engine_.reach(nodes_.names()); }

  /// The requests for the images of these tasks.
  Result<std::vector<engine::ImageRequest>> images_of(
      const job::Job& job, const std::vector<const job::Task*>& tasks) const;

  /// Notes for the first start of a job: on an image that does not run, and on variables of the job
  /// that override variables of Muster.
  std::vector<job::Fact> notes_on_first_start(const job::Job& job) const;

  /// Stores the seed in the job, sealed, if this server has a key.
  void keep(job::Job& job, const KeptSeed& kept) const;
  /// Opens the stored seed. An error contains the reason why no worker can join the gang.
  Result<KeptSeed> kept_seed(const job::Job& job) const;

 private:
  /// The Unix account under which the tasks of the job run; empty: the user has no Unix account, or
  /// the engine does not use accounts.
  std::string unix_account_of(const job::Job& job) const;
  launch::Site site_of(const job::Job& job, std::optional<launch::Reach> reach,
                       const ImagesByTask& images) const;
  Result<launch::Site> site_with_secrets(const job::Job& job, std::optional<launch::Reach> reach,
                                         const ImagesByTask& images) const;

  engine::Engine& engine_;
  const NodeTable& nodes_;
  const SiteFacts& site_;
  Accounts* accounts_;
  base::RandomSource& random_;
};

}  // namespace muster::control
