// The near ends of streams: what is read here goes to the other end, what comes from there is
// written here. Neither ever waits, and neither has more in hand than the window allows.
//
// One thread. Each owns its descriptor; whether that is non-blocking does not matter, for others
// may have it open, too (a terminal).
#pragma once

#include <poll.h>

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/rsh/connection.h"
#include "engine/rsh/wire.h"

namespace muster::engine::rsh {

/// Reads a descriptor and sends what it holds, to its end.
class Source {
 public:
  Source(Stream stream, base::UniqueFd fd) : stream_(stream), fd_(std::move(fd)) {}

  pollfd interest() const;
  void turn(short events, Connection& connection);
  void granted(size_t bytes) { credit_ += bytes; }
  /// The other end reads no more of it.
  void hang_up() { fd_.reset(); }
  bool ended() const { return !fd_; }

 private:
  Stream stream_;
  base::UniqueFd fd_;
  size_t credit_ = kWindow;
};

/// Writes what has come to a descriptor, and closes that behind the end.
class Sink {
 public:
  Sink(Stream stream, base::UniqueFd fd) : stream_(stream), fd_(std::move(fd)) {}

  pollfd interest() const;
  void turn(short events, Connection& connection);
  /// What comes when nobody reads any more is dropped. kInvalid: more than the window allows.
  base::Result<void> take(std::string_view bytes);
  void end();
  /// Nothing waits to be written.
  bool idle() const { return waiting_.empty(); }

 private:
  bool write_some();

  Stream stream_;
  base::UniqueFd fd_;
  base::ByteQueue waiting_;
  size_t not_granted_ = 0;
  bool end_comes_ = false;
};

}  // namespace muster::engine::rsh
