#include "launch/mpi_hosts.h"

namespace muster::launch {

using job::Job;
using job::Role;

namespace {

/// Horovod's words are Hydra's: "name:2". Host names hold nothing that a shell would read.
std::string discovery_script(const std::vector<SlotHost>& hosts) {
  std::string text =
      "#!/bin/sh\n"
      "# Who takes ranks right now, for: horovodrun --host-discovery-script\n";
  for (const SlotHost& host : hosts) {
    text += "echo " + host.name + ":" + std::to_string(host.slots) + "\n";
  }
  return text;
}

}  // namespace

// Open MPI puts the host that it runs on before all others, whatever the hostfile says. By another
// name it is a host like the rest, and the last.
std::string launcher_alias(const Job& job) {
  const bool takes_any = job.spec.kind == job::Kind::kMpi && job.spec.leader_slots > 0;
  return takes_any ? job::deciding_task(job).hostname + "-0" : "";
}

std::vector<SlotHost> slot_hosts_of(const Job& job, const std::vector<const job::Task*>& members) {
  std::vector<SlotHost> hosts;
  for (const job::Task* task : members) {
    if (task->role != Role::kWorker) continue;
    hosts.push_back({.name = task->hostname, .slots = job.spec.slots_per_worker});
  }
  if (std::string alias = launcher_alias(job); !alias.empty()) {
    hosts.push_back({.name = std::move(alias), .slots = job.spec.leader_slots});
  }
  return hosts;
}

std::vector<PlannedFile> host_files(const std::vector<SlotHost>& hosts) {
  return {{.path = kHostfile, .content = open_mpi_hostfile(hosts)},
          {.path = kHydraHostfile, .content = hydra_hostfile(hosts)},
          {.path = kDiscoverHosts, .content = discovery_script(hosts), .mode = 0700}};
}

}  // namespace muster::launch
