// The volumes of jobs on hosts. A job's volumes are created once on each host and filled through a
// container that is never started, because an engine copies files only into containers.
//
// When a job's volumes on a host are complete, the file JOB/volumes/HOST on this machine (the mark)
// records it. Volumes without a mark may be half filled by an earlier server, and are created anew.
// With the mark, only volumes that another program has removed since are created and filled again.
// Meanwhile the mark contains the names of these volumes, a line each, so that a refill that was
// broken off is repeated. The other volumes stay, because they may hold the only copy of artifacts.
//
// On the loop's thread. The hosts must outlive it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/container/hosts.h"
#include "engine/container/labels.h"
#include "engine/container/removals.h"
#include "engine/container/steps.h"
#include "engine/engine.h"
#include "launch/task_plan.h"

namespace muster::engine {

class JobVolumes {
 public:
  /// Volumes that one start of a gang has created, by host, to be removed if the start fails.
  using Made = std::vector<std::pair<HeldHost*, std::string>>;

  /// `owner`, `jobs_folder`: see ContainerEngineOptions.
  JobVolumes(base::EventLoop& loop, std::string owner, std::filesystem::path jobs_folder,
             Removals& removals)
      : loop_(loop),
        owner_(std::move(owner)),
        jobs_folder_(std::move(jobs_folder)),
        removals_(removals) {}

  /// Ensures that the volumes of the job of `plan` exist on the host and are filled. Adds to `made`
  /// the volumes that it creates, unless the job had volumes there before. kConflict: a volume of
  /// another owner has the same name.
  void ensure(const GangId& gang, const launch::TaskPlan& plan, HeldHost& host,
              std::shared_ptr<Made> made, Then then);

  /// Records that the job's volumes on the host must be created anew.
  void forget(const std::string& job_id, const HeldHost& host) const;
  /// Removes the job's volumes from all of `hosts` that have any.
  void remove(const std::string& job_id, const Hosts& hosts);

 private:
  struct Filling;
  void begin(const std::shared_ptr<Filling>& filling, const std::string& task, Then then);
  void create(const std::shared_ptr<Filling>& filling, Then then);
  void check_owner(const std::shared_ptr<Filling>& filling, Then then);
  void fill(const std::shared_ptr<Filling>& filling, Then then);
  void remove_from(HeldHost& host, const std::string& job_id);
  std::filesystem::path mark_of(const std::string& job_id, const HeldHost& host) const;

  base::EventLoop& loop_;
  std::string owner_;
  std::filesystem::path jobs_folder_;
  Removals& removals_;
  /// Removals from hosts that did not answer, by host and job.
  std::map<std::pair<HeldHost*, std::string>, base::EventLoop::Interest> later_;
};

}  // namespace muster::engine
