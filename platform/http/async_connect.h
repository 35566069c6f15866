// Connecting without waiting for it: to a unix socket, whoever's it is, or to a port of a host,
// whose name is looked up on the way.
//
// On the loop's thread. `then` is called once, later, with a connected socket that does not block;
// never once what is returned has been dropped.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "http/tcp_socket.h"

namespace muster::http {

using Connected = std::function<void(base::Result<base::UniqueFd>)>;

/// kInvalid: the path is too long. kUnavailable: nobody listens there. kRefused: this user may not.
/// Where too many wait to be let in, it is tried again until somebody gives up.
[[nodiscard]] std::shared_ptr<void> connect_async(base::EventLoop& loop,
                                                  const std::filesystem::path& socket,
                                                  Connected then);

/// Tries each address of the host; each has its part of `patience`, so that one that swallows all
/// leaves some for the next. kUnavailable: nobody answers, or nobody has such a name.
[[nodiscard]] std::shared_ptr<void> connect_async(base::EventLoop& loop, const HostAndPort& address,
                                                  std::chrono::milliseconds patience,
                                                  Connected then);

}  // namespace muster::http
