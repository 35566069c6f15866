// The connection to a host's engine: whether it answers, and what the host offers.
//
// On the loop's thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/container/docker_client.h"
#include "engine/container/options.h"
#include "engine/container/ssh_tunnel.h"
#include "engine/engine.h"

namespace muster::engine {

class ContainerHost {
 public:
  /// `changed` is called when node() or fault() changes. `owner`: see ContainerEngineOptions; empty
  /// for a connection beside that of the server.
  ContainerHost(base::EventLoop& loop, ContainerHostOptions options, const Patience& patience,
                std::function<void()> changed, AskingPace pace = {}, std::string owner = {});
  ~ContainerHost();

  const std::string& name() const;
  DockerClient& client();

  /// The host as a node; nullopt: it has answered before, but not for Patience::absence. A host
  /// that has never answered is a silent node without resources. The host is polled continuously,
  /// because its engine may be restarted. While it does not answer, the label "fault" contains the
  /// reason.
  std::optional<Node> node() const;
  /// Whether the host has answered, and has not been silent for Patience::absence since.
  bool has_answered() const;
  std::optional<DockerInfo> info() const;
  /// Why the host does not answer, with advice. Set at the first failure, when node() may still
  /// have a value.
  std::optional<base::Error> fault() const;

  /// Polls the host at once, after another caller met a fault.
  void ask();
  /// Calls `met` once, when the host has answered or failed for the first time.
  void when_met(std::function<void()> met);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Waits until each host has answered or failed, for `bound` at most; runs the loop meanwhile.
/// kUnavailable, naming all hosts: none answers. kInvalid: waiting does not help, because
/// there are no hosts, or each has a fault of this code.
Result<void> meet(base::EventLoop& loop, const std::vector<std::unique_ptr<ContainerHost>>& hosts,
                  std::chrono::milliseconds bound = std::chrono::seconds(15));

}  // namespace muster::engine
