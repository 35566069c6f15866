// Stream sockets, TCP and unix, the way this library uses them: non-blocking, closed on exec,
// without Nagle's delay, and with every wait bounded by a deadline. A write to a closed connection
// is an error, never a SIGPIPE.
//
// Errors: kSystem with the system's reason, kTimeout when the deadline passed first.
#pragma once

#include "muster/collective/result.h"
#include "transport/address.h"
#include "transport/bytes.h"
#include "transport/deadline.h"
#include "transport/descriptor.h"

namespace muster::collective {

/// Listens on exactly this address; port 0 takes a free one.
Result<Descriptor> listen_on(const Address& address);

/// One attempt to connect.
Result<Descriptor> connect_to(const Address& address, Deadline deadline);

/// The same in two steps, for who does something else meanwhile: begins to connect; once the socket
/// is writable, says how that went. A unix socket whose listener has a full queue is EAGAIN at
/// once, as `reason` of the outcome.
struct Connecting {
  Descriptor socket;
  int reason = 0;  // errno of a failure that was certain at once; EINPROGRESS: not known yet
};
Result<Connecting> begin_to_connect(const Address& address);
Status finish_to_connect(const Descriptor& socket, const Address& address);

/// The next connection in the listener's queue, or an empty Descriptor if there is none.
Result<Descriptor> accept_from(const Descriptor& listener);

/// Sends or receives all of `bytes`. A connection that ends before is kPeerLost.
Status send_all(const Descriptor& socket, ByteView bytes, Deadline deadline);
Status receive_all(const Descriptor& socket, std::span<std::byte> bytes, Deadline deadline);

/// Hands a copy of a descriptor to the process at the other end of a unix socket, with one byte; -1
/// sends the byte alone. A fresh connection always has room for it.
Status send_descriptor(const Descriptor& socket, int fd);

/// Takes such a byte and the descriptor that came with it, if one did. The socket must be readable.
/// Errors: kPeerLost where the connection ended.
Result<Descriptor> receive_descriptor(const Descriptor& socket);

/// What one non-blocking send or recv did.
struct Transfer {
  enum class Outcome { kMoved, kWouldBlock, kEnded };
  Outcome outcome;
  std::size_t bytes = 0;  // kMoved: how many
  int reason = 0;         // kEnded: errno, or 0 where the peer closed in order
};

Transfer send_some(const Descriptor& socket, ByteView bytes);
Transfer receive_some(const Descriptor& socket, std::span<std::byte> bytes);

/// "cannot listen on 10.0.0.1:80: Permission denied"
Error system_error(const std::string& what, int reason);

/// How a connection ended, in words: the system's reason, or that it was closed.
std::string reason_of_end(int reason);

}  // namespace muster::collective
