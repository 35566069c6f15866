// How much of a node's free GPUs is of no use for what is usually asked: the measure by which the
// default packing chooses nodes. A placement goes where it raises this least.
//
// The start is Fragmentation Gradient Descent (Weng et al., "Beware of Fragmentation: Scheduling
// GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC'23). For a usual claim m
// and a node n with T thousandths of GPUs free, they count as wasted
//   next(n, m) = T                                      where m does not fit n,
//              = the sum of the devices too small for m   where it does.
// That looks one task ahead: a node with 8 free GPUs and 12 CPUs counts as good for tasks with 1
// GPU and 12 CPUs, though it takes a single one. So as much again weighs what remains when n is
// filled with m:
//   fill(n, m) = T - (as many m as n has GPUs, CPUs, memory and slots for) * (GPUs of m)
//   waste(n)   = sum of weight(m) * ((1 - a) * next(n, m) + a * fill(n, m)),  a = 0.6
// with weight(m) = how often m is asked for, times (part of a GPU that m takes)^-1.5 where it takes
// a part: the small ones decide what a nearly full device is still good for. docs/scheduler.md has
// what each of these is worth on the openb workloads.
//
// Pure: equal rooms have equal waste, whatever came before.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "schedule/node_room.h"

namespace muster::schedule {

/// The usual claims as the GPUs of one model see them, those together that need the same of them.
struct UsualNeeds {
  struct Rest {
    int64_t cpu_milli = 0;
    int64_t memory_bytes = 0;
    double weight = 0;
  };
  struct Group {
    int gpus = 0;
    int share_milli = 0;
    double weight = 0;  ///< of all of them
    std::vector<Rest> rests;
  };
  std::vector<Group> groups;
  double useless = 0;  ///< the weight of those that can never run there
};

double waste(const UsualNeeds& usual, const NodeRoom& room);

class Fragmentation {
 public:
  void set(std::vector<UsualClaim> claims);
  bool knows_nothing() const { return claims_.empty(); }
  const UsualNeeds& usual_for(const std::string& gpu_model, int64_t gpu_memory_bytes) const;

 private:
  std::vector<UsualClaim> claims_;
  mutable std::map<std::pair<std::string, int64_t>, UsualNeeds> by_model_;
};

}  // namespace muster::schedule
