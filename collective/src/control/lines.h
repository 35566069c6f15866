// The open connections of a monitor, which are polled together.
//
// Thread-safety: none. The monitor's lock guards all of it, except that the monitor's thread reads
// from connections without the lock; only that thread adds lines.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "control/frame.h"
#include "control/switchboard.h"
#include "transport/socket.h"

namespace muster::collective {

/// One connection to another rank. Two ranks that connect to each other at the same time have two.
struct Line {
  int rank;
  std::string host;
  ControlConnection connection;
  bool is_confirmed = false;      // the other rank has this connection, too
  bool received_goodbye = false;  // from the other rank
  bool sent_goodbye = false;      // to the other rank
  bool is_parted = false;         // the other rank has answered the goodbye of this one
  bool has_ended = false;         // the connection has
  bool has_failed = false;        // the other rank has sent a failure, and needs no other
  bool waits_to_send = false;     // its queue is not empty
  std::uint64_t probes = 0;       // sent
  std::uint64_t answers = 0;      // to them

  bool is_live() const { return !received_goodbye && !has_ended; }
};

class Lines {
 public:
  /// `wake` is an eventfd, which ends a wait.
  explicit Lines(const Descriptor& wake);

  /// Returns the index of the new line.
  std::size_t add(Link link, bool is_confirmed);
  void confirm(std::size_t index);

  std::size_t size() const { return lines_.size(); }
  Line& operator[](std::size_t index) { return lines_[index]; }
  const Line& operator[](std::size_t index) const { return lines_[index]; }
  std::vector<Line>& all() { return lines_; }

  /// The first confirmed connection to `rank`, by which all messages to it go, so that they keep their order.
  /// Without such a connection, size().
  std::size_t to(int rank) const;

  /// Whether a connection to `rank` exists on which its goodbye may still arrive.
  bool has_live(int rank) const;

  /// Queues a frame and sends as much as the socket takes. False if the queue is too long.
  bool send(std::size_t index, Bytes frame);
  void flush_unsent();
  bool has_unsent() const { return !unsent_.empty(); }

  /// The connection has ended: sends nothing more and is not polled any more.
  void end(std::size_t index);

  /// A descriptor that is readable when wait() would return at once.
  int descriptor() const { return epoll_.get(); }

  /// Waits for at most `timeout_ms` (-1: without a limit) and calls `readable` for each connection
  /// with news.
  void wait(int timeout_ms, const std::function<void(std::size_t)>& readable);

 private:
  void poll_for(int operation, std::size_t index, std::uint32_t events);

  // Each line by its index, and the wake event by kWakeEvent. With poll(), every message would cost
  // time for every rank of the world.
  Descriptor epoll_;
  std::vector<epoll_event> events_;
  std::vector<Line> lines_;
  std::map<int, std::size_t> first_;  // by rank
  std::vector<std::size_t> unsent_;   // lines that wait to send
};

}  // namespace muster::collective
