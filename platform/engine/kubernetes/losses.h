// Tasks that end because Kubernetes ends their pods. A task is lost only when its pod is over or its
// pod object is gone: a pod on a node that does not answer may still be running, and nothing may run
// twice. A task that has ended by itself is not lost with its pod; only its artifacts may be.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/event_loop.h"
#include "engine/kubernetes/gangs.h"
#include "engine/lent/lent_tasks.h"

namespace muster::engine::kubernetes {

class PodLosses {
 public:
  /// Called before the tasks of a gang are lost to another gang.
  using Preempted = std::function<void(const PodGangPointer&, const job::PodEnd&)>;

  /// `preempted`: empty if the caller needs only the lost tasks. `last_words`: how long
  /// the connections to a muster-node may deliver after its container has ended.
  PodLosses(base::EventLoop& loop, PodGangTable& gangs, lent::LentTasks& tasks, Preempted preempted,
            std::chrono::milliseconds last_words = std::chrono::seconds(5))
      : loop_(loop),
        gangs_(gangs),
        tasks_(tasks),
        preempted_(std::move(preempted)),
        last_words_(last_words) {}

  /// The pod of a started task has changed, or its muster-node is disconnected.
  void examine(const PodGangPointer& gang, const std::string& task);
  /// A task may have been ended by Kubernetes: examines all tasks in a moment, when the watch must
  /// have reported it.
  void look_soon();
  uint64_t looks() const { return looks_; }

 private:
  void look();
  void await_last_words(const PodGangPointer& gang, const std::string& task, HeldPod& pod);
  void lose(const PodGangPointer& gang, const TaskPointer& task, const HeldPod& pod);

  base::EventLoop& loop_;
  PodGangTable& gangs_;
  lent::LentTasks& tasks_;
  Preempted preempted_;
  const std::chrono::milliseconds last_words_;
  uint64_t looks_ = 0;
  base::EventLoop::Interest timer_;
};

}  // namespace muster::engine::kubernetes
