// The implementation of Communicator: the choice of its backend, and the backend of a world of one
// rank.
//
// Members are destroyed in reverse order, so that a user is destroyed before what it uses.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend.h"
#include "kernels/kernel.h"
#include "muster/collective/communicator.h"
#include "muster/collective/result.h"
#include "shm/layout.h"
#include "world/world.h"

namespace muster::collective {

class Communicator::Impl {
 public:
  explicit Impl(std::unique_ptr<World> joined) : world(std::move(joined)) {}

  /// Numbers the call and reports to the monitor that this rank has entered it.
  Call begin(Call call) {
    call.sequence = ++calls;
    if (world->monitor) world->monitor->entered(calls);
    return call;
  }

  Status failure() const {
    if (world->monitor && world->monitor->failed()) return world->monitor->failure();
    return {};
  }

  /// Whether this process was forked from the rank of the world, and must not use it.
  bool is_foreign() const { return ::getpid() != process; }

  const int process = ::getpid();  // of the rank
  std::unique_ptr<World> world;
  shm::Layout layout = {};
  std::optional<shm::Arena> arena = {};  // if the ranks of this host share memory
  std::unique_ptr<Backend> backend = {};
  std::uint64_t calls = 0;
};

/// Chooses the backend of a world by the location of its ranks: shared memory on one host, TCP if
/// every rank has a host of its own, both if hosts have several ranks; or the plug-in that the
/// options name. Called by all ranks at the same time. The backend refers to the world.
///
/// Errors: those of Communicator::connect().
Result<std::unique_ptr<Backend>> choose_backend(World& world, const shm::Layout& layout);

/// The layout of this host's shared memory; zeros if there is none.
shm::Layout layout_of(const World& world);

/// The backend of a world of one rank: copies inputs to outputs and applies scales.
class SoloBackend final : public Backend {
 public:
  Status all_reduce(const Call& call, Pieces pieces) override;
  Status reduce_scatter(const Call& call, const std::byte* in, std::byte* out, PerRank) override {
    return reduce(call, in, out);
  }
  Status all_gather(const Call&, const std::byte* part, std::byte* all, PerRank bytes) override {
    return move(part, all, bytes[0]);
  }
  Status reduce(const Call& call, const std::byte* in, std::byte* out) override {
    const Piece piece{in, out, call.count};
    return all_reduce(call, {&piece, 1});
  }
  Status broadcast(const Call&, std::byte*) override { return {}; }
  Status all_to_all(const Call&, const std::byte* in, PerRank sent, std::byte* out,
                    PerRank received) override;
  Status barrier(const Call&) override { return {}; }
  Status send(const std::byte* data, std::uint64_t bytes, int) override;
  Status receive(std::byte* data, std::uint64_t bytes, int) override;
  std::string explain(DataType, std::uint64_t) const override { return "a world of one: a copy"; }

 private:
  static Status move(const std::byte* from, std::byte* to, std::uint64_t bytes);

  std::vector<std::vector<std::byte>> mail_ = {};  // messages to itself, not received yet
};

}  // namespace muster::collective
