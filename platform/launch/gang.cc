#include "launch/gang.h"

#include <algorithm>

#include "base/bytes.h"
#include "launch/devices.h"
#include "launch/mpi_plan.h"
#include "launch/mpirun_command.h"
#include "launch/plan.h"
#include "launch/plan_task.h"
#include "launch/secrets.h"
#include "launch/srun_command.h"

namespace muster::launch {

using job::Task;
using job::TaskRole;

const ImageFacts* image_of(const GangContext& gang, const Task& task) {
  const auto found = gang.site.image_facts.find(task.name);
  return found == gang.site.image_facts.end() ? nullptr : &found->second;
}

std::vector<std::string> argv_of(const GangContext& gang, const Task& task) {
  const ImageFacts* const image = image_of(gang, task);
  return image != nullptr ? program_in_image(gang.job.spec, task.role, *image)
                          : program_of(gang.job.spec, task.role, gang.site.images);
}

std::string folder_of(const GangContext& gang, const Task& task) {
  const ImageFacts* const image = image_of(gang, task);
  return image != nullptr ? folder_in_image(gang.job.spec, *image)
                          : folder_of(gang.job.spec, task.role, gang.site.images);
}

Variables set_variables_of(const GangContext& gang, const Task& task) {
  const ImageFacts* const image = image_of(gang, task);
  if (image == nullptr) return set_variables(gang.job.spec, task.role, gang.site.images);
  Variables variables = set_variables_in_image(gang.job.spec, task.role);
  variables.insert(image->environment.begin(), image->environment.end());
  return variables;
}

std::vector<std::string> gpus_of(const GangContext& gang, const Task& task) {
  return gang.site.gpus_of ? gang.site.gpus_of(task.node) : std::vector<std::string>();
}

Variables devices_of(const GangContext& gang, const Task& task) {
  const std::vector<std::string> gpus = gpus_of(gang, task);
  if (gpus.empty() && !asks_for_gpus(gang.job.spec)) return {};
  return device_environment(task, gpus);
}

bool takes_ranks(const job::JobSpec& spec, TaskRole role) {
  if (spec.kind != job::Kind::kMpi) return false;
  return role == TaskRole::kWorker || (role == TaskRole::kLauncher && spec.leader_slots > 0);
}

// The randomness of an attempt, and its text form.

namespace {

/// Calls `use` with each part of a seed, in the order of the text form.
template <typename Seed, typename Use>
void for_each_part(Seed& seed, Use use) {
  use(seed.client_key);
  use(seed.host_key);
  use(seed.rendezvous_key);
  use(seed.network);
  use(seed.rsh_key);
}

}  // namespace

GangSeed make_seed(base::RandomSource& random) {
  GangSeed seed;
  // At once: each fill() may be a call of the kernel.
  std::array<uint8_t, sizeof(GangSeed)> bytes{};
  random.fill(bytes);
  auto next = bytes.begin();
  for_each_part(seed, [&](auto& part) {
    std::copy_n(next, part.size(), part.begin());
    next += static_cast<std::ptrdiff_t>(part.size());
  });
  return seed;
}

std::string to_text(const GangSeed& seed) {
  std::string bytes;
  for_each_part(seed, [&](const auto& part) { bytes.append(part.begin(), part.end()); });
  return base::to_base64(bytes);
}

std::optional<GangSeed> seed_of(std::string_view text) {
  const auto bytes = base::from_base64(text);
  if (!bytes) return std::nullopt;
  GangSeed seed;
  size_t size = 0;
  for_each_part(seed, [&](const auto& part) { size += part.size(); });
  if (bytes->size() != size) return std::nullopt;
  size_t at = 0;
  for_each_part(seed, [&](auto& part) {
    for (uint8_t& byte : part) byte = static_cast<uint8_t>((*bytes)[at++]);
  });
  return seed;
}

using base::Result;
using job::Job;

namespace {

bool takes_part(const Task& task) {
  return !task.node.empty() && !task.left;
}

/// The places of all tasks of the job, members or not.
Result<std::vector<NetworkPlace>> places_of(const Job& job, const Site& site) {
  std::vector<NetworkPlace> places;
  for (const Task& task : job.tasks) {
    NetworkPlace place{.hostname = task.hostname, .node_address = ""};
    if (site.reach == Reach::kHosts && site.address_of && !task.node.empty()) {
      place.node_address = site.address_of(task.node);
    }
    if (site.reach == Reach::kHosts && takes_part(task) && place.node_address.empty()) {
      return base::Error{.code = base::ErrorCode::kRefused,
                         .what = "node '" + task.node + "' has no address for other nodes",
                         .advice = "set its address in the server's configuration: host_addresses"};
    }
    places.push_back(std::move(place));
  }
  return places;
}

/// Adds the tasks that take part.
void add_members(GangContext& gang) {
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
                       .what = "job '" + job.spec.name + "' starts without its deciding task"};
  }
  return check_secrets(job.spec.secrets, site.secrets);
}

}  // namespace

Result<GangContext> gather_gang(const Job& job, const GangSeed& seed, const Site& site) {
  MUSTER_CHECK(check_can_be_planned(job, site));
  MUSTER_TRY(const std::vector<NetworkPlace> places, places_of(job, site));
  GangContext gang{.job = job,
                   .site = site,
                   .everyone = make_network(seed.network, site.reach, places),
                   .rsh_key = base::to_hex(seed.rsh_key),
                   .rendezvous_key = base::to_hex(seed.rendezvous_key)};
  add_members(gang);
  if (job.spec.kind == job::Kind::kMpi) {
    // SSH keys cost more time than the rest of the plan
    if (!gang.is_by_agent() && !gang.is_by_srun()) {
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
