// Finds out who holds up a ring in which everybody waits.
//
// When one rank stops, its right neighbour waits for it, that one's right neighbour waits in turn,
// and all run into the timeout at about the same time, each with nothing but its own innocent
// neighbour to blame. So at the timeout a rank asks the neighbours it waits for whether they are
// there. One that waits itself answers at once and is given more time: its own question is about
// to find the culprit, whose name then comes round the ring. One that does not answer is it.
//
// Pure: time comes in as an argument.
#pragma once

#include <chrono>

#include "transport/deadline.h"

namespace muster::collective {

enum class Side { kLeft, kRight };

class StallWatch {
 public:
  enum class Verdict {
    kWait,         // until next()
    kProbe,        // ask the neighbours that are waited for, then wait
    kLeftSilent,   // the left neighbour was asked and did not answer
    kRightSilent,  // the right one
    kStuck,        // all answered, again and again, and still nothing moved
  };

  explicit StallWatch(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  /// Something moved, or a call began.
  void progress(Deadline now);

  /// A neighbour answered the probe.
  void answered(Side side);

  /// The moment of the next decision.
  Deadline next() const;

  /// Decides, if it is time. The two flags say which neighbours are waited for.
  Verdict check(Deadline now, bool waits_for_left, bool waits_for_right);

 private:
  static constexpr int kRounds = 3;  // of probes that all answer, until kStuck

  /// How long a neighbour may take to answer: it sits in poll(), so this is generous, but its host
  /// may be busy.
  std::chrono::milliseconds grace() const;

  std::chrono::milliseconds timeout_;
  Deadline since_ = {};  // the last progress, or the last probe that all answered
  bool probing_ = false;
  bool left_owes_ = false;
  bool right_owes_ = false;
  int rounds_ = 0;
};

}  // namespace muster::collective
