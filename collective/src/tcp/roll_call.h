// Finds out that ranks make different calls where no data would show it: two ranks that each wait
// for the other to begin would wait for ever. Who has waited for long tells all ranks, by their
// monitors, which call it is in; who has made another one under that number fails the world.
//
// Thread-safety: enter() and ask() from the thread that makes the calls; the monitor's thread
// listens.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "call/call.h"
#include "world/world.h"

namespace muster::collective::tcp {

class RollCall {
 public:
  /// Hears Topic::kCall of the world, which outlives this.
  explicit RollCall(World& world);
  ~RollCall();
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  /// This rank makes `call`.
  void enter(const Call& call);

  /// Tells the others, once a call.
  void ask();

 private:
  struct Heard {
    int from;
    Call call;
  };
  static constexpr std::size_t kRemembered = 64;  // calls: who asks is hardly further behind

  void hear(int from, const Bytes& payload);
  void compare(const Call& mine, const Heard& heard);

  World& world_;
  std::mutex mutex_;
  std::array<Call, kRemembered> calls_ = {};  // call n at n modulo the length
  std::uint64_t current_ = 0;
  std::uint64_t asked_ = 0;
  std::vector<Heard> early_ = {};  // of calls that this rank has not made yet
};

}  // namespace muster::collective::tcp
