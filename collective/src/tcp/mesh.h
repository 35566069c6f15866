// The ranks of a backend, numbered from 0, with the connections between them: all ranks of a world,
// or some of them; and the comparison of their calls. Two meshes of one world use the same
// connections, which is correct as long as every rank makes its calls in one order.
//
// Ownership: refers to the world, which outlives it. Thread-safety: immutable.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "call/call.h"
#include "world/world.h"

namespace muster::collective::tcp {

class Mesh {
 public:
  /// `members` are ranks of the world, including this one, in the order of their numbers.
  Mesh(World& world, std::vector<int> members);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }

  /// The connections to a member, in the order that both sides agree on.
  std::span<const Descriptor> streams_to(int member) const {
    return world_.streams[static_cast<std::size_t>(world_rank_of(member))].sockets;
  }

  int world_rank_of(int member) const { return members_[static_cast<std::size_t>(member)]; }
  const std::string& host_of(int member) const {
    return world_.hosts[static_cast<std::size_t>(world_rank_of(member))];
  }
  std::string name_of(int member) const { return world_.name_of(world_rank_of(member)); }

  World& world() const { return world_; }
  Monitor& monitor() const { return *world_.monitor; }

  /// The largest number of members on one host.
  int crowd() const;

  /// Whether each rank of this host may have a core to itself, so that spinning does not slow down
  /// others.
  bool may_spin() const { return may_spin_; }

 private:
  World& world_;
  std::vector<int> members_;
  int rank_ = 0;
  bool may_spin_ = false;
};

/// All ranks of a world, in their order.
std::vector<int> everyone_in(const World& world);

/// Detects that ranks make different calls where no data would reveal it, as when two ranks each
/// wait for the other's data. A rank that has waited for long sends its call to its neighbours, by
/// their monitors; a rank that has made another call with that number fails the world. If not all
/// ranks are neighbours, each rank that receives a call sends its own call of that number: two ranks
/// with different calls are then connected by ranks that send theirs, two neighbours of which have
/// different calls.
///
/// Thread-safety: enter() and ask() from the thread that makes the calls; messages arrive on the
/// monitor's thread.
class CallComparison {
 public:
  /// Handles Topic::kCall of the world, which outlives this object.
  explicit CallComparison(World& world);
  ~CallComparison();
  CallComparison(const CallComparison&) = delete;
  CallComparison& operator=(const CallComparison&) = delete;

  /// This rank makes `call`.
  void enter(const Call& call);

  /// Sends the current call to the neighbours, once for each call.
  void ask();

 private:
  struct RemoteCall {
    int from;
    Call call;
  };
  static constexpr std::size_t kRemembered = 64;  // calls: other ranks are hardly further behind

  void receive(int from, const Bytes& payload);
  void send(std::uint64_t sequence);
  void compare(const Call& mine, const RemoteCall& remote);

  World& world_;
  std::mutex mutex_;
  std::array<Call, kRemembered> calls_ = {};  // call n at n modulo the length
  std::uint64_t current_ = 0;
  std::uint64_t asked_ = 0;
  std::vector<RemoteCall> early_ = {};  // of calls that this rank has not made yet
};

}  // namespace muster::collective::tcp
