// The networks of gangs on a server that keeps jobs apart (shim/network.h): one network namespace
// for the sandboxed tasks of each gang.
//
// Where an ordinary account gives its users ids of their own, the tasks of a gang also share the id
// space in which their sandboxes are made (shim/id_space.h); with tasks.network: shared only that.
//
// A namespace is made for the first task of a gang and kept until the last one has ended. A server
// that starts again gets it back from a task that runs.
//
// On the loop's thread.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/process/options.h"
#include "engine/process/process_tasks.h"
#include "engine/shim/network.h"

namespace muster::engine {

class ProcessNetworks {
 public:
  /// `options.shim` makes the namespaces. Both must outlive this.
  ProcessNetworks(const ProcessTasks& tasks, const ProcessEngineOptions& options)
      : tasks_(tasks), options_(options) {}

  /// The gang's network; made now if the gang has none. Its descriptors are empty if the gang's
  /// tasks run in the machine's own network. The pointer is valid until leave().
  Result<const NetworkNamespace*> network_of_gang(const GangId& gang);
  /// Drops the gang's network unless the gang still has tasks.
  void leave(const GangId& gang);

 private:
  const ProcessTasks& tasks_;
  const ProcessEngineOptions& options_;
  std::map<GangId, NetworkNamespace> networks_;
};

}  // namespace muster::engine
