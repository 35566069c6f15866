// A rank's place in the ring: its connections to both neighbours, and what it knows of their fate.
// run() drives one pass over them, sending and receiving at the same time, so that no size of
// buffer can make two ranks wait for each other's room.
//
// Failure: the first error of a rank is its last word. It is told to both neighbours on their
// control connections before the data connections close, they adopt it and pass it on, and so
// every rank ends with the same sentence about the same culprit. A data connection that ends is
// therefore judged by the control connection beside it: a reason, a goodbye, or silence, which is
// a death.
//
// Thread-safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "muster/collective/result.h"
#include "ring/call.h"
#include "ring/pass.h"
#include "ring/plan.h"
#include "ring/stall_watch.h"
#include "transport/control.h"
#include "transport/descriptor.h"

namespace muster::collective {

/// The other end of the two connections on one side.
struct Neighbour {
  int rank;
  std::string host;
  Descriptor data;  // bytes flow from left to right only
  ControlChannel control;
  bool has_left = false;  // said goodbye

  /// "rank 1 on host n1"
  std::string name() const { return "rank " + std::to_string(rank) + " on host " + host; }
};

class Ring {
 public:
  /// `host` is this rank's own. In a ring of two, both neighbours are the same rank, over separate
  /// connections.
  Ring(Place place, std::string host, Neighbour left, Neighbour right,
       std::chrono::milliseconds timeout);

  /// Says goodbye, unless it has failed.
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Carries out `plan`, which belongs to `call`; fills in the call's sequence number.
  /// After a failure every further call returns the same error.
  Status run(Call call, const Plan& plan);

 private:
  Result<bool> receive(Pass& pass, const Call& call);
  Result<bool> send(Pass& pass, const Call& call);
  Status compare_with_left(const CallHeader& header, const Call& call) const;
  Status wait(Pass& pass, const Call& call);
  Status listen(Neighbour& neighbour, Side side, const Call& call);
  Status judge_stall(bool waits_for_left, bool waits_for_right, const Call& call);

  Error end_of(Neighbour& neighbour, int reason, const Call& call);
  Error gone(const Neighbour& neighbour, int reason, const Call& call) const;
  Error left(const Neighbour& neighbour, const Call& call) const;
  Error silent(const Neighbour& neighbour, const Call& call) const;
  Error fail(Error error);

  Place place_;
  std::string host_;
  Neighbour left_;
  Neighbour right_;
  std::chrono::milliseconds timeout_;
  StallWatch watch_;
  std::vector<std::max_align_t> scratch_;
  std::uint64_t calls_ = 0;
  std::optional<Error> failure_;
};

}  // namespace muster::collective
