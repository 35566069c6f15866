// clusters list, clusters machineTypes list: what experiments can run on.
#include <algorithm>

#include "cli/common/report.h"
#include "dialects/gradient/command_parts.h"
#include "dialects/gradient/pager.h"
#include "dialects/gradient/views.h"

namespace muster::dialects::gradient {

namespace {

Result<std::vector<std::string>> read_pools(cli::Connection& connection) {
  MUSTER_TRY(const std::vector<job::Node> nodes,
             connection.call([](api::Client& client) { return client.nodes(); }));
  return pools_of(nodes);
}

}  // namespace

Result<int> list_clusters(Asked& asked) {
  constexpr int kPage = 20;
  const auto limit = static_cast<size_t>(number_from(asked, "--limit", kPage, 1));
  const auto offset = static_cast<size_t>(number_from(asked, "--offset", 0, 0));
  return with_server(asked, kFetch, "Cluster", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const std::vector<std::string> all, read_pools(connection));
    const size_t begin = std::min(offset, all.size());
    const size_t end = begin + std::min(limit, all.size() - begin);
    const std::vector<std::string> pools(all.begin() + static_cast<ptrdiff_t>(begin),
                                         all.begin() + static_cast<ptrdiff_t>(end));
    MUSTER_CHECK(pools.empty() ? say("No data found") : show_table(cluster_table(pools)));
    if (end < all.size()) note("there are more; to see them: --offset " + std::to_string(end));
    return cli::kExitDone;
  });
}

Result<int> list_machine_types(Asked& asked) {
  return with_server(asked, kFetch, "Machine type", [](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const job::MachineTypes types,
               connection.call([](api::Client& client) { return client.machine_types(); }));
    MUSTER_TRY(const std::vector<std::string> pools, read_pools(connection));
    MUSTER_CHECK(types.empty() ? say("No data found")
                               : show_table(machine_type_table(types, pools)));
    return cli::kExitDone;
  });
}

}  // namespace muster::dialects::gradient
