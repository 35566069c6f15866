// Streams into pods: a command with its input and output (exec), the container's own program
// (attach), and a TCP connection to a port of the pod (port-forward), all over WebSockets through
// the API server.
//
// exec and attach offer v5.channel.k8s.io and v4.channel.k8s.io; API servers before 1.30 choose the
// latter, which cannot close the input alone. Port-forward uses v4.channel.k8s.io, the only protocol
// that every API server and kubelet from 1.29 on understands over WebSockets: the data of a port is
// channel 0, its errors are channel 1, and both begin with the number of the port.
//
// Both need the verbs `get` and, from Kubernetes 1.35 on, `create` of pods/exec, pods/attach and
// pods/portforward.
//
// On the loop's thread. No handler is called from within a call, nor after the stream was dropped,
// which closes the connection. A handler may drop its stream. Streams outlive the ApiClient.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/kubernetes/api_client.h"
#include "engine/node/peer_stream.h"

namespace muster::engine::kubernetes {

// --- byte streams

/// Connects to a TCP port of a pod, on its loopback interface.
///
/// The connection to the port is made after the answer: a port that refuses it ends the stream, with
/// the kubelet's words. Container runtimes end a connection on which nothing passed for four hours.
/// kNotFound: there is no such pod; kRefused: no right to pods/portforward.
[[nodiscard]] Call open_port(ApiClient& client, const std::string& space, const std::string& pod,
                             uint16_t port,
                             ApiClient::Then<std::unique_ptr<node::PeerStream>> then);

/// Runs a program whose input and output are the stream; the end of its errors is kept for `why`.
[[nodiscard]] Call open_program(ApiClient& client, const std::string& space, const std::string& pod,
                                const std::string& container, std::vector<std::string> argv,
                                ApiClient::Then<std::unique_ptr<node::PeerStream>> then);

// --- exec and attach

struct PodCommand {
  std::string space;
  std::string pod;
  std::string container;          ///< empty: the pod's only or default container
  std::vector<std::string> argv;  ///< empty: attach to the container's own program
  bool has_input = false;
  bool has_output = true;
  bool has_errors = true;  ///< apart from the output; never with a terminal
  bool has_terminal = false;
};

/// How a command ended.
struct CommandEnd {
  std::optional<int> exit_code;  ///< unset: see `error`
  std::string error;             ///< the kubelet's or runtime's words
};

class PodStream {
 public:
  struct Handlers {
    std::function<void(std::string_view bytes, bool is_error)> on_output;
    /// Called once, after all output. Errors: kUnavailable, the connection broke before the end of
    /// the command was reported.
    std::function<void(base::Result<CommandEnd> end)> on_end;
    std::function<void()> on_drain = {};
  };
  static constexpr size_t kHigh = node::PeerStream::kHigh;

  virtual ~PodStream() = default;
  virtual void write(std::string_view bytes) = 0;
  virtual size_t waiting() const = 0;
  /// Ends the command's input. False: the API server's protocol cannot (before Kubernetes 1.30).
  virtual bool close_input() = 0;
  virtual void resize(int columns, int rows) = 0;
  virtual void pause(bool paused) = 0;
  /// "v5.channel.k8s.io"
  virtual const std::string& protocol() const = 0;
};

struct StreamOptions {
  /// Offered in this order.
  std::vector<std::string> protocols{"v5.channel.k8s.io", "v4.channel.k8s.io"};
};

/// Errors: kNotFound: no such pod or container; kConflict, kInvalid: the container does not run;
/// kRefused: no right. A program that cannot be started is reported by on_end, with the runtime's
/// words.
[[nodiscard]] Call open_stream(ApiClient& client, const PodCommand& command,
                               PodStream::Handlers handlers,
                               ApiClient::Then<std::unique_ptr<PodStream>> then,
                               const StreamOptions& options = {});

}  // namespace muster::engine::kubernetes
