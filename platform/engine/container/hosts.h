// The hosts of a container engine: their connections, their images, and how many containers are
// started on each at a time.
//
// On the loop's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/container/container_host.h"
#include "engine/container/image_keeper.h"
#include "engine/container/options.h"
#include "engine/container/steps.h"
#include "engine/engine.h"

namespace muster::engine {

/// A host as the parts of the engine use it.
struct HeldHost {
  /// Containers that are started at a time. More would be slower for all: an engine takes locks for
  /// each container, and does not answer other requests meanwhile.
  static constexpr size_t kStartsAtATime = 8;

  /// `its_host` must outlive this object.
  HeldHost(base::EventLoop& loop, ContainerHost& its_host, ContainerHostOptions how,
           const std::string& owner)
      : options(std::move(how)),
        host(its_host),
        images(loop, its_host.client(), owner),
        starts(loop, kStartsAtATime) {}

  DockerClient& client() const { return host.client(); }
  /// Whether the host is this machine, so that its paths are the same.
  bool is_this_machine() const { return std::holds_alternative<UnixEndpoint>(options.endpoint); }

  ContainerHostOptions options;
  ContainerHost& host;
  ImageKeeper images;
  Turns starts;
  bool is_there = false;   ///< host.has_answered() at the last look
  bool had_fault = false;  ///< whether host.fault() had a value at the last look
};

class Hosts {
 public:
  struct Handlers {
    std::function<void(HeldHost&)> on_present;  ///< a host answers, for the first time or again
    /// A host that is not gone answers again after a fault. Its connections may be dead.
    std::function<void(HeldHost&)> on_recovered;
    /// A host is gone. Called later, but before the watchers.
    std::function<void(HeldHost&)> on_absent;
  };

  Hosts(base::EventLoop& loop, Handlers handlers);

  /// Connects to the hosts and waits for their first answers; runs the loop meanwhile. Succeeds if
  /// no host answers yet: they may all be away for a while, and the server has other work.
  ///
  /// kInvalid: two hosts have the same name, or no host can be used as it is configured.
  Result<void> connect(const ContainerEngineOptions& options);
  /// Ends all connections. No answer of a host arrives afterwards.
  void close();

  /// nullptr: there is no host of that name.
  HeldHost* find(const std::string& node) const;
  const std::map<std::string, std::unique_ptr<HeldHost>>& all() const { return hosts_; }

  /// The nodes of the hosts that answer, or have never answered.
  std::vector<Node> nodes() const;
  /// See Engine::watch_nodes().
  std::shared_ptr<void> watch(std::function<void()> changed);
  /// See Engine::prepare(). Each image is brought to a host once, however many tasks use it there.
  [[nodiscard]] std::shared_ptr<void> prepare(std::vector<ImageRequest> requests,
                                              std::function<void(const job::Fact&)> progress,
                                              Engine::Prepared done) const;

 private:
  void changed();
  void call_watchers();

  base::EventLoop& loop_;
  Handlers handlers_;
  Later later_;
  std::vector<std::weak_ptr<std::function<void()>>> watchers_;
  std::vector<std::unique_ptr<ContainerHost>> connections_;
  std::map<std::string, std::unique_ptr<HeldHost>> hosts_;
};

/// The progress of a pull in whole megabytes, so that it is not reported more often. Pure.
job::FetchesImage progress_fact(const std::string& node, const std::string& image,
                                const PullProgress& progress);

}  // namespace muster::engine
