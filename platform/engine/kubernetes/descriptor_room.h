// Whether this process has descriptors for the connections to a gang's pods, one for each. A gang whose pods it
// could not reach gets none: it waits, with the reason as PodGang::refusal, until other gangs are
// gone. Gangs get their turn in the order of their requests.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>

#include "base/descriptors.h"
#include "base/event_loop.h"
#include "base/result.h"
#include "engine/kubernetes/gangs.h"

namespace muster::engine::kubernetes {

class DescriptorRoom {
 public:
  struct Options {
    std::function<base::Descriptors()> count = base::count_descriptors;
    std::chrono::milliseconds pause{1000};  ///< between two counts
  };

  /// `go`: called with a gang that has waited, and may have its pods now.
  DescriptorRoom(base::EventLoop& loop, const PodGangTable& gangs, Options options,
                 std::function<void(const PodGangPointer&)> go)
      : loop_(loop), gangs_(gangs), options_(std::move(options)), go_(std::move(go)) {}

  /// True: the gang may have its pods, whose descriptors are its own until it is removed from the
  /// table. False: it waits, or it has PodGang::fault, because no server with this limit could
  /// connect to all of its pods.
  bool admit(const PodGangPointer& gang);

 private:
  bool has_room_for(const PodGang& gang) const;
  base::Error shortage(const PodGang& gang) const;
  int64_t usable() const;
  void count();
  void look();

  base::EventLoop& loop_;
  const PodGangTable& gangs_;
  const Options options_;
  std::function<void(const PodGangPointer&)> go_;
  std::list<std::weak_ptr<PodGang>> waiting_;
  // As last counted, which is recent while the timer runs.
  int64_t others_ = 0;  ///< open descriptors that do not belong to connections to pods
  int64_t limit_ = 0;
  base::EventLoop::Interest timer_;
};

}  // namespace muster::engine::kubernetes
