#include "world/join.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <list>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bootstrap/dial.h"
#include "bootstrap/environment.h"
#include "bootstrap/meet.h"
#include "control/graph.h"
#include "transport/socket.h"
#include "world/group.h"
#include "world/shared_memory.h"

namespace muster::collective {
namespace {

// Opens connections between pairs of ranks. A rank connects to the ranks before it in the roster and
// accepts connections from the ranks after it. It does both at the same time, so that two ranks can
// never wait for each other. Ranks of one host use a unix socket, or TCP if that fails.
//
// Thread-safety: one thread.
class MeshConnector {
 public:
  /// Both arguments must outlive the connector.
  MeshConnector(const JoinContext& joining, RendezvousResult& gathered);

  /// Opens `per_pair(r)` connections to each other rank r; result[r][i] is connection i on both
  /// sides. All ranks call this with the same purposes in the same order.
  ///
  /// Errors: kTimeout, kPeerLost, kAuthentication, kMismatch, kSystem, naming rank and host.
  Result<std::vector<std::vector<Descriptor>>> connect(Purpose purpose,
                                                       const std::function<int(int)>& per_pair);

 private:
  const Member& member(int rank) const;
  void place(std::vector<std::vector<Descriptor>>& lines, AcceptedPeer peer);
  Status step(Purpose purpose, std::vector<std::vector<Descriptor>>& lines);
  Result<Dial> begin_to_dial(int rank, int index, Purpose purpose) const;
  Error connection_error(const Error& error, int rank) const;
  Error connection_timeout() const;

