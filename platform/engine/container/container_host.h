// A host whose engine runs tasks: the connection to it, whether it answers, and what it has.
//
// On the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/event_loop.h"
#include "engine/container/docker_client.h"
#include "engine/container/options.h"
#include "engine/container/ssh_tunnel.h"
#include "engine/engine.h"

namespace muster::engine {

class ContainerHost {
 public:
  /// `changed`: node() has another answer.
  ContainerHost(base::EventLoop& loop, ContainerHostOptions options, const Patience& patience,
                std::function<void()> changed);
  ~ContainerHost();

  const std::string& name() const;
  DockerClient& client();

  /// What it offers; nullopt while it does not answer. It is asked again and again, also when it
  /// answers: an engine may be restarted.
  std::optional<Node> node() const;
  std::optional<DockerInfo> info() const;
  /// Why it does not answer, with what to do.
  std::optional<base::Error> fault() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Waits for the first answer of each host, or its failure. kUnavailable, naming all, where none
/// answers. Runs the loop meanwhile.
Result<void> meet(base::EventLoop& loop, const std::vector<std::unique_ptr<ContainerHost>>& hosts);

}  // namespace muster::engine
