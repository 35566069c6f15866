// The door of a rank: lets in who proves to hold the key of the job, and nobody else. Strangers (a
// port scanner, a rank of another job) are shown out without disturbing the others: all callers
// are served at the same time, and none can make another wait.
//
// Thread-safety: one thread at a time.
#pragma once

#include <poll.h>

#include <deque>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/handshake.h"
#include "muster/collective/result.h"
#include "transport/deadline.h"
#include "transport/descriptor.h"

namespace muster::collective {

/// A caller that has proved itself.
struct Guest {
  Descriptor socket;
  Handshake handshake;
  Introduction introduction;
};

class Acceptor {
 public:
  /// Takes over listening sockets. `expected` is how many guests may come at once; more callers
  /// than that are strangers, of whom the oldest has to go first when it gets crowded; who has
  /// begun a handshake stays longer than who says nothing.
  Acceptor(std::vector<Descriptor> listeners, Bytes key, std::size_t expected);

  /// The next guest, in the order in which they finish their introduction. Ends early, as
  /// kPeerLost, when `cancel` turns readable; -1: never.
  ///
  /// Errors: kTimeout at the deadline, kSystem when a listener fails.
  Result<Guest> next(Deadline deadline, int cancel = -1);

  /// The same in steps, for who waits for other things too: appends what is to be polled, lowers
  /// `wake` to when a step is due anyway; attends to what poll() found in those entries, in the
  /// same order; gives out a guest, if one is there.
  void prepare(std::vector<pollfd>& entries, Deadline& wake) const;
  Status attend(std::span<const pollfd> entries);
  std::optional<Guest> take();

  /// Stops listening. Callers that are still introducing themselves find the door closed.
  void close();

  /// Who was shown out, for the message about a guest who never came; empty if nobody was. As in
  /// "1 other connection was dropped, the last from 10.0.0.9:5000 (it holds another key)".
  std::string dropped() const;

 private:
  struct Caller {
    Descriptor socket;
    std::string from;
    Deadline patience;
    Reception reception;
  };

  Status admit(const Descriptor& listener);
  bool listen(Caller& caller);
  void make_room();
  bool show_out(const Caller& caller, const std::string& reason);
  void show_out_the_slow();

  std::vector<Descriptor> listeners_;
  Bytes key_;
  std::size_t most_callers_;
  std::list<Caller> callers_;  // oldest first
  std::deque<Guest> guests_;
  int dropped_ = 0;
  std::string last_dropped_;
};

}  // namespace muster::collective
