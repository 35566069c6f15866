// Frames over an encrypted channel over a socket that is polled: whoever owns it asks what to wait
// for, says what came of that, and takes the frames.
//
// One thread. Owns the socket.
#pragma once

#include <poll.h>

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/rsh/secure_channel.h"
#include "engine/rsh/wire.h"

namespace muster::engine::rsh {

class Connection {
 public:
  /// The far end greets at once; the near end waits for the greeting before it says anything.
  Connection(End end, base::UniqueFd socket, const Key& key);

  pollfd interest() const;

  /// Reads and writes what can be. Errors read behind the name of the other end. kUnavailable: the
  /// other end does not greet as ours do; kRefused: it has another key, or said too much before it
  /// had shown that it has this one.
  base::Result<void> turn(short events);

  bool established() const { return channel_.established(); }
  /// The other end has closed it, or is out of reach.
  bool lost() const { return lost_; }

  /// REQUIRES: established().
  void send(const Frame& frame);
  base::Result<std::optional<Frame>> next() { return frames_.next(); }

 private:
  base::Result<void> take(std::string_view bytes);
  base::Result<std::string_view> without_greeting(std::string_view bytes);
  void read_some(base::Result<void>& result);
  void write_some();

  base::UniqueFd socket_;
  SecureChannel channel_;
  FrameReader frames_;
  base::ByteQueue unsent_;
  std::string greeting_;   ///< of the far end, as far as it was heard
  bool greets_ = false;    ///< it is yet to be heard
  size_t before_key_ = 0;  ///< bytes that came before the other end had shown the key
  bool lost_ = false;
};

}  // namespace muster::engine::rsh
