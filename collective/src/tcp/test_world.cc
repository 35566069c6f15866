#include "tcp/test_world.h"

#include <sys/socket.h>

#include <array>
#include <thread>
#include <utility>

#include "transport/socket.h"

namespace muster::collective::testing {
namespace {

using Ends = std::array<Descriptor, 2>;

Ends tcp_pair(const Descriptor& listener) {
  const Deadline deadline = Clock::now() + std::chrono::seconds(10);
  Result<Descriptor> connected = connect_to(local_address(listener.get()), deadline);
  Ends ends;
  ends[0] = std::move(*connected);
  while (!ends[1]) ends[1] = std::move(accept_from(listener)->socket);
  return ends;
}

Ends local_pair() {
  std::array<int, 2> fds = {-1, -1};
  ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data());
  return {Descriptor(fds[0]), Descriptor(fds[1])};
}

std::unique_ptr<World> unconnected(const WorldSpec& spec, int rank) {
  auto world = std::make_unique<World>();
  world->rank = rank;
  world->size = spec.size;
  world->options.algorithm = spec.algorithm;
  world->options.timeout = spec.timeout;
  std::vector<std::string> ids;
  for (int i = 0; i < spec.size; ++i) {
    const int host = spec.host_of.empty() ? i : spec.host_of[static_cast<std::size_t>(i)];
    ids.push_back("host-" + std::to_string(host));
  }
  world->hosts = ids;
  world->topology = topology_of(ids);
  world->streams.resize(ids.size());
  return world;
}

}  // namespace

Worlds make_worlds(const WorldSpec& spec) {
  const auto size = static_cast<std::size_t>(spec.size);
  const Result<Descriptor> listener = listen_on(resolve("127.0.0.1:0")->front());
  Worlds worlds;
  for (int rank = 0; rank < spec.size; ++rank) worlds.push_back(unconnected(spec, rank));
  std::vector<std::vector<Link>> links(size);
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = a + 1; b < size; ++b) {
      for (int i = 0; i < spec.streams; ++i) {
        Ends ends = tcp_pair(*listener);
        worlds[a]->streams[b].sockets.push_back(std::move(ends[0]));
        worlds[b]->streams[a].sockets.push_back(std::move(ends[1]));
      }
      Ends ends = local_pair();
      const std::vector<std::string>& hosts = worlds[a]->hosts;
      links[a].push_back({static_cast<int>(b), hosts[b], true, std::move(ends[0])});
      links[b].push_back({static_cast<int>(a), hosts[a], true, std::move(ends[1])});
    }
  }
  for (std::size_t rank = 0; size > 1 && rank < size; ++rank) {
    const MonitorOptions options = {.rank = static_cast<int>(rank),
                                    .host = worlds[rank]->hosts[rank],
                                    .timeout = spec.timeout,
                                    .silence_on_host = std::chrono::seconds(10)};
    worlds[rank]->monitor = std::make_unique<Monitor>(options, std::move(links[rank]));
  }
  return worlds;
}

void on_all(const Worlds& worlds, const std::function<void(World&)>& body) {
  std::vector<std::jthread> threads;
  for (const auto& world : worlds) threads.emplace_back([&] { body(*world); });
}

}  // namespace muster::collective::testing
