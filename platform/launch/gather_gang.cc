#include "launch/gather_gang.h"

#include "launch/mpi_plan.h"
#include "launch/mpirun_command.h"
#include "launch/secrets.h"
#include "launch/srun_command.h"

namespace muster::launch {

using base::Result;
using job::Job;
using job::Task;

namespace {

bool takes_part(const Task& task) {
  return !task.node.empty() && !task.left;
}

/// Of all tasks of the job, whether they take part or not.
Result<std::vector<NetworkPlace>> places_of(const Job& job, const Site& site) {
  std::vector<NetworkPlace> places;
  for (const Task& task : job.tasks) {
    NetworkPlace place{.hostname = task.hostname, .node_address = ""};
    if (site.reach == Reach::kHosts && site.address_of && !task.node.empty()) {
      place.node_address = site.address_of(task.node);
    }
    if (site.reach == Reach::kHosts && takes_part(task) && place.node_address.empty()) {
      return base::Error{.code = base::ErrorCode::kRefused,
                         .what = "node '" + task.node + "' has no address that others reach",
                         .advice = "the server's setting host_addresses says which it has"};
    }
    places.push_back(std::move(place));
  }
  return places;
}

/// Leaves in the gang those that take part.
void add_members(Gang& gang) {
  const GangNetwork& network = gang.everyone;
  gang.network = {.addresses = {},
                  .shell_ports = {},
                  .bind = network.bind,
                  .rendezvous_port = network.rendezvous_port,
                  .service_ports = {}};
  for (size_t i = 0; i < gang.job.tasks.size(); ++i) {
    if (!takes_part(gang.job.tasks[i])) continue;
    gang.tasks.push_back(&gang.job.tasks[i]);
    gang.network.addresses.push_back(network.addresses[i]);
    gang.network.shell_ports.push_back(network.shell_ports[i]);
    gang.network.service_ports.push_back(network.service_ports[i]);
  }
}

Result<void> check_can_be_planned(const Job& job, const Site& site) {
  if (!takes_part(job::deciding_task(job))) {
    return base::Error{.code = base::ErrorCode::kInternal,
                       .what = "job '" + job.spec.name + "' starts without a place"};
  }
  return check_secrets(job.spec.secrets, site.secrets);
}

}  // namespace

Result<Gang> gather_gang(const Job& job, const GangSeed& seed, const Site& site) {
  MUSTER_CHECK(check_can_be_planned(job, site));
  MUSTER_TRY(const std::vector<NetworkPlace> places, places_of(job, site));
  Gang gang{.job = job,
            .site = site,
            .everyone = make_network(seed.network, site.reach, places),
            .rsh_key = base::to_hex(seed.rsh_key),
            .rendezvous_key = base::to_hex(seed.rendezvous_key)};
  add_members(gang);
  if (job.spec.kind == job::Kind::kMpi) {
    if (!gang.is_by_agent() && !gang.is_by_srun()) {  // these cost more than the rest of the plan
      MUSTER_TRY(gang.client_key, ssh_key_from_seed(seed.client_key));
      MUSTER_TRY(gang.host_key, ssh_key_from_seed(seed.host_key));
    }
    list_mpi_hosts(gang);
    const std::vector<std::string> command = argv_of(gang, *gang.tasks.front());
    gang.own_rank_output = !site.rank_agent.empty() &&
                           (gang.is_by_srun() ? !is_own_srun(command) : is_plain_mpirun(command));
  }
  return gang;
}

}  // namespace muster::launch
