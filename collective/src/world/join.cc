#include "world/join.h"

#include <algorithm>
#include <utility>

#include "bootstrap/choices.h"
#include "bootstrap/host_id.h"
#include "bootstrap/meet.h"
#include "world/group_desk.h"
#include "world/mesh.h"

namespace muster::collective {
namespace {

Status check_rank_and_rendezvous(const Options& options) {
  const bool placed =
      options.rank && options.size && *options.rank >= 0 && *options.rank < *options.size;
  if (!placed) {
    return Error{ErrorCode::kConfiguration, "the options name no rank within a world",
                 "set rank and size, or let bootstrap_from_environment() do so"};
  }
  if (*options.size > 1 && options.rendezvous.empty() && options.rendezvous_file.empty()) {
    return Error{ErrorCode::kConfiguration, "the options do not say where the world meets",
                 "set rendezvous and key, or rendezvous_file"};
  }
  return {};
}

Options completed(const Options& given) {
  Options options = given;
  if (options.host.empty()) options.host = host_name();
  if (options.host_id.empty()) options.host_id = find_host_id();
  if (!options.arena_bytes) options.arena_bytes = default_arena_bytes(*options.size);
  if (options.transport.empty()) options.transport = "auto";
  if (options.algorithm.empty()) options.algorithm = "auto";
  return options;
}

std::unique_ptr<World> world_of_one(Options options) {
  auto world = std::make_unique<World>();
  world->options = std::move(options);
  world->hosts = {world->options.host};
  world->topology = topology_of({world->options.host_id});
  world->streams.resize(1);
  return world;
}

// What the roster settles: the names, the hosts, and the terms.
void take_over(const Roster& roster, World& world) {
  std::vector<std::string> host_ids;
  for (const Member& member : roster.members) {
    world.hosts.push_back(member.host);
    host_ids.push_back(member.host_id);
  }
  world.topology = topology_of(host_ids);
  world.options.transport = roster.terms.transport;
  world.options.algorithm = roster.terms.algorithm;
  if (roster.terms.streams > 0) world.options.streams = roster.terms.streams;
  for (const int rank : world.topology.neighbours_of(world.rank)) {
    world.options.arena_bytes = std::min(
        *world.options.arena_bytes, roster.members[static_cast<std::size_t>(rank)].arena_bytes);
  }
}

// Whether all can do without connections for data. Only then does "shm" hold what it promises.
Status check_promise(const World& world, const std::vector<std::string>& obstacles) {
  if (world.options.transport != "shm") return {};
  const char* const advice = "set MUSTER_COLLECTIVE_TRANSPORT=auto to use TCP where it is needed";
  if (world.topology.hosts() > 1) {
    const int elsewhere = world.topology.ranks_on[1].front();
    return Error{ErrorCode::kConfiguration,
                 "the transport shm needs all ranks on one host, but " + world.name_of(0) +
                     " and " + world.name_of(elsewhere) + " are on two",
                 advice};
  }
  for (std::size_t rank = 0; rank < obstacles.size(); ++rank) {
    if (obstacles[rank].empty()) continue;
    return Error{ErrorCode::kConfiguration,
                 world.name_of(static_cast<int>(rank)) + " cannot share memory: " + obstacles[rank],
                 advice, static_cast<int>(rank), world.hosts[rank]};
  }
  return {};
}

// Shares the memory of each host, and lets all know where that worked. All of a host use it or
// none.
Status settle_memory(const Joining& joining, Star& star, const std::vector<Descriptor>& control,
                     const MemoryBytes& memory_bytes, World& world) {
  Topology& topology = world.topology;
  const std::vector<int>& local = topology.neighbours_of(world.rank);
  Sharing sharing{{}, "the transport is tcp"};
  if (world.options.transport != "tcp") {
    const std::uint64_t bytes =
        local.size() < 2 ? 0
                         : memory_bytes(static_cast<int>(local.size()), *world.options.arena_bytes);
    Result<Sharing> shared = share_memory(joining, star, topology, control, bytes);
    if (!shared) return shared.error();
    sharing = *std::move(shared);
  }
  Result<std::vector<Bytes>> answers = star.exchange(view_of(sharing.why), joining.deadline);
  if (!answers) return answers.error();
  std::vector<std::string> obstacles;
  for (const Bytes& answer : *answers) {
    obstacles.emplace_back(reinterpret_cast<const char*>(answer.data()), answer.size());
  }
  for (std::size_t host = 0; host < topology.ranks_on.size(); ++host) {
    const std::vector<int>& ranks = topology.ranks_on[host];
    topology.memory_on[host] = ranks.size() > 1 && std::ranges::all_of(ranks, [&](int rank) {
                                 return obstacles[static_cast<std::size_t>(rank)].empty();
                               });
  }
  const auto host =
      static_cast<std::size_t>(topology.host_of[static_cast<std::size_t>(world.rank)]);
  if (topology.memory_on[host]) world.memory = std::move(sharing.memory);
  return check_promise(world, obstacles);
}

Status open_streams(Mesh& mesh, World& world) {
  world.streams.resize(static_cast<std::size_t>(world.size));
  if (world.topology.is_one_shared_host()) return {};
  const int streams = world.options.streams.value_or(1);
  const auto per_pair = [streams](int) { return streams; };
  Result<std::vector<std::vector<Descriptor>>> lines = mesh.connect(Purpose::kData, per_pair);
  if (!lines) return lines.error();
  for (std::size_t rank = 0; rank < lines->size(); ++rank) {
    world.streams[rank].sockets = std::move((*lines)[rank]);
  }
  return {};
}

std::unique_ptr<Monitor> monitor_of(const World& world, std::vector<Descriptor> control) {
  std::vector<Link> links;
  for (int rank = 0; rank < world.size; ++rank) {
    if (rank == world.rank) continue;
    const auto index = static_cast<std::size_t>(rank);
    const auto self = static_cast<std::size_t>(world.rank);
    links.push_back({.rank = rank,
                     .host = world.hosts[index],
                     .is_local = world.topology.host_of[index] == world.topology.host_of[self],
                     .socket = std::move(control[index])});
  }
  MonitorOptions options;
  options.rank = world.rank;
  options.host = world.options.host;
  options.timeout = world.options.timeout.value_or(kDefaultCallTimeout);
  if (world.options.silence) {
    options.silence_on_host = *world.options.silence;
    options.silence_between_hosts = *world.options.silence;
  }
  return std::make_unique<Monitor>(std::move(options), std::move(links));
}

// All steps after the meeting. What goes wrong here is told to all.
Status settle(const Joining& joining, Gathered& gathered, const MemoryBytes& memory_bytes,
              World& world) {
  take_over(gathered.roster, world);
  Mesh mesh(joining, gathered);
  Result<std::vector<std::vector<Descriptor>>> lines =
      mesh.connect(Purpose::kControl, [](int) { return 1; });
  if (!lines) return lines.error();
  std::vector<Descriptor> control(lines->size());
  for (std::size_t rank = 0; rank < lines->size(); ++rank) {
    if (!(*lines)[rank].empty()) control[rank] = std::move((*lines)[rank].front());
  }
  Status settled = settle_memory(joining, gathered.star, control, memory_bytes, world);
  if (!settled) return settled;
  if (Status opened = open_streams(mesh, world); !opened) return opened;
  // Nobody begins before all have everything: from here on it is the monitor that speaks of
  // failure.
  Result<std::vector<Bytes>> ready = gathered.star.exchange({}, joining.deadline);
  if (!ready) return ready.error();
  gathered.door.close();
  world.monitor = monitor_of(world, std::move(control));
  return {};
}

}  // namespace

Result<std::unique_ptr<World>> join(const Options& given, const MemoryBytes& memory_bytes,
                                    int cancel) {
  if (Status checked = check_rank_and_rendezvous(given); !checked) return checked.error();
  if (Status checked = check_choices(given); !checked) return checked.error();
  Options options = completed(given);
  if (*options.size == 1) return world_of_one(std::move(options));
  const auto timeout = options.timeout.value_or(kDefaultTimeout);
  Joining joining{.options = options,
                  .self = {.rank = *options.rank,
                           .size = *options.size,
                           .host = options.host,
                           .host_id = options.host_id,
                           .arena_bytes = *options.arena_bytes},
                  .terms = {options.transport, options.algorithm, options.streams.value_or(0)},
                  .deadline = Clock::now() + timeout,
                  .timeout = timeout,
                  .cancel = cancel};
  Result<Gathered> gathered = meet(joining);
  if (!gathered) return gathered.error();
  auto world = std::make_unique<World>();
  world->rank = *options.rank;
  world->size = *options.size;
  world->options = options;
  if (Status settled = settle(joining, *gathered, memory_bytes, *world); !settled) {
    return gathered->star.fail(settled.error());
  }
  world->options.listener = -1;
  world->groups =
      std::make_shared<GroupDesk>(gathered->reachable, std::move(gathered->key), *world->monitor);
  return world;
}

}  // namespace muster::collective
