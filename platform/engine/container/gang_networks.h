// The network of each gang on each host. All tasks of a gang on a host share one, on which they
// find each other by name.
//
// On the loop's thread. The hosts must outlive it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/container/hosts.h"
#include "engine/container/removals.h"
#include "engine/container/steps.h"
#include "engine/engine.h"

namespace muster::engine {

class GangNetworks {
 public:
  /// `owner`: see ContainerEngineOptions.
  GangNetworks(std::string owner, Removals& removals)
      : owner_(std::move(owner)), removals_(removals) {}

  /// Ensures that the gang has a network on the host. `created` is called if this call created it.
  ///
  /// kExhausted: the engine has no addresses left for a network.
  void ensure(const GangId& gang, HeldHost& host, std::function<void()> created, Then then);
  /// Records the network of a gang that an earlier server created.
  void adopt(const GangId& gang, HeldHost& host, std::string name);

  /// The name of the gang's network on the host; nullopt: it has none.
  std::optional<std::string> find(const GangId& gang, HeldHost& host) const;
  /// Removes the gang's network from the host. `tried` is called after the first attempt.
  void remove(const GangId& gang, HeldHost& host, std::function<void()> tried = {});

 private:
  struct NetworkRequest {
    GangId gang;
    HeldHost* host = nullptr;
    std::function<void()> created;
    Then then;
  };
  void create(const NetworkRequest& request, int tries);
  void look_up(const NetworkRequest& request);

  std::string owner_;
  Removals& removals_;
  std::map<std::pair<GangId, HeldHost*>, std::string> names_;
};

}  // namespace muster::engine
