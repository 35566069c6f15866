// A two-way stream of bytes to the other end of a connection: a socket here, or what an engine has
// in its place, such as a port of a pod that is reached through the API server.
//
// On the loop's thread. No handler is called from within a call, nor after the stream was dropped,
// which closes it. A handler may drop its stream, and may replace the handlers.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/unique_fd.h"

namespace muster::engine::node {

class PeerStream {
 public:
  struct Handlers {
    /// Bytes that were being read may still come after pause().
    std::function<void(std::string_view bytes)> on_bytes;
    /// Called once, as the last handler. `why` completes a sentence about the other end: "closed the
    /// connection: connection refused". Empty: it has closed the stream in order.
    std::function<void(const std::string& why)> on_end;
    std::function<void()> on_drain = {};  ///< at most kHigh bytes wait to be sent
  };
  static constexpr size_t kHigh = 256 << 10;

  virtual ~PeerStream() = default;
  /// Nothing is read before this is called. Replaces earlier handlers.
  virtual void listen(Handlers handlers) = 0;
  virtual void write(std::string_view bytes) = 0;
  /// Bytes that have not been sent yet. If more than kHigh, wait for on_drain.
  virtual size_t waiting() const = 0;
  virtual void pause(bool paused) = 0;
  /// This machine's address as the other end sees it; empty: unknown.
  virtual std::string own_address() const { return ""; }
};

struct PeerPatience {
  /// The longest time without an acknowledgement of sent data.
  std::chrono::milliseconds unacknowledged{30'000};
  /// How often the stream checks whether the other end reads; several times shorter.
  std::chrono::milliseconds look{10'000};
};

/// `socket`: connected. Detects within half a minute that the other machine is down or disconnected;
/// within 20 minutes if the other end had stopped reading before. An end that reads nothing, such as
/// the attached terminal of a user who has stopped the output, keeps its stream for any time.
std::unique_ptr<PeerStream> stream_on(base::EventLoop& loop, base::UniqueFd socket,
                                      const PeerPatience& patience = {});

}  // namespace muster::engine::node
