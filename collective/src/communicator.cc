#include "muster/collective/communicator.h"

#include <unistd.h>

#include <array>
#include <cstring>

#include "bootstrap/join.h"
#include "ring/plan.h"
#include "ring/ring.h"

namespace muster::collective {
namespace {

std::string host_name() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

Error bad_argument(std::string message) {
  return {ErrorCode::kBadArgument, std::move(message)};
}

Status check_buffer(const void* buffer, std::uint64_t bytes) {
  if (buffer != nullptr || bytes == 0) return {};
  return bad_argument("the buffer is null, and its length is not 0");
}

Status check_options(const Options& options) {
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

}  // namespace

class Communicator::World {
 public:
  int rank = 0;
  int size = 1;
  std::string host;
  std::unique_ptr<Ring> ring;  // null in a world of one

  Place place() const { return {rank, size}; }
};

Communicator::Communicator(std::unique_ptr<World> world) : world_(std::move(world)) {}
Communicator::~Communicator() = default;
Communicator::Communicator(Communicator&& other) noexcept = default;
Communicator& Communicator::operator=(Communicator&& other) noexcept = default;

int Communicator::rank() const {
  return world_->rank;
}
int Communicator::size() const {
  return world_->size;
}
const std::string& Communicator::host() const {
  return world_->host;
}

Result<Communicator> Communicator::connect(const Options& options) {
  if (Status checked = check_options(options); !checked) return checked.error();
  auto world = std::make_unique<World>();
  world->rank = *options.rank;
  world->size = *options.size;
  world->host = options.host.empty() ? host_name() : options.host;
  if (world->size > 1) {
    Options complete = options;
    complete.host = world->host;
    Result<std::unique_ptr<Ring>> ring = join_ring(complete);
    if (!ring) return ring.error();
    world->ring = *std::move(ring);
  }
  return Communicator(std::move(world));
}

Status Communicator::all_reduce(void* data, std::uint64_t count, DataType type, ReduceOp op) {
  if (Status checked = check_buffer(data, count); !checked) return checked;
  // A world of one has nothing to add, and its average is what it was.
  if (!world_->ring) return {};
  return world_->ring->run(
      {CallKind::kAllReduce, type, op, 0, count},
      plan_all_reduce(world_->place(), static_cast<std::byte*>(data), count, type, op));
}

Status Communicator::broadcast(void* data, std::uint64_t bytes, int root) {
  if (Status checked = check_buffer(data, bytes); !checked) return checked;
  if (root < 0 || root >= size()) {
    return bad_argument("the root of a broadcast, rank " + std::to_string(root) +
                        ", is not in a world of " + std::to_string(size()));
  }
  if (!world_->ring) return {};
  return world_->ring->run(
      {.kind = CallKind::kBroadcast, .root = root, .count = bytes},
      plan_broadcast(world_->place(), static_cast<std::byte*>(data), bytes, root));
}

Status Communicator::all_gather(const void* part, std::uint64_t bytes_per_rank, void* all) {
  if (Status checked = check_buffer(part, bytes_per_rank); !checked) return checked;
  if (Status checked = check_buffer(all, bytes_per_rank); !checked) return checked;
  auto* const into = static_cast<std::byte*>(all);
  if (bytes_per_rank > 0) {
    std::memcpy(into + bytes_per_rank * static_cast<std::uint64_t>(rank()), part, bytes_per_rank);
  }
  if (!world_->ring) return {};
  return world_->ring->run({.kind = CallKind::kAllGather, .count = bytes_per_rank},
                           plan_all_gather(world_->place(), into, bytes_per_rank));
}

Status Communicator::barrier() {
  if (!world_->ring) return {};
  // A byte of each rank goes once round the ring: who has them all knows that all have entered.
  std::vector<std::byte> marks(static_cast<std::size_t>(size()));
  return world_->ring->run({.kind = CallKind::kBarrier},
                           plan_all_gather(world_->place(), marks.data(), 1));
}

}  // namespace muster::collective
