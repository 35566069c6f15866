#include "engine/process/process_networks.h"

#include <utility>

namespace muster::engine {

Result<const NetworkNamespace*> ProcessNetworks::network_of_gang(const GangId& gang) {
  const auto known = networks_.find(gang);
  if (known != networks_.end()) return &known->second;
  if (const auto shim = tasks_.running_shim(gang)) {
    MUSTER_TRY(const RunningRecord record, *shim);
    MUSTER_TRY(NetworkNamespace network, network_of(record.pid));
    return &(networks_[gang] = std::move(network));
  }
  const auto ids =
      options_.id_space() != nullptr ? std::optional(*options_.id_space()) : std::nullopt;
  MUSTER_TRY(NetworkNamespace network,
             make_network_namespace(options_.shim.string(), ids, options_.own_networks));
  return &(networks_[gang] = std::move(network));
}

void ProcessNetworks::leave(const GangId& gang) {
  if (!tasks_.has_tasks(gang)) networks_.erase(gang);
}

}  // namespace muster::engine
