// Waiting for the pods of tasks: Engine::prepare(), and the first part of Engine::start(). A
// preparation succeeds when the muster-node of each of its pods has connected and the API server
// has accepted the other objects of the gang. It fails with the reason of the pod that is farthest
// behind.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/kubernetes/gangs.h"

namespace muster::engine::kubernetes {

/// Detail of an error: not every pod of the gang has found a node.
struct LackOfNodes : base::ErrorDetail {};

class Preparations {
 public:
  /// All tasks of a large gang change in a short time, and each examination reads all of them.
  static constexpr std::chrono::milliseconds kExamineAgain{200};

  using Done = std::function<void(base::Result<void>)>;
  using Progress = std::function<void(const job::Fact&)>;

  struct Hooks {
    /// Why the API server cannot be reached, if it cannot.
    std::function<std::optional<base::Error>()> outage;
    /// A preparation has failed or was cancelled: its pods are not needed any more.
    std::function<void(const PodGangPointer&, const std::vector<std::string>& tasks)> given_up;
  };

  Preparations(base::EventLoop& loop, std::chrono::milliseconds timeout, Hooks hooks)
      : loop_(loop), timeout_(timeout), hooks_(std::move(hooks)) {}

  /// From when the timeout counts.
  enum class Since {
    kBegin,  ///< of the preparation
    kNode,   ///< when the first pod has a node: until then, the pods wait in a queue of the cluster
  };

  /// Calls `done` once, later. Dropping the result before that cancels the preparation. After the
  /// timeout: kUnavailable, with the detail LackOfNodes if a pod has no node.
  [[nodiscard]] std::shared_ptr<void> add(const PodGangPointer& gang,
                                          std::vector<std::string> tasks, Progress progress,
                                          Done done, Since since = Since::kBegin);
  /// Something has changed for the pods of the gang. It is examined later: the changes of one turn
  /// of the loop together, and the tasks that are not ready at most every kExamineAgain.
  void look(const PodGangPointer& gang);
  void look_at_all();
  /// Whether a preparation of the gang waits for this task.
  bool is_waited_for(const PodGangPointer& gang, const std::string& task) const;

 private:
  struct Preparation;
  using Pointer = std::shared_ptr<Preparation>;

  std::optional<base::Result<void>> outcome(const Preparation& preparation) const;
  void look_soon(const Pointer& preparation);
  void examine_in_turn(const Pointer& preparation);
  void look_at(const Pointer& preparation);
  void settle(const Pointer& preparation, base::Result<void> how);
  void begin_timeout(const Pointer& preparation);
  void timed_out(const Pointer& preparation);
  void cancel(const Pointer& preparation);
  std::vector<Pointer> of(const PodGangPointer& gang) const;

  base::EventLoop& loop_;
  const std::chrono::milliseconds timeout_;
  Hooks hooks_;
  std::vector<Pointer> all_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// Whether the task's muster-node is connected and has reported its image.
bool is_ready(const PodGang& gang, const std::string& task);

}  // namespace muster::engine::kubernetes
