// What a batch script gives each muster-node of its attempt to read, on its standard input: whom to
// call, with which key, and where the server's folder would be.
//
// Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/rsh/secure_channel.h"
#include "engine/slurm/node_wire.h"
#include "engine/slurm/options.h"

namespace muster::engine::slurm {

struct NodeBrief {
  Caller caller;  ///< the attempt that was submitted, also where Slurm runs it again
  rsh::Key key{};
  std::vector<std::string> hosts;  ///< of the server, each tried in turn
  uint16_t port = 0;
  Sharing sharing = Sharing::kAuto;
  std::string folder;                   ///< the server's folder of jobs
  std::string mark;                     ///< the name of a file in it...
  std::string nonce;                    ///< ...and what it holds, where the folder is the same
  std::chrono::milliseconds linger{0};  ///< as SlurmEngineOptions has it

  bool operator==(const NodeBrief&) const = default;
};

/// One line.
std::string encode(const NodeBrief& brief);
/// kInvalid, which never shows what was there instead.
base::Result<NodeBrief> decode_node_brief(std::string_view text);

/// The file in the folder of jobs that holds where the server can be called now, for those that
/// share it: "HOST,HOST PORT\n".
inline constexpr const char* kCallbackFile = "callback";
struct CallbackAddress {
  std::vector<std::string> hosts;
  uint16_t port = 0;
  bool operator==(const CallbackAddress&) const = default;
};
std::string encode(const CallbackAddress& address);
base::Result<CallbackAddress> decode_callback(std::string_view text);

}  // namespace muster::engine::slurm
