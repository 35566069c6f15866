// The server as a process: which requests it answers before, while and after it leads, the signals
// it handles, and what it reports to systemd.
//
// On the EventLoop's thread, except where noted.
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
  /// The address of the leader, if it is known.
  std::function<std::optional<std::string>()> leader;
  std::function<void()> leave;  ///< called when the server's own user shuts it down
};

/// Answers requests to a server that waits for the lead:
///
///   GET  /healthz        200
///   GET  /v1/info        over the unix socket: this server
///   POST /v1/shutdown    over the unix socket: 202, and stops
///   others               503 and a problem: "this server is on standby; muster-1:7443 leads"
http::Handler standby_handler(Standby standby);
/// Reads no bodies over TLS, because the answer is 503 anyway.
http::Gate standby_gate(Standby standby);

// Signals: SIGTERM and SIGINT stop the server in good order, SIGHUP has it read its configuration
// again.

/// Blocks these signals in this process, and ignores SIGPIPE and SIGXFSZ. To be called before
/// threads start.
base::UniqueFd watch_signals();

enum class SignalRequest { kNone, kEnd, kReload };
/// The next signal that arrived. SIGHUP means kEnd if the terminal of this server is gone, because
/// the kernel sends SIGHUP then.
SignalRequest next_request(int signals);

// systemd: the protocol of sd_notify(3), one datagram to $NOTIFY_SOCKET. Thread-safe. A server runs
// without systemd, too.

/// Sends a state: "READY=1\nSTATUS=leads". `socket`: the value of $NOTIFY_SOCKET. False: nothing
/// was sent.
bool notify(const std::string& socket, std::string_view state);

/// The value of $NOTIFY_SOCKET; empty: not set. Removes the variable from the environment, so that
/// jobs cannot send messages to systemd as the server.
std::string take_notify_socket();

/// Passes requests to the present handler: none yet, that of a waiting server, or that of a leader.
/// The sockets stay open meanwhile.
class FrontDoor {
 public:
  /// For http::Server. It may outlive this object, and refuses requests then.
  http::Handler handler() const;
  /// For http::Server. Refuses bodies while there is no handler.
  http::Gate gate() const;
  /// Sets the handler of later requests. An empty `gate` accepts every body.
  void let_answer(http::Handler who, http::Gate gate = nullptr);

 private:
  struct Inside {
    http::Handler handler;
    http::Gate gate;
  };
  std::shared_ptr<Inside> inside_ = std::make_shared<Inside>();
};

}  // namespace muster::service
