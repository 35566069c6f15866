// A host whose engine runs tasks: the connection to it, whether it answers, and what it has.
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

/// How often a host is asked: while it answers, and while it does not, twice as seldom each time;
/// and after how long a question that waits for its answer tells that it does not.
struct AskingPace {
  std::chrono::milliseconds interval{15'000};
  std::chrono::milliseconds first_pause{500};
  std::chrono::milliseconds longest_pause{30'000};
  std::chrono::milliseconds silence{20'000};
};

class ContainerHost {
 public:
  /// `changed`: node() or fault() has another answer.
  ContainerHost(base::EventLoop& loop, ContainerHostOptions options, const Patience& patience,
                std::function<void()> changed, AskingPace pace = {});
  ~ContainerHost();

  const std::string& name() const;
  DockerClient& client();

  /// What it offers; nullopt where it has not answered for Patience::absence, or never did. It is
  /// asked again and again, also when it answers: an engine may be restarted. While it does not,
  /// the label "fault" says why.
  std::optional<Node> node() const;
  std::optional<DockerInfo> info() const;
  /// Why it does not answer, with what to do. At once: its node may still be there.
  std::optional<base::Error> fault() const;

  /// Asks it at once: somebody else has met a fault.
  void ask();
  /// Calls once, when it has answered or failed for the first time; at once where it has.
  void when_met(std::function<void()> met);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Waits for the first answer of each host, or its failure; no longer than `bound`, after which
/// those that say nothing count as not answering. kUnavailable, naming all, where none answers.
/// Runs the loop meanwhile.
Result<void> meet(base::EventLoop& loop, const std::vector<std::unique_ptr<ContainerHost>>& hosts,
                  std::chrono::milliseconds bound = std::chrono::seconds(15));

}  // namespace muster::engine
