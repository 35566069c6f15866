// The networks of gangs on a server that keeps jobs apart (shim/network.h): one network namespace
// for the sandboxed tasks of each gang.
//
// Where an ordinary account gives its users ids of their own, the tasks of a gang also share the id
// space in which their sandboxes are made (shim/id_space.h); with tasks.network: shared only that.
//
// A namespace is made for the first task of a gang and kept until the last one has ended. A server
// that starts again gets it back from a task that runs. An egress (egress.h) is closed with the
// last server that has no gang connected.
//
// On the loop's thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/process/egress.h"
#include "engine/process/options.h"
#include "engine/process/process_tasks.h"
#include "engine/shim/network.h"

namespace muster::engine {

class ProcessNetworks {
 public:
  /// `options.shim` makes the namespaces. All of them must outlive this.
  ProcessNetworks(base::EventLoop& loop, const ProcessTasks& tasks,
                  const ProcessEngineOptions& options)
      : loop_(loop), tasks_(tasks), options_(options) {}

  ~ProcessNetworks();
  ProcessNetworks(const ProcessNetworks&) = delete;
  ProcessNetworks& operator=(const ProcessNetworks&) = delete;

  /// Connects the networks that are made from now on to the Internet. False, and a warning in the
  /// server's log: the machine or this account lacks a requirement.
  bool open_egress(const EgressOptions& options);

  /// If there is no egress: removes that of an earlier server of these jobs, now or when the last
  /// gang that is connected to it has ended.
  void remove_left_egress();

  /// The gang's network; made now if the gang has none. Its descriptors are empty if the gang's
  /// tasks run in the machine's own network. The pointer is valid until leave().
  Result<const NetworkNamespace*> network_of_gang(const GangId& gang);
  /// Drops the gang's network unless the gang still has tasks.
  void leave(const GangId& gang);

 private:
  bool open_pasta(const EgressOptions& options);
  void try_removal(int tries);

  base::EventLoop& loop_;
  const ProcessTasks& tasks_;
  const ProcessEngineOptions& options_;
  std::optional<Egress> egress_;    ///< of a server that runs as root
  std::optional<PastaPlan> pasta_;  ///< of an ordinary account
  bool removes_left_ = false;
  base::EventLoop::Interest removal_;
  std::map<GangId, NetworkNamespace> networks_;
};

}  // namespace muster::engine
