#include "launch/mpi_hosts.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "launch/mpirun_command.h"

namespace muster::launch {

using job::Job;
using job::TaskRole;

namespace {

/// Horovod's format is Hydra's: "name:2". Host names contain no characters that a shell interprets.
std::string discovery_script(const std::vector<SlotHost>& hosts) {
  std::string text =
      "#!/bin/sh\n"
      "# Prints the workers that take ranks now, for: horovodrun --host-discovery-script\n";
  for (const SlotHost& host : hosts) {
    text += "echo " + host.name + ":" + std::to_string(host.slots) + "\n";
  }
  return text;
}

}  // namespace

// Open MPI always puts its own host first, whatever the order of the hostfile. Under another name,
// the launcher is an ordinary host, and the last.
std::string launcher_alias(const Job& job) {
  const bool takes_any = job.spec.kind == job::Kind::kMpi && job.spec.leader_slots > 0;
  return takes_any ? job::deciding_task(job).hostname + "-0" : "";
}

std::vector<SlotHost> slot_hosts_of(const Job& job, const std::vector<const job::Task*>& members) {
  std::vector<SlotHost> hosts;
  for (const job::Task* task : members) {
    if (task->role != TaskRole::kWorker) continue;
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

namespace {

std::string lines(const std::vector<SlotHost>& hosts, const char* between) {
  std::string text;
  for (const SlotHost& host : hosts) {
    text += host.name + between + std::to_string(host.slots) + "\n";
  }
  return text;
}

}  // namespace

std::string open_mpi_hostfile(const std::vector<SlotHost>& hosts) {
  return lines(hosts, " slots=");
}

std::string hydra_hostfile(const std::vector<SlotHost>& hosts) {
  return lines(hosts, ":");
}

namespace {

constexpr std::array<std::string_view, 6> kHydraLaunchers{
    "mpiexec", "mpirun", "mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich", "mpirun.hydra"};

// Hydra's options with values, and their number. Any other word without a dash is the program.
struct Option {
  std::string_view name;
  int values = 1;
};
constexpr std::array<Option, 26> kOptions{
    {{"n"},           {"np"},         {"ppn"},        {"perhost"},  {"f"},        {"hostfile"},
     {"machinefile"}, {"machine"},    {"host"},       {"hosts"},    {"launcher"}, {"bootstrap"},
     {"iface"},       {"wdir"},       {"configfile"}, {"bind-to"},  {"map-by"},   {"membind"},
     {"env", 2},      {"genv", 2},    {"envlist"},    {"genvlist"}, {"rmk"},      {"launcher-exec"},
     {"path"},        {"order-nodes"}}};

bool is_launcher(std::string_view word) {
  return std::any_of(kHydraLaunchers.begin(), kHydraLaunchers.end(),
                     [&](std::string_view name) { return is_file_named(word, name); });
}

int values_of(std::string_view option) {
  const auto known = std::find_if(kOptions.begin(), kOptions.end(),
                                  [&](const Option& other) { return other.name == option; });
  return known == kOptions.end() ? 0 : known->values;
}

/// For a launcher whose options begin at `at`.
bool prepends_rank_from(const std::vector<std::string_view>& words, size_t at) {
  for (; at < words.size() && words[at].starts_with('-'); ++at) {
    std::string_view option = words[at];
    option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
    if (option == "l" || option == "prepend-rank") return true;
    at += static_cast<size_t>(values_of(option));
  }
  return false;
}

}  // namespace

bool prepends_rank(const std::vector<std::string>& command) {
  const std::vector<std::string_view> words = words_of(command);
  for (size_t i = 0; i < words.size(); ++i) {
    if (is_launcher(words[i]) && prepends_rank_from(words, i + 1)) return true;
  }
  return false;
}

}  // namespace muster::launch
