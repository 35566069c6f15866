#include "world/share.h"

#include <poll.h>
#include <sys/resource.h>

#include <cerrno>
#include <utility>

#include "transport/socket.h"

namespace muster::collective {
namespace {

bool is_unix(const Descriptor& socket) {
  return local_address(socket.get()).family() == AF_UNIX;
}

// Growing a file beyond the limit is not only an error, but sends a signal that ends the process.
Result<Descriptor> create(std::uint64_t bytes) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < bytes) {
    return Error{ErrorCode::kSystem, "the limit of file sizes (ulimit -f) is too low for " +
                                         std::to_string(bytes) + " bytes of shared memory"};
  }
  return SharedMemory::create(bytes);
}

Result<Sharing> mapped(Descriptor file) {
  Result<SharedMemory> memory = SharedMemory::map(std::move(file));
  if (!memory) return Sharing{{}, memory.error().message};
  return Sharing{*std::move(memory), {}};
}

// The part of the lowest rank of the host. A rank that cannot receive the memory detects that by
// itself.
Result<Sharing> give_memory(const std::vector<int>& local, const std::vector<Descriptor>& control,
                            std::uint64_t bytes) {
  Result<Descriptor> file = create(bytes);
  for (std::size_t i = 1; i < local.size(); ++i) {
    const Descriptor& socket = control[static_cast<std::size_t>(local[i])];
    // Ranks that wait for an ended rank detect its end.
    if (is_unix(socket)) static_cast<void>(send_descriptor(socket, file ? file->get() : -1));
  }
  if (!file) return Sharing{{}, file.error().message};
  return mapped(*std::move(file));
}

Result<Sharing> receive_memory(const JoinContext& joining, Star& star, int leader,
                               const Descriptor& socket) {
  const std::string from = "rank " + std::to_string(leader);
  if (!is_unix(socket)) return Sharing{{}, "it has no unix socket to " + from};
  for (;;) {
    std::vector<pollfd> entries = {{socket.get(), POLLIN, 0}};
    star.prepare(entries);
    const int ready = ::poll(entries.data(), entries.size(), milliseconds_left(joining.deadline));
    if (ready < 0 && errno != EINTR) return system_error("cannot wait for " + from, errno);
    if (ready == 0 && Clock::now() >= joining.deadline) {
      return Error{ErrorCode::kTimeout, from + " did not share its memory with " +
                                            joining.self.name() + " within " +
                                            in_seconds(joining.timeout)};
    }
    if (ready <= 0) continue;
    if (Status done = star.attend(std::span(entries).subspan(1)); !done) return done.error();
    if (entries[0].revents == 0) continue;
    Result<Descriptor> file = receive_descriptor(socket);
    if (!file) return Sharing{{}, from + " sent no memory: " + file.error().message};
    if (!*file) return Sharing{{}, from + " has no memory to share"};
    return mapped(*std::move(file));
  }
}

}  // namespace

Result<Sharing> share_memory(const JoinContext& joining, Star& star, const Topology& topology,
                             const std::vector<Descriptor>& control, std::uint64_t bytes) {
  const std::vector<int>& local = topology.neighbours_of(joining.self.rank);
  if (local.size() < 2) return Sharing{};
  if (local.front() == joining.self.rank) return give_memory(local, control, bytes);
  return receive_memory(joining, star, local.front(),
                        control[static_cast<std::size_t>(local.front())]);
}

}  // namespace muster::collective
