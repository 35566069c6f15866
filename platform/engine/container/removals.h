// Removes containers, networks and volumes from hosts. A removal is repeated while the host does
// not answer or the thing is in use.
//
// If the server ends first, the next server finds the remaining things by their labels.
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
#include "engine/container/hosts.h"

namespace muster::engine {

class Removals {
 public:
  enum class Kind { kContainer, kNetwork, kVolume };

  explicit Removals(base::EventLoop& loop);

  /// `tried` is called once, after the first attempt, whether or not it succeeded.
  void add(HeldHost& host, Kind kind, const std::string& name, std::function<void()> tried = {});
  /// Ends the removal of the thing, so that a new thing of the same name is safe. Calls `ended`
  /// when no attempt is under way: at once or later. The old thing may still exist.
  void cancel(HeldHost& host, Kind kind, const std::string& name, std::function<void()> ended);

  /// Whether every removal has succeeded.
  bool is_done() const;

 private:
  using Item = std::tuple<HeldHost*, Kind, std::string>;
  struct State;

  std::shared_ptr<State> state_;
};

}  // namespace muster::engine
