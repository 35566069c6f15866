// The switchboard of a large world: opens and accepts connections after the world has been joined,
// for control (control/switchboard.h) and for data. Each connection begins with the same handshake
// as those of joining. The listening sockets of this rank stay open as long as the switchboard.
//
// Of the data connections between two ranks the rank with the higher number opens all, as when a
// world is joined. The other one asks for them with a short connection of its own (Purpose::kInvite).
// So both may begin at once, and neither waits for a call of the other: the monitor's thread serves
// both.
//
// Thread-safety: call(), request_streams(), take_streams(), forget_arrivals() and
// arrival_descriptor() from any thread; the other methods from the monitor's thread.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/dial.h"
#include "bootstrap/handshake.h"
#include "bootstrap/rendezvous.h"
#include "control/switchboard.h"
#include "transport/socket.h"

namespace muster::collective {

/// The data connections to one rank: one or more, the same number and order on both sides. Each is
/// bidirectional, non-blocking, and without Nagle's delay.
struct Streams {
  std::vector<Descriptor> sockets;
};

class WorldSwitchboard final : public Switchboard {
 public:
  /// `door` listens at the endpoints of `self`. `streams` is the number of data connections between
  /// two ranks.
  WorldSwitchboard(RankIdentity self, std::vector<Member> members, Bytes key, Acceptor door,
                   int streams);

  int size() const override { return self_.size; }
  std::string host_of(int rank) const override;
  void call(int rank) override;
  void prepare(std::vector<pollfd>& entries, Deadline& wake) override;
  Status attend(std::span<const pollfd> entries) override;
  std::vector<Outcome> take() override;

  /// Begins to open the data connections to `rank`, unless that has begun already.
  void request_streams(int rank);

  /// Moves the data connections to `rank` to `streams` once all are open. Returns whether they are.
  ///
  /// Errors: the reason why they cannot be opened, which does not name the rank.
  Result<bool> take_streams(int rank, Streams& streams);

  /// Readable after data connections have come, until forget_arrivals(). A thread that waits for
  /// connections calls forget_arrivals() first, then take_streams() for each of their ranks, and then
  /// polls.
  int arrival_descriptor() const { return arrival_.get(); }
  void forget_arrivals();

  /// The data connections between two ranks.
  int streams() const { return streams_; }

 private:
  struct Ongoing {
    Dial dial;
    Deadline limit;
    int attempts = 1;
  };
  struct Request {
    Purpose purpose;
    int rank;
  };
  // The data connections to a rank, as far as they are open.
  struct Incoming {
    bool is_requested = false;
    std::vector<Descriptor> sockets = {};
    std::optional<Error> obstacle = {};
  };

  void start(const Request& request);
  Result<Dial> new_dial(Purpose purpose, int rank, int index) const;
  Status dial_again(Ongoing& ongoing);
  void accept(AcceptedPeer peer);
  void finish(Dial& dial);
  void give_up(Purpose purpose, int rank, Error obstacle);
  void keep_stream(int rank, int index, Descriptor socket);
  Link link_to(int rank, Descriptor socket) const;
  const Member& member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  void put(Request request);

  const RankIdentity self_;
  const std::vector<Member> members_;
  const Bytes key_;
  const int streams_;
  Descriptor request_event_;
  Descriptor arrival_;

  // The monitor's thread alone uses these.
  Acceptor door_;
  std::list<Ongoing> dials_;
  std::vector<Outcome> outcomes_;
  std::size_t door_entries_ = 0;  // of the last prepare()

  std::mutex mutex_;
  std::vector<Request> requests_;
  std::map<int, Incoming> incoming_;  // by rank
};

}  // namespace muster::collective
