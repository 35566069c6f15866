// What the container engine is made of. Its parts stand in files of their own, by what happens to a
// task: container_starting.cc, container_volumes.cc, container_ending.cc, container_adoption.cc.
//
// On the loop's thread. Answers of hosts come only as long as the hosts are here, and with them
// everything; what is posted to the loop holds on to `alive`.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/container/container_engine.h"
#include "engine/container/container_plan.h"
#include "engine/container/container_record.h"
#include "engine/container/fetch.h"
#include "engine/container/held_host.h"
#include "engine/container/options.h"
#include "engine/container/removals.h"
#include "engine/container/steps.h"
#include "engine/container/task_follower.h"
#include "engine/process/file_watch.h"
#include "engine/process/trees.h"
#include "engine/shim/plan.h"
#include "engine/start_error.h"
#include "workspace/small_archive.h"

namespace muster::engine {

/// Names that are tried where somebody else has the one that a thing should have.
inline constexpr int kMostNames = 4;

using TaskKey = std::pair<Gang, std::string>;

/// One call of start(), until each task is up or none is left.
struct GangStart {
  Gang gang;
  std::vector<launch::TaskPlan> plans;
  Engine::Done done;
  std::optional<base::Error> error;
  std::vector<std::string> tasks;   ///< those whose containers are being made, or are
  size_t busy = 0;                  ///< answers of hosts that are awaited
  size_t unheard = 0;               ///< tasks whose shims have not said that they are up
  std::vector<HeldHost*> networks;  ///< on these it made the gang's network
  /// Volumes of the job that it made.
  std::vector<std::pair<HeldHost*, std::string>> volumes;
  base::EventLoop::Interest bound;  ///< how long is waited for those that are unheard
};

/// A task with a container.
struct HeldTask {
  TaskKey key;
  HeldHost* host = nullptr;
  std::string container;  ///< empty: it is not made yet
  std::string artifacts;  ///< where they lie in it; empty: nowhere
  std::shared_ptr<TaskFollower> follower;
  std::shared_ptr<GangStart> start;  ///< until the whole start is settled
  bool has_ssh = false;
  /// That its programs have when it is stopped; of one that was taken up, the longest there is.
  std::chrono::milliseconds grace = std::chrono::hours(24);
  bool up = false;        ///< its shim has said so
  bool answered = false;  ///< its remote shell, or it has none
  bool was_told_to_stop = false;
  std::optional<StopMode> stop_wish;  ///< that the host has not taken yet
  std::optional<TaskEnded> end;       ///< known, and not yet reported
  /// Called when nothing more is heard of it.
  std::vector<std::function<void()>> when_over;
  base::EventLoop::Interest timer;
};

struct ContainerEngine::Impl {
  Impl(base::EventLoop& its_loop, ContainerEngineOptions its_options);
  ~Impl();

  // --- hosts and images (container_engine.cc)
  Result<void> meet_hosts();
  void ask_what_they_have();
  void host_changed();
  HeldHost* host_of(const std::string& node) const;

  // --- starting
  Result<void> check(const GangStart& start) const;
  Result<void> check_task(const GangStart& start, const launch::TaskPlan& plan) const;
  void begin(const std::shared_ptr<GangStart>& start);
  void prepare_hosts(const std::shared_ptr<GangStart>& start);
  Step network_step(const std::shared_ptr<GangStart>& start, HeldHost& host);
  void make_network(const std::shared_ptr<GangStart>& start, HeldHost& host, int tries, Then then);
  void find_network(const std::shared_ptr<GangStart>& start, HeldHost& host, Then then);
  void launch_all(const std::shared_ptr<GangStart>& start);
  struct Launch;
  void launch(const std::shared_ptr<GangStart>& start, const launch::TaskPlan& plan);
  Result<void> lay_out(Launch& launch);
  std::vector<Step> steps_of(const std::shared_ptr<Launch>& launch);
  void create(const std::shared_ptr<Launch>& launch, int tries, Then then);
  void fail(std::shared_ptr<GangStart> start, base::Error error);
  /// `start` may be the one that a task of it holds, which it lets go of.
  void settle(std::shared_ptr<GangStart> start);
  void undo(const std::shared_ptr<GangStart>& start);
  void succeeded(const std::shared_ptr<GangStart>& start);
  void stop_starting(const Gang& gang, const std::vector<std::string>& names);

