// Tells systemd how the server is doing, where systemd asked for it ($NOTIFY_SOCKET): the protocol
// of sd_notify(3), which is one datagram.
//
// I/O; thread-safe. Where nobody listens nothing happens, for a server does not depend on it.
#pragma once

#include <string>
#include <string_view>

namespace muster::service {

/// "READY=1\nSTATUS=leads". `socket`: the value of $NOTIFY_SOCKET. False: it was not sent.
bool notify(const std::string& socket, std::string_view state);

/// The socket of this process; empty: there is none. Removes the variable from the environment, for
/// no job is to speak to systemd in the server's name.
std::string take_notify_socket();

}  // namespace muster::service
