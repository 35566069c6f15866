// TF_CONFIG with any content: an accepted cluster has a role for this process, and a rejected text
// has an error message.
#include <cstdlib>

#include "muster/parameter_server/cluster.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::parameter_server;
  const auto cluster = cluster_from({reinterpret_cast<const char*>(data), size});
  if (!cluster) {
    if (cluster.error().message.size() < 12) std::abort();
    return 0;
  }
  const int of_role =
      cluster->role == Role::kServer ? static_cast<int>(cluster->servers.size()) : cluster->workers;
  if (cluster->index < 0 || cluster->index >= of_role || cluster->address.empty()) std::abort();
  return 0;
}