  // --- volumes
  Step volumes_step(const std::shared_ptr<GangStart>& start, HeldHost& host);
  struct Filling;
  void make_volumes(const std::shared_ptr<Filling>& filling, Then then);
  void check_owner(const std::shared_ptr<Filling>& filling, Then then);
  void fill(const std::shared_ptr<Filling>& filling, Then then);
  /// Of the job the volumes on this host are to be made anew.
  void forget_volumes(const std::string& job_id, const HeldHost& host) const;
  void remove_volumes(HeldHost& host, const std::string& job_id);

  // --- while they run (container_changes.cc)
  class Change;
  bool is_being_started(const Gang& gang, const std::string& task) const;
  void change(const std::shared_ptr<HeldTask>& task, const launch::FileChange& change, Then then);

  // --- following and ending
  std::shared_ptr<TaskFollower> follower_for(HeldTask& task, Mirror mirror);
  void heard(const TaskKey& key, const FollowRecord& record);
  void came_up(HeldTask& task);
  void answers(HeldTask& task);
  void refused(const std::shared_ptr<HeldTask>& task, const std::string& words);
  void gone(const TaskKey& key, const std::optional<ContainerState>& state);
  void salvage(const std::shared_ptr<HeldTask>& task, const ContainerState& state);
  void send_stop(const std::shared_ptr<HeldTask>& task);
  void make_sure_it_ends(const std::shared_ptr<HeldTask>& task, StopMode mode);
  void ended(const std::shared_ptr<HeldTask>& task, TaskEnded end);
  void finish(const std::shared_ptr<HeldTask>& task);
  void fetch_artifacts(const std::shared_ptr<HeldTask>& task, int tries);
  void take_away(const std::shared_ptr<HeldTask>& task);
  void abandon(HeldHost& host);
  void report(const TaskKey& key, TaskNews what);

  // --- what an earlier server left
  void take_inventory(HeldHost& host, std::function<void()> then);
  Found adopt(const Gang& gang, const std::string& name);
  void take_up(const std::shared_ptr<HeldTask>& task, bool has_ended);
  void sweep();
  void sweep(HeldHost& host);

  // --- small things
  TaskFolder folder_of(const Gang& gang, std::string_view task) const;
  std::filesystem::path job_folder(const std::string& job_id) const;
  std::shared_ptr<HeldTask> find(const TaskKey& key) const;
  bool has_tasks(const Gang& gang) const;
  ContainerSite site_for(const GangStart& start, const launch::TaskPlan& plan) const;
  void soon(std::function<void()> action);

  base::EventLoop& loop;
  ContainerEngineOptions options;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  std::vector<workspace::ArchiveEntry> programs;  ///< what is put into each container
  Listener listener;
  std::vector<std::weak_ptr<std::function<void()>>> watchers;
  FileWatch files;
  JobTrees trees;
  Fetch fetch;
  base::Background background;
  std::map<TaskKey, std::shared_ptr<HeldTask>> tasks;
  std::vector<std::shared_ptr<GangStart>> starting;
  std::vector<std::shared_ptr<Change>> changes;  ///< under way
  /// The network of a gang, by the host that it is on.
  std::map<std::pair<Gang, HeldHost*>, std::string> networks;
  bool swept = false;
  // Last, to go first: with the hosts end all answers.
  std::vector<std::unique_ptr<ContainerHost>> connections;
  std::map<std::string, std::unique_ptr<HeldHost>> hosts;
  Removals removals;
};

}  // namespace muster::engine
