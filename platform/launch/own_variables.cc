#include "launch/own_variables.h"

#include <array>
#include <map>
#include <set>
#include <string_view>

#include "base/text.h"
#include "job/job.h"
#include "launch/program.h"

namespace muster::launch {

using job::JobSpec;
using job::Kind;
using job::Role;

namespace {

/// Variables of a kind that say the same thing.
struct Telling {
  Kind kind;
  std::string_view what;  ///< behind "says"
  std::vector<std::string_view> variables;
};

const std::array<Telling, 6>& tellings() {
  static const std::array<Telling, 6> kAll{
      {{.kind = Kind::kGrpc,
        .what = "where each task answers",
        .variables = {"TF_CONFIG", "PS_CONFIG", "MASTER", "WORKER_HOSTS", "PS_HOSTS"}},
       {.kind = Kind::kGrpc, .what = "which task it is", .variables = {"TYPE", "INDEX"}},
       {.kind = Kind::kTorch,
        .what = "where the master answers",
        .variables = {"MASTER_ADDR", "MASTER_PORT", "PET_RDZV_ENDPOINT", "PET_MASTER_ADDR",
                      "PET_MASTER_PORT"}},
       {.kind = Kind::kTorch,
        .what = "which of how many tasks it is",
        .variables = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                      "GROUP_WORLD_SIZE", "NODE_RANK", "PET_NODE_RANK", "PET_NNODES"}},
       {.kind = Kind::kTorch,
        .what = "how the tasks of this attempt meet",
        .variables = {"PET_RDZV_BACKEND", "PET_RDZV_ID", "PET_RDZV_CONF"}},
       {.kind = Kind::kMpi,
        .what = "where the hostfile is",
        .variables = {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile",
                      "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"}}}};
  return kAll;
}

using Roles = std::set<Role>;

Roles roles_of(const JobSpec& spec) {
  Roles roles;
  for (const job::Task& task : job::tasks_of(spec)) roles.insert(task.role);
  return roles;
}

/// By variable: in tasks of which roles the job sets it.
std::map<std::string, Roles> set_in(const JobSpec& spec, const job::ImageStandIns& images,
                                    bool runs_images) {
  std::map<std::string, Roles> roles_by_name;
  for (const Role role : roles_of(spec)) {
    const auto variables =
        runs_images ? set_variables_in_image(spec, role) : set_variables(spec, role, images);
    for (const auto& [name, value] : variables) roles_by_name[name].insert(role);
    for (const job::SecretUse& use : spec.secrets) roles_by_name[use.variable].insert(role);
  }
  return roles_by_name;
}

std::string sentence(const std::vector<std::string_view>& names, const std::string& whose,
                     std::string_view what) {
  const bool is_one = names.size() == 1;
  return base::listed(names) + (is_one ? " is " : " are ") + whose + ": Muster's, which " +
         (is_one ? "says " : "say ") + std::string(what) + ", " + (is_one ? "is" : "are") +
         " not set; leave " + (is_one ? "it" : "them") +
         " out unless the program finds the others by itself";
}

std::string owner(const Roles& roles, const Roles& all) {
  if (roles == all) return "the job's own";
  std::vector<std::string_view> names;
  for (const Role role : roles) names.push_back(to_string(role));
  return "the job's own in its tasks of role " + base::listed(names);
}

}  // namespace

std::vector<std::string> notes_on_own_variables(const JobSpec& spec,
                                                const job::ImageStandIns& images,
                                                bool runs_images) {
  const Roles all = roles_of(spec);
  const std::map<std::string, Roles> own = set_in(spec, images, runs_images);
  std::vector<std::string> notes;
  for (const Telling& telling : tellings()) {
    if (telling.kind != spec.kind) continue;
    std::map<Roles, std::vector<std::string_view>> names_by_roles;
    for (const std::string_view name : telling.variables) {
      const auto found = own.find(std::string(name));
      if (found != own.end()) names_by_roles[found->second].push_back(name);
    }
    for (const auto& [roles, names] : names_by_roles) {
      notes.push_back(sentence(names, owner(roles, all), telling.what));
    }
  }
  return notes;
}

}  // namespace muster::launch
