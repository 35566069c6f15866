// Compares all_reduce of two ranks over TCP on this host with plain sockets: over one connection,
// each rank sends and receives as many bytes as the all_reduce must, in both directions at once.
//
//   tcp_bench [algorithm [streams]]
//
// The ranks are two processes, with one connection on 127.0.0.1 for each stream. Times are medians.
// The buffers are written between the calls.
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tcp/tcp_backend.h"
#include "transport/socket.h"

namespace {

using namespace muster::collective;

struct Ends {
  std::array<Descriptor, 2> of_rank;
};

Ends connect_pair() {
  Result<Descriptor> listener = listen_on(resolve("127.0.0.1:0")->front());
  const Deadline deadline = Clock::now() + std::chrono::seconds(5);
  Ends ends;
  ends.of_rank[0] = std::move(*connect_to(local_address(listener->get()), deadline));
  while (!ends.of_rank[1]) ends.of_rank[1] = std::move(accept_from(*listener)->socket);
  return ends;
}

// The lower bound of any all_reduce of two ranks: sends `bytes` bytes and receives as many.
void swap_plainly(const Descriptor& socket, std::vector<std::byte>& out,
                  std::vector<std::byte>& in) {
  std::size_t sent = 0;
  std::size_t received = 0;
  while (sent < out.size() || received < in.size()) {
    bool moved = false;
    if (sent < out.size()) {
      const std::size_t length = std::min<std::size_t>(out.size() - sent, 256 * 1024);
      const Transfer transfer = send_some(socket, ByteView(out).subspan(sent, length));
      moved |= transfer.bytes > 0;
      sent += transfer.bytes;
    }
    if (received < in.size()) {
      const std::size_t length = std::min<std::size_t>(in.size() - received, 256 * 1024);
      const Transfer transfer = receive_some(socket, std::span(in).subspan(received, length));
      moved |= transfer.bytes > 0;
      received += transfer.bytes;
    }
    if (!moved) ::sched_yield();
  }
}

double microseconds(Deadline begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

template <typename Work>
double median_of(int rounds, const Work& work, std::vector<std::byte>& touched) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    for (std::size_t at = 0; at < touched.size(); at += 64) touched[at] = std::byte{0};
    const Deadline begin = Clock::now();
    work();
    times.push_back(microseconds(begin));
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void compare(World& world, const Descriptor& plain) {
  tcp::TcpBackend backend(world);
  std::uint64_t sequence = 0;
  for (const std::size_t bytes :
       {std::size_t{4}, std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{256} << 10,
        std::size_t{1} << 20, std::size_t{4} << 20, std::size_t{64} << 20}) {
    std::vector<std::byte> data(bytes);
    std::vector<std::byte> other(bytes);
    const int rounds = std::clamp<int>(static_cast<int>((std::size_t{256} << 20) / bytes), 10, 500);
    const double reduced = median_of(
        rounds,
        [&] {
          const Piece piece = {data.data(), data.data(), bytes / 4};
          const Call call = {.kind = CallKind::kAllReduce,
                             .type = DataType::kFloat32,
                             .reduction = ReduceOp::kSum,
                             .count = bytes / 4,
                             .sequence = ++sequence};
          world.monitor->entered(sequence);
          if (!backend.all_reduce(call, {&piece, 1})) std::abort();
        },
        data);
    const double swapped = median_of(rounds, [&] { swap_plainly(plain, data, other); }, data);
    if (world.rank != 0) continue;
    std::printf("%9zu bytes  all_reduce %9.1f us  plain sockets %9.1f us  %3.0f %%  %s\n", bytes,
                reduced, swapped, 100 * swapped / reduced,
                backend.explain(DataType::kFloat32, bytes).c_str());
  }
}

std::unique_ptr<World> world_of(int rank, const char* algorithm) {
  auto world = std::make_unique<World>();
  world->rank = rank;
  world->size = 2;
  world->hosts = {"a", "b"};
  world->topology = topology_of(world->hosts);
  world->options.algorithm = algorithm;
  world->streams.resize(2);
  return world;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const algorithm = argc > 1 ? argv[1] : "auto";
  const int streams = argc > 2 ? std::atoi(argv[2]) : 2;
  std::vector<Ends> data;
  for (int i = 0; i < streams; ++i) data.push_back(connect_pair());
  Ends control = connect_pair();
  Ends plain = connect_pair();
  const pid_t child = ::fork();
  const int rank = child == 0 ? 1 : 0;
  const auto self = static_cast<std::size_t>(rank);
  std::unique_ptr<World> world = world_of(rank, algorithm);
  for (Ends& ends : data) {
    world->streams[1 - self].sockets.push_back(std::move(ends.of_rank[self]));
    ends.of_rank[1 - self].close();
  }
  control.of_rank[1 - self].close();
  std::vector<Link> links;
  links.push_back({1 - rank, world->hosts[1 - self], false, std::move(control.of_rank[self])});
  world->monitor = std::make_unique<Monitor>(
      MonitorOptions{.rank = rank, .host = world->hosts[self], .timeout = std::chrono::seconds(10)},
      std::move(links));
  compare(*world, plain.of_rank[self]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  return 0;
}
