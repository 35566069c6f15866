// The connection to a host's engine: whether it answers, and what the host offers.
//
// On the loop's thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "engine/container/docker_client.h"
#include "engine/container/options.h"
#include "engine/container/ssh_tunnel.h"
#include "engine/engine.h"

namespace muster::engine {

/// How often a host is polled while it answers (`interval`), and while it does not: after
/// `first_pause`, which doubles up to `longest_pause`. A poll without an answer for `silence`
/// counts as a fault.
struct AskingPace {
  std::chrono::milliseconds interval{15'000};
  std::chrono::milliseconds first_pause{500};
  std::chrono::milliseconds longest_pause{30'000};
  std::chrono::milliseconds silence{20'000};
};

class ContainerHost {
 public:
  /// `changed` is called when node() or fault() changes.
  ContainerHost(base::EventLoop& loop, ContainerHostOptions options, const Patience& patience,
                std::function<void()> changed, AskingPace pace = {});
  ~ContainerHost();

  const std::string& name() const;
  DockerClient& client();

  /// The resources of the host; nullopt: it has never answered, or not for Patience::absence. The
  /// host is polled continuously, because its engine may be restarted. While it does not answer,
  /// the label "fault" contains the reason.
  std::optional<Node> node() const;
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
/// kUnavailable, naming all hosts: none answers.
Result<void> meet(base::EventLoop& loop, const std::vector<std::unique_ptr<ContainerHost>>& hosts,
                  std::chrono::milliseconds bound = std::chrono::seconds(15));

}  // namespace muster::engine
