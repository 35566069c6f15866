// Takes containers, networks and volumes from hosts, and goes on trying where a host does not
// answer, or something else still uses them.
//
// What is left when the server ends is found by the next one, by its labels.
//
// On the loop's thread. The hosts must outlive it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/container/held_host.h"

namespace muster::engine {

class Removals {
 public:
  enum class Kind { kContainer, kNetwork, kVolume };

  explicit Removals(base::EventLoop& loop);

  /// `tried` is called once, after the first try, whatever came of it.
  void add(HeldHost& host, Kind kind, const std::string& name, std::function<void()> tried = {});

  /// Whether nothing is left to be removed.
  bool is_done() const;

 private:
  using Item = std::tuple<HeldHost*, Kind, std::string>;
  struct State;

  std::shared_ptr<State> state_;
};

}  // namespace muster::engine
