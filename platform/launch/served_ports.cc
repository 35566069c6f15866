#include "launch/served_ports.h"

#include <algorithm>

namespace muster::launch {

using job::Kind;
using job::Role;

size_t rendezvous_task(const Gang& gang) {
  if (gang.job.spec.kind != Kind::kMpi) return 0;
  const auto first = std::find_if(gang.tasks.begin(), gang.tasks.end(), [](const job::Task* task) {
    return task->role == Role::kWorker;
  });
  return first == gang.tasks.end() ? 0 : static_cast<size_t>(first - gang.tasks.begin());
}

std::vector<ServedPort> served_ports(const Gang& gang, size_t index) {
  const Role role = gang.tasks[index]->role;
  const ServedPort service{.port = gang.network.service_ports[index], .address = ""};
  switch (gang.job.spec.kind) {
    case Kind::kSingle:
      break;
    case Kind::kMpi:
      if (index != rendezvous_task(gang)) break;
      return {{.port = gang.network.rendezvous_port, .address = gang.network.addresses[index]}};
    case Kind::kGrpc:
      if (role == Role::kEvaluator) break;  // which nobody calls
      return {service};
    case Kind::kTorch:
      if (role != Role::kMaster) break;  // the store's; what else a rank binds it chooses itself
      return {service};
  }
  return {};
}

}  // namespace muster::launch