  const JoinContext& joining_;
  RendezvousResult& gathered_;
  std::list<Dial> dials_;            // to ranks before this one
  std::vector<int> awaited_;         // connections still to be accepted, by rank
  std::vector<AcceptedPeer> early_;  // connections accepted for a later purpose
};

MeshConnector::MeshConnector(const JoinContext& joining, RendezvousResult& gathered)
    : joining_(joining), gathered_(gathered) {}

const Member& MeshConnector::member(int rank) const {
  return gathered_.roster.members[static_cast<std::size_t>(rank)];
}

Result<std::vector<std::vector<Descriptor>>> MeshConnector::connect(
    Purpose purpose, const std::function<int(int)>& per_pair) {
  const int size = joining_.self.size;
  std::vector<std::vector<Descriptor>> lines(static_cast<std::size_t>(size));
  awaited_.assign(static_cast<std::size_t>(size), 0);
  for (int rank = 0; rank < size; ++rank) {
    if (rank == joining_.self.rank) continue;
    const int count = per_pair(rank);
    lines[static_cast<std::size_t>(rank)].resize(static_cast<std::size_t>(count));
    if (rank > joining_.self.rank) awaited_[static_cast<std::size_t>(rank)] = count;
    for (int index = 0; index < count && rank < joining_.self.rank; ++index) {
      Result<Dial> begun = begin_to_dial(rank, index, purpose);
      if (!begun) return connection_error(begun.error(), rank);
      dials_.push_back(*std::move(begun));
    }
  }
  for (AcceptedPeer& peer : std::exchange(early_, {})) {
    if (peer.handshake.purpose == purpose) {
      place(lines, std::move(peer));
    } else {
      early_.push_back(std::move(peer));
    }
  }
  while (!dials_.empty() || std::reduce(awaited_.begin(), awaited_.end()) > 0) {
    if (Status done = step(purpose, lines); !done) return done.error();
  }
  return lines;
}

// Keeps the connection if it is still expected, and closes it otherwise.
void MeshConnector::place(std::vector<std::vector<Descriptor>>& lines, AcceptedPeer peer) {
  const RankIdentity& who = peer.introduction;
  if (who.rank <= joining_.self.rank || who.rank >= joining_.self.size) return;
  std::vector<Descriptor>& of_rank = lines[static_cast<std::size_t>(who.rank)];
  if (who.index < 0 || who.index >= static_cast<int>(of_rank.size())) return;
  Descriptor& line = of_rank[static_cast<std::size_t>(who.index)];
  if (line) return;
  line = std::move(peer.socket);
  --awaited_[static_cast<std::size_t>(who.rank)];
}

// Waits for the next events, and processes all that have occurred.
Status MeshConnector::step(Purpose purpose, std::vector<std::vector<Descriptor>>& lines) {
  Deadline wake = joining_.deadline;
  std::vector<pollfd> entries;
  gathered_.star.prepare(entries);
  const std::size_t door = entries.size();
  gathered_.door.prepare(entries, wake);
  const std::size_t calls = entries.size();
  for (const Dial& dial : dials_) entries.push_back(dial.prepare(wake));
  if (Clock::now() >= joining_.deadline) return connection_timeout();
  if (::poll(entries.data(), entries.size(), milliseconds_left(wake)) < 0 && errno != EINTR) {
    return system_error("cannot wait for the other ranks", errno);
  }
  const std::span<const pollfd> found(entries);
  if (Status done = gathered_.star.attend(found.first(door)); !done) return done;
  if (Status done = gathered_.door.attend(found.subspan(door, calls - door)); !done) return done;
  while (std::optional<AcceptedPeer> peer = gathered_.door.take()) {
    if (peer->handshake.purpose == purpose) {
      place(lines, *std::move(peer));
    } else {
      early_.push_back(*std::move(peer));
    }
  }
  std::size_t i = calls;
  for (auto dial = dials_.begin(); dial != dials_.end(); ++i) {
    if (Status done = dial->attend(found[i], joining_.deadline); !done) {
      return connection_error(done.error(), dial->rank());
    }
    if (dial->is_done()) {
      lines[static_cast<std::size_t>(dial->rank())][static_cast<std::size_t>(dial->index())] =
          dial->take();
    }
    dial = dial->is_done() ? dials_.erase(dial) : std::next(dial);
  }
  return {};
}

Result<Dial> MeshConnector::begin_to_dial(int rank, int index, Purpose purpose) const {
  Result<std::vector<Address>> addresses = addresses_for(purpose, member(rank), joining_.self);
  if (!addresses) return addresses.error();
  RankIdentity who = joining_.self;
  who.index = index;
  return Dial(purpose, rank, *std::move(addresses), gathered_.key, std::move(who));
}

// Adds the names of both ranks to an error of a connection.
Error MeshConnector::connection_error(const Error& error, int rank) const {
  Error named = error;
  named.message = "rank " + std::to_string(rank) + " on host " + member(rank).host + " and " +
                  joining_.self.name() + " did not connect: " + error.message;
  named.rank = rank;
  named.host = member(rank).host;
  return named;
}

Error MeshConnector::connection_timeout() const {
  const Error error{ErrorCode::kTimeout, "no answer within " + in_seconds(joining_.timeout)};
  if (!dials_.empty()) return connection_error(error, dials_.front().rank());
  const auto first = std::ranges::find_if(awaited_, [](int count) { return count > 0; });
  return connection_error(error, static_cast<int>(first - awaited_.begin()));
}

Status check_rank_and_rendezvous(const Options& options, bool finds) {
  const bool placed =
      options.rank && options.size && *options.rank >= 0 && *options.rank < *options.size;
  if (!placed) {
    return Error{ErrorCode::kConfiguration, "the options have no valid rank and size",
                 "set rank and size, or let bootstrap_from_environment() do so"};
  }
  if (*options.size > 1 && !finds && options.rendezvous.empty() &&
      options.rendezvous_file.empty()) {
    return Error{ErrorCode::kConfiguration, "the options have no rendezvous",
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

// Sets everything that follows from the roster: the names, the hosts, and the terms.
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

// The transport "shm" requires that no rank needs data connections.
Status check_promise(const World& world, const std::vector<std::string>& obstacles) {
  if (world.options.transport != "shm") return {};
  const char* const advice = "set MUSTER_COLLECTIVE_TRANSPORT=auto to use TCP between hosts";
  if (world.topology.hosts() > 1) {
    const int elsewhere = world.topology.ranks_on[1].front();
    return Error{ErrorCode::kConfiguration,
                 "the transport shm requires all ranks on one host, but " + world.name_of(0) +
                     " and " + world.name_of(elsewhere) + " are on two hosts",
                 advice};
  }
  for (std::size_t rank = 0; rank < obstacles.size(); ++rank) {
    if (obstacles[rank].empty()) continue;
    return Error{ErrorCode::kConfiguration, world.unshared, advice, static_cast<int>(rank),
                 world.hosts[rank]};
  }
  return {};
}

// Shares the memory of each host, and exchanges where that succeeded. Either all ranks of a host
// use it, or none of them does.
Status settle_memory(const JoinContext& joining, Star& star, const std::vector<Descriptor>& control,
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
  const auto first = std::ranges::find_if_not(obstacles, &std::string::empty);
  if (first != obstacles.end() && world.options.transport != "tcp") {
    const auto rank = static_cast<int>(first - obstacles.begin());
    world.unshared = world.name_of(rank) + " cannot share memory: " + *first;
  }
  return check_promise(world, obstacles);
}

Status open_streams(MeshConnector& mesh, World& world) {
  world.streams.resize(static_cast<std::size_t>(world.size));
  if (world.topology.is_one_shared_host() || world.size > kMostComplete) return {};
  const int streams = world.options.streams.value_or(1);
  const auto per_pair = [streams](int) { return streams; };
  Result<std::vector<std::vector<Descriptor>>> lines = mesh.connect(Purpose::kData, per_pair);
  if (!lines) return lines.error();
  for (std::size_t rank = 0; rank < lines->size(); ++rank) {
    world.streams[rank].sockets = std::move((*lines)[rank]);
    for (const Descriptor& socket : world.streams[rank].sockets) socket.close_in_children();
  }
  return {};
}

// A rank answers when it gets a processor. With more ranks than processors on the host, each of them
// may be given a turn before.
std::chrono::milliseconds patience_in_a_crowd(const World& world) {
  constexpr std::chrono::milliseconds kTurn{20};
  const int ranks = static_cast<int>(world.topology.neighbours_of(world.rank).size());
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(0, ranks - processors) * kTurn;
}

std::unique_ptr<Monitor> monitor_of(const World& world, std::vector<Descriptor> control) {
  std::vector<Link> links;
  for (const int rank : neighbours_of(world.rank, world.size)) {
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
  options.silence_on_host += patience_in_a_crowd(world);
  if (world.options.silence) {
    options.silence_on_host = *world.options.silence;
    options.silence_between_hosts = *world.options.silence;
  }
  return std::make_unique<Monitor>(std::move(options), std::move(links), world.switchboard.get());
}

// One connection to each of `ranks`, by rank; they are in the list of the other one, too.
Result<std::vector<Descriptor>> connect_to_each(MeshConnector& mesh, Purpose purpose,
                                                const std::vector<int>& ranks) {
  Result<std::vector<std::vector<Descriptor>>> lines = mesh.connect(
      purpose, [&ranks](int rank) { return std::ranges::binary_search(ranks, rank) ? 1 : 0; });
  if (!lines) return lines.error();
  std::vector<Descriptor> sockets(lines->size());
  for (std::size_t rank = 0; rank < lines->size(); ++rank) {
    if (!(*lines)[rank].empty()) sockets[rank] = std::move((*lines)[rank].front());
  }
  return sockets;
}

// Shares the memory of the hosts over the control connections, or in a large world, where the ranks
// of a host are not all neighbours, over connections of its own.
Status settle_memory(const JoinContext& joining, Star& star, MeshConnector& mesh,
                     const std::vector<Descriptor>& control, const MemoryBytes& memory_bytes,
                     World& world) {
  if (world.size <= kMostComplete || world.options.transport == "tcp") {
    return settle_memory(joining, star, control, memory_bytes, world);
  }
  const std::vector<int>& local = world.topology.neighbours_of(world.rank);
  const bool is_leader = local.front() == world.rank;
  const std::vector<int> partners = is_leader ? std::vector<int>(local.begin() + 1, local.end())
                                              : std::vector<int>{local.front()};
  Result<std::vector<Descriptor>> lines = connect_to_each(mesh, Purpose::kMemory, partners);
  if (!lines) return lines.error();
  return settle_memory(joining, star, *lines, memory_bytes, world);
}

// All steps after the rendezvous. A failure here is sent to all ranks.
Status settle(const JoinContext& joining, RendezvousResult& gathered,
              const MemoryBytes& memory_bytes, World& world) {
  take_over(gathered.roster, world);
  MeshConnector mesh(joining, gathered);
  Result<std::vector<Descriptor>> control =
      connect_to_each(mesh, Purpose::kControl, neighbours_of(world.rank, world.size));
  if (!control) return control.error();
  Status settled = settle_memory(joining, gathered.star, mesh, *control, memory_bytes, world);
  if (!settled) return settled;
  if (Status opened = open_streams(mesh, world); !opened) return opened;
  // No rank continues before all ranks have finished these steps: from here on the monitor reports
  // failures.
  Result<std::vector<Bytes>> ready = gathered.star.exchange({}, joining.deadline);
  if (!ready) return ready.error();
  if (world.size <= kMostComplete) {
    gathered.door.close();
  } else {
    world.switchboard = std::make_unique<WorldSwitchboard>(
        joining.self, std::move(gathered.roster.members), gathered.key, std::move(gathered.door),
        world.options.streams.value_or(1));
  }
  world.monitor = monitor_of(world, *std::move(control));
  return {};
}

}  // namespace

Result<std::unique_ptr<World>> join(const Options& given, const MemoryBytes& memory_bytes,
                                    int cancel, const Finder& find) {
  const bool finds = static_cast<bool>(find);
  if (Status checked = check_rank_and_rendezvous(given, finds); !checked) return checked.error();
  if (Status checked = check_choices(given); !checked) return checked.error();
  Options options = completed(given);
  if (*options.size == 1) return world_of_one(std::move(options));
  const auto timeout = options.timeout.value_or(kDefaultTimeout);
  JoinContext joining{.options = options,
                      .self = {.rank = *options.rank,
                               .size = *options.size,
                               .host = options.host,
                               .host_id = options.host_id,
                               .arena_bytes = *options.arena_bytes},
                      .terms = {options.transport, options.algorithm, options.streams.value_or(0)},
                      .deadline = Clock::now() + timeout,
                      .timeout = timeout,
                      .cancel = cancel,
                      .find = find};
  Result<RendezvousResult> gathered = meet(joining);
  if (!gathered) return gathered.error();
  auto world = std::make_unique<World>();
  world->rank = *options.rank;
  world->size = *options.size;
  world->options = options;
  world->has_default_arena = !given.arena_bytes;
  if (Status settled = settle(joining, *gathered, memory_bytes, *world); !settled) {
    return gathered->star.fail(settled.error());
  }
  world->options.listener = -1;
  world->groups = std::make_shared<GroupInvitations>(gathered->reachable, std::move(gathered->key),
                                                     *world->monitor);
  return world;
}

}  // namespace muster::collective
