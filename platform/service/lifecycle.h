// What a server says that waits for its turn: it lives, it does nothing, and somebody else leads.
//
// On the EventLoop's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "http/server.h"

namespace muster::service {

struct Standby {
  std::string version;
  std::string state_folder;
  std::string engine;
  /// The address of the server that leads, as far as is known.
  std::function<std::optional<std::string>()> leader;
  std::function<void()> leave;  ///< told by the server's own user
};

/// Answers every request:
///
///   GET  /healthz        200
///   GET  /v1/info        over the unix socket: this server
///   POST /v1/shutdown    over the unix socket: 202, and leaves
///   others               503 and a problem: "this server waits; muster-1:7443 leads"
http::Handler standby_handler(Standby standby);
/// Reads no body that comes over TLS: the answer is the 503 in any case.
http::Gate standby_gate(Standby standby);

// The signals that a server understands: SIGTERM and SIGINT end it in good order, SIGHUP has it
// read its configuration again.

/// Blocks them for this process, and SIGPIPE for good. To be called before threads start.
base::UniqueFd watch_signals();

enum class Wish { kNone, kEnd, kReload };
/// The next one that came. SIGHUP means kEnd where the terminal that this server was started in is
/// gone, for that is what the kernel tells by it.
Wish next_wish(int signals);

// Tells systemd how the server is doing, where systemd asked for it ($NOTIFY_SOCKET): the protocol
// of sd_notify(3), which is one datagram.
//
// I/O; thread-safe. Where nobody listens nothing happens, for a server does not depend on it.

/// "READY=1\nSTATUS=leads". `socket`: the value of $NOTIFY_SOCKET. False: it was not sent.
bool notify(const std::string& socket, std::string_view state);

/// The socket of this process; empty: there is none. Removes the variable from the environment, for
/// no job is to speak to systemd in the server's name.
std::string take_notify_socket();

// Who answers the requests that come in: nobody yet, a server that waits, or one that leads. The
// sockets are open all the while.
//
// On the EventLoop's thread.

class FrontDoor {
 public:
  /// For http::Server; may outlive the door, and turns everybody away then.
  http::Handler handler() const;
  /// As handler(). Lets no body in as long as nobody answers.
  http::Gate gate() const;
  /// From the next request on. `gate` may be empty: it lets every body in.
  void let_answer(http::Handler who, http::Gate gate = nullptr);

 private:
  struct Inside {
    http::Handler handler;
    http::Gate gate;
  };
  std::shared_ptr<Inside> inside_ = std::make_shared<Inside>();
};

}  // namespace muster::service
