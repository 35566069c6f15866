// The first step of joining: all ranks meet at the rendezvous and learn about each other. Each has
// its door open afterwards, at which the others will call; the rendezvous itself is closed.
#pragma once

#include <chrono>

#include "bootstrap/acceptor.h"
#include "bootstrap/handshake.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/star.h"
#include "muster/collective/bootstrap.h"
#include "muster/collective/result.h"
#include "transport/address.h"
#include "transport/deadline.h"

namespace muster::collective {

/// What all steps of one rank's joining need to know.
struct Joining {
  const Options& options;  // complete
  Introduction self;       // its endpoints are filled in on the way
  Terms terms;             // its own, which count on rank 0
  Deadline deadline;
  std::chrono::milliseconds timeout;
  int cancel = -1;  // readable: give up
};

struct Gathered {
  Roster roster;
  Bytes key;
  Acceptor door;  // listens at this rank's endpoints
  Star star;
  Address reachable;  // the address of this rank that the others reach
};

/// In a world of two or more; takes over options.listener.
///
/// Errors: those of Communicator::connect().
Result<Gathered> meet(Joining& joining);

}  // namespace muster::collective
