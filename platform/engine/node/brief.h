// How a muster-node finds its server.
//
// The server listens for muster-nodes at a CallbackSite. It keeps the address in its folder of
// jobs, so that a restarted server listens where the previous one did. Each muster-node gets a
// NodeBrief on its standard input: the server's addresses, the key of the attempt, and where the
// server's folder would be if the node shared it. A node that shares the folder reads the current
// address there (kCallbackFile), and so finds a server that was restarted elsewhere.
//
// open_callback_site() does I/O on the loop's thread; the rest is pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/node/connection.h"
#include "engine/node/messages.h"
#include "engine/rsh/secure_channel.h"

namespace muster::engine::node {

/// Whether nodes share the server's folder of jobs.
enum class Sharing {
  kAuto,  ///< each muster-node checks for itself
  kYes,
  kNo,
};

struct NodeBrief {
  Caller caller;  ///< the attempt that was submitted, also if the cluster runs it again
  rsh::Key key{};
  std::vector<std::string> hosts;  ///< names and addresses of the server, tried in turn
  uint16_t port = 0;
  Sharing sharing = Sharing::kAuto;
  std::string folder;  ///< the server's folder of jobs
  std::string mark;    ///< the name of a file in that folder
  std::string nonce;   ///< the content of that file: it identifies the folder
  /// How long a muster-node whose task has ended waits for a server that does not answer.
  std::chrono::milliseconds linger{0};

  bool operator==(const NodeBrief&) const = default;
};

/// One line of JSON.
std::string encode(const NodeBrief& brief);
/// kInvalid; the error does not quote the text, which may contain a key.
base::Result<NodeBrief> decode_node_brief(std::string_view text);

/// The file in the folder of jobs with the server's current address: "HOST,HOST PORT\n".
inline constexpr const char* kCallbackFile = "callback";
struct CallbackAddress {
  std::vector<std::string> hosts;
  uint16_t port = 0;
  bool operator==(const CallbackAddress&) const = default;
};
std::string encode(const CallbackAddress& address);
base::Result<CallbackAddress> decode_callback(std::string_view text);

/// Where the server is to listen.
struct CallbackOptions {
  std::filesystem::path folder;    ///< the folder of jobs; made with mode 0700
  std::string owner;               ///< the server's id, part of the mark's name
  std::string bind;                ///< empty: 0.0.0.0
  uint16_t port = 0;               ///< 0: the port that the folder names, else any free port
  std::vector<std::string> hosts;  ///< names or addresses of this machine; empty: own_hosts()
  std::string flag;  ///< the server's flag for all this, for messages: "--slurm-callback"
};

struct CallbackSite {
  std::unique_ptr<NodeHub> hub;
  std::vector<std::string> hosts;
  std::string mark;   ///< as in NodeBrief
  std::string nonce;  ///< as in NodeBrief
};

/// Starts to listen for muster-nodes. kConflict: the port that the options name is in use. Also the
/// errors of the file system.
base::Result<CallbackSite> open_callback_site(base::EventLoop& loop, const CallbackOptions& options,
                                              HubOptions hub);

/// This machine's name and IPv4 addresses. Loopback is included only if there is no other address.
std::vector<std::string> own_hosts();

}  // namespace muster::engine::node
