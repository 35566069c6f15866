// From a host name or a socket's path to a connected socket, without blocking.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "http/sockets.h"

namespace muster::http {

/// Looks a host name up. The system's resolver blocks and cannot be interrupted, so each lookup
/// runs in a thread of its own. If the NameLookup is dropped, the thread ends by the resolver's
/// timeouts and its result is discarded.
///
/// The thread and the owner share state safely; the NameLookup itself has one owner.
class NameLookup {
 public:
  /// kExhausted: no thread or descriptor is available.
  static base::Result<NameLookup> start(const std::string& host);

  /// Readable as soon as the answer has arrived.
  int fd() const;
  /// kUnavailable: the name has no address, or the lookup has not finished.
  base::Result<std::vector<IpAddress>> answer() const;

 private:
  struct Shared;
  explicit NameLookup(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  std::shared_ptr<Shared> shared_;
};

/// Receives a connected, non-blocking socket. Called once, later, on the loop's thread; never after
/// the object that connect_async() returned has been dropped.
using Connected = std::function<void(base::Result<base::UniqueFd>)>;

/// Connects to a unix socket of any user. kInvalid: the path is too long. kUnavailable: no process
/// listens there. kRefused: no permission. If the listener's queue is full, the call tries again
/// until it is dropped.
[[nodiscard]] std::shared_ptr<void> connect_async(base::EventLoop& loop,
                                                  const std::filesystem::path& socket,
                                                  Connected then);

/// Tries each address of the host. Each address gets a part of `patience`, so that an address that
/// swallows packets leaves time for the next. kUnavailable: no address answers, or the name does
/// not exist.
[[nodiscard]] std::shared_ptr<void> connect_async(base::EventLoop& loop, const HostAndPort& address,
                                                  std::chrono::milliseconds patience,
                                                  Connected then);

}  // namespace muster::http
