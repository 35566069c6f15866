// A host as the container engine holds it: the connection, its images, how much is asked of it at a
// time, and what was found on it.
//
// On the loop's thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/event_loop.h"
#include "engine/container/container_host.h"
#include "engine/container/docker_values.h"
#include "engine/container/image_keeper.h"
#include "engine/container/turns.h"

namespace muster::engine {

/// What a host has of this server's, as it was when it was asked.
struct Inventory {
  struct Named {
    std::string name;
    std::map<std::string, std::string> labels;
  };
  std::vector<ContainerState> containers;
  std::vector<Named> networks;
  std::vector<Named> volumes;

  const ContainerState* container(const std::string& id) const {
    for (const ContainerState& state : containers) {
      if (state.id == id) return &state;
    }
    return nullptr;
  }
};

struct HeldHost {
  /// Containers that are made at a time. More at once would be slower for all: an engine takes
  /// locks for each, and answers nobody else meanwhile.
  static constexpr size_t kStartsAtATime = 8;

  /// `its_host` must outlive it.
  HeldHost(base::EventLoop& loop, ContainerHost& its_host, ContainerHostOptions how,
           const std::string& owner)
      : options(std::move(how)),
        host(its_host),
        images(loop, its_host.client(), owner),
        starts(loop, kStartsAtATime) {}

  DockerClient& client() const { return host.client(); }
  /// Whether paths of this machine are paths there, too.
  bool is_this_machine() const { return std::holds_alternative<UnixEndpoint>(options.endpoint); }

  ContainerHostOptions options;
  ContainerHost& host;
  ImageKeeper images;
  Turns starts;
  bool is_there = false;  ///< host.node(), when it was looked at last
  std::map<std::string, base::EventLoop::Interest> later;  ///< jobs whose volumes are to be removed
  std::optional<Inventory> inventory;  ///< of an earlier server's; unset: it was not asked yet
};

}  // namespace muster::engine
