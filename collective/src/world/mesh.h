// The second step of joining: a connection from every rank to every other. A rank calls those
// before it in the roster, and is called by those behind; it attends its door while it calls, so
// that no order of events can make two ranks wait for each other.
//
// On one host they connect over a unix socket, or else over TCP.
//
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "bootstrap/meet.h"
#include "transport/descriptor.h"

namespace muster::collective {

class Mesh {
 public:
  /// Both outlive it.
  Mesh(const Joining& joining, Gathered& gathered);

  /// `per_pair(r)` connections with each other rank r: result[r][i] is the i-th on both sides. All
  /// ranks call this with the same purposes in the same order.
  ///
  /// Errors: kTimeout, kPeerLost, kAuthentication, kMismatch, kSystem, naming rank and host.
  Result<std::vector<std::vector<Descriptor>>> connect(Purpose purpose,
                                                       const std::function<int(int)>& per_pair);

 private:
  // A call to a rank before this one.
  struct Call {
    enum class Stage { kPausing, kConnecting, kApproaching };

    int rank;
    int index;
    std::vector<Address> ways = {};  // those that are left to try; the first is being tried
    Stage stage = Stage::kPausing;
    Deadline pause_until = {};
    Descriptor socket = {};
    std::vector<Approach> approach = {};  // one, while approaching
    Error obstacle = {};
  };

  const Member& member(int rank) const;
  void place(std::vector<std::vector<Descriptor>>& lines, Guest guest);
  Status step(Purpose purpose, std::vector<std::vector<Descriptor>>& lines);
  Status attend_call(Call& call, Purpose purpose, std::vector<std::vector<Descriptor>>& lines);
  Status dial(Call& call);
  Status approach(Call& call, Purpose purpose);
  Status try_next_way(Call& call, Error obstacle);
  Result<Call> call_to(int rank, int index, Purpose purpose) const;
  Error about(const Error& error, int rank) const;
  Error not_in_time() const;

  const Joining& joining_;
  Gathered& gathered_;
  std::list<Call> calls_;
  std::vector<int> awaited_;  // connections that are still to come, by rank
  std::vector<Guest> early_;  // who called for a later purpose
};

}  // namespace muster::collective
