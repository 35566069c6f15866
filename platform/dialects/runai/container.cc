#include "dialects/runai/container.h"

#include <utility>

#include "base/text.h"
#include "job/container.h"
#include "job/spec_table.h"

namespace muster::dialects::runai {

namespace {

/// Of which only as much is taken as is written there.
constexpr int64_t kLargeShm = int64_t{64} << 30;

void read_pull_policy(cli::FlagReader& reader, job::PullPolicy& pull) {
  using job::PullPolicy;
  const std::string flag = "--image-pull-policy";
  // A word that is none is a fault already.
  const bool is_said = reader.has(flag) && !reader.is_at_fault(flag);
  if (is_said) pull = record::typed_as<PullPolicy>(reader.text(flag)).value_or(pull);
  bool is_known = is_said;
  for (const auto& [deprecated, policy] : {std::pair("--always-pull-image", PullPolicy::kAlways),
                                           std::pair("--local-image", PullPolicy::kNever)}) {
    if (!reader.has(deprecated)) continue;
    if (is_known && pull != policy) {
      reader.fault(deprecated, "contradicts another flag; say it with --image-pull-policy alone");
    }
    is_known = true;
    pull = policy;
  }
}

void read_rights(cli::FlagReader& reader, job::ContainerSpec& container) {
  container.new_privileges = reader.has("--allow-privilege-escalation");
  if (container.new_privileges && reader.has("--prevent-privilege-escalation")) {
    reader.fault("--allow-privilege-escalation",
                 "does not go with --prevent-privilege-escalation; give one of them");
  }
  std::vector<std::string> names;
  for (const std::string& text : reader.texts("--add-capability")) {
    for (const std::string& name : base::split(text, ',')) names.push_back(name);
  }
  container.capabilities = job::capabilities_of(names);
}

}  // namespace

void read_container(cli::FlagReader& reader, const cli::Caller& caller, job::JobSpec& spec) {
  job::ContainerSpec& container = spec.container;
  container.writable_root = true;
  read_pull_policy(reader, container.pull);
  read_rights(reader, container);
  if (reader.has("--large-shm")) container.shm_bytes = kLargeShm;
  if (reader.has("--run-as-user")) {
    spec.user = std::to_string(caller.user) + ":" + std::to_string(caller.group);
  }
}

}  // namespace muster::dialects::runai
