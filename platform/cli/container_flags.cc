#include "cli/container_flags.h"

#include <string>

#include "job/capability.h"

namespace muster::cli {

namespace {

job::PullPolicy read_pull_policy(FlagReader& reader) {
  const std::string flag = "--image-pull-policy";
  if (const auto policy = pull_policy_of_any(reader.text(flag))) return *policy;
  // The words that are offered are ours.
  return *job::pull_policy_of(reader.choice(flag, {"if-missing", "always", "never"}));
}

}  // namespace

std::optional<job::PullPolicy> pull_policy_of_any(std::string_view name) {
  using job::PullPolicy;
  if (name == "IfNotPresent") return PullPolicy::kIfMissing;
  if (name == "Always") return PullPolicy::kAlways;
  if (name == "Never") return PullPolicy::kNever;
  return job::pull_policy_of(name);
}

void read_container_flags(FlagReader& reader, job::JobSpec& spec) {
  spec.image = reader.text("--image");
  spec.user = reader.text("--user");
  spec.registry = {.server = reader.text("--registry-server"),
                   .username = reader.text("--registry-username"),
                   .secret = reader.text("--registry-secret")};
  spec.container = {.pull = read_pull_policy(reader),
                    .writable_root = reader.has("--writable-root"),
                    .new_privileges = reader.has("--allow-new-privileges"),
                    .capabilities = job::capabilities_of(reader.texts("--cap-add")),
                    .shm_bytes = reader.bytes("--shm-size", 0)};
  spec.replaces_entrypoint = !reader.has("--keep-entrypoint");
  spec.allow_launcher_only = reader.has("--allow-launcher-only");
  spec.launch = *job::launch_by_of(reader.choice("--launch", {"auto", "ssh", "agent", "srun"}));
}

}  // namespace muster::cli
