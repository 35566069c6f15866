// What a world keeps for the groups that its ranks will join (group.h): where others reach this
// rank, the key, and the invitations that have come.
//
// Thread-safety: all methods, from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "control/monitor.h"
#include "muster/collective/result.h"
#include "transport/address.h"
#include "transport/bytes.h"
#include "transport/deadline.h"

namespace muster::collective {

class GroupDesk {
 public:
  /// Hears the invitations of `monitor`, and so must outlive it.
  GroupDesk(Address reachable, Bytes key, Monitor& monitor);

  const Address& reachable() const { return reachable_; }

  /// The name and the key of a group.
  struct Identity {
    std::string name;
    Bytes key;
  };

  /// Those of the next group of this list: others than the last time, the same on all members.
  Identity next(std::span<const int> ranks);

  /// Tells a member where the rendezvous of a group is.
  static void invite(Monitor& monitor, int member, const Identity& group,
                     const std::string& endpoint);

  /// Waits to be told.
  ///
  /// Errors: the failure of the monitor's world, kTimeout.
  Result<std::string> invitation(const Identity& group, Monitor& monitor, Deadline deadline);

 private:
  void take(Bytes payload);

  const Address reachable_;
  const Bytes key_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::vector<int>, std::uint64_t> joined_;
  std::map<std::string, std::string> endpoints_;  // by name of the group
};

}  // namespace muster::collective
