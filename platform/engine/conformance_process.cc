// The grounds of the process engine: tasks in sandboxes, without, and, as root, those of a server for
// a team, where each user has ids of its own.
#include <unistd.h>

#include "base/subprocess.h"
#include "engine/conformance.h"
#include "engine/host_facts.h"
#include "engine/process/process_engine.h"
#include "engine/process/task_filter.h"

namespace muster::engine {

namespace {

ProcessEngineOptions options_for(BenchOptions options) {
  ProcessEngineOptions how{.folder = options.folder,
                           .shim = MUSTER_SHIM,
                           .declared_gpus = DeclaredGpus{.count = 4, .model = "A100"},
                           .hidden = options.hidden(),
                           .storage_folder = options.storage(),
                           .unpack_tree = std::move(options.unpack_tree)};
  how.first_sample = options.first_sample;
  how.sample_interval = options.sample_interval;
  if (!options.nvml.empty()) how.nvml = options.nvml;
  return how;
}

std::unique_ptr<Engine> make_engine(base::EventLoop& loop, BenchOptions options) {
  return std::make_unique<ProcessEngine>(loop, options_for(std::move(options)));
}

/// All tests name their jobs alike, and tests run side by side.
std::vector<GroupPlace> group_places_of_tests() {
  std::vector<GroupPlace> places = group_places();
  for (GroupPlace& place : places) place.folder += "-test-" + std::to_string(::getpid());
  return places;
}

std::vector<std::filesystem::path> groups_of_tests() {
  std::vector<std::filesystem::path> found;
  for (const GroupPlace& place : group_places_of_tests()) {
    if (std::filesystem::exists(place.folder)) found.push_back(place.folder);
  }
  return found;
}

std::unique_ptr<Engine> make_team_engine(base::EventLoop& loop, BenchOptions options) {
  namespace fs = std::filesystem;
  const fs::path folder = options.folder.parent_path();
  ProcessEngineOptions how = options_for(std::move(options));
  fs::permissions(folder / "scratch", fs::perms::all);
  // These are in /tmp, which tasks do not see.
  how.team = {.homes = folder / "homes",
              .account_home = account_home(),
              .shared = {folder / "scratch", folder / "data"}};
  auto accounts = source_of(account_facts(false, std::nullopt, base::current_environment()));
  EXPECT_TRUE(accounts) << accounts.error().to_string();
  accounts->book = folder / "ids";
  how.accounts = *std::move(accounts);
  auto filter = filter_program({});
  EXPECT_TRUE(filter) << filter.error().to_string();
  how.filter = *std::move(filter);
  how.own_networks = true;
  how.own_devices = true;
  how.holds_claims = true;
  how.group_places = group_places_of_tests();
  return std::make_unique<ProcessEngine>(loop, std::move(how));
}

Ground process_ground(std::string name, Sandbox sandbox) {
  Ground made{.name = std::move(name), .sandbox = sandbox};
  made.make_engine = make_engine;
  made.placed = [](TaskPlan plan, const std::filesystem::path&) { return plan; };
  made.fill_site = [](launch::Site&, const job::Job&) {};
  made.is_sandbox = made.is_set_apart = made.shows_tmp = sandbox != Sandbox::kNone;
  return made;
}

}  // namespace

std::vector<Ground> grounds() {
  std::vector<Ground> all{process_ground("ProcessSandboxed", Sandbox::kBubblewrap),
                          process_ground("ProcessUnsandboxed", Sandbox::kNone)};
  if (::geteuid() != 0) return all;
  Ground team = process_ground("ProcessWithAccounts", Sandbox::kBubblewrap);
  team.make_engine = make_team_engine;
  team.held_of_machine = groups_of_tests;
  team.shares_network = team.shows_tmp = false;
  team.placed = [](TaskPlan plan, const std::filesystem::path&) {
    plan.owner = "ada";
    return plan;
  };
  all.push_back(std::move(team));
  return all;
}

}  // namespace muster::engine
