#include "control/container_policy.h"

#include <algorithm>
#include <filesystem>

#include "control/is_one_of.h"

namespace muster::control {

namespace {

using base::Error;

/// "/data/" is "/data", and "/data/../etc" is "/etc".
std::string plain_path(const std::string& path) {
  std::string plain = std::filesystem::path(path).lexically_normal().string();
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  return plain;
}

bool is_allowed_path(const ContainerPolicy& policy, const std::string& path) {
  return std::any_of(policy.host_paths.begin(), policy.host_paths.end(),
                     [&](const auto& allowed) { return plain_path(allowed) == plain_path(path); });
}

}  // namespace

base::Result<void> check_container_policy(const job::JobSpec& spec, const ContainerPolicy& policy) {
  if (!policy.is_shared) return {};
  Error error{.code = base::ErrorCode::kRefused,
              .what = "the job asks for more of its hosts than this server lets jobs have",
              .advice =
                  "an administrator can allow it: host_paths and capabilities in the "
                  "server's configuration"};
  for (size_t i = 0; i < spec.volumes.size(); ++i) {
    const job::Volume& volume = spec.volumes[i];
    if (volume.kind != job::Volume::Kind::kHostPath) continue;
    if (is_allowed_path(policy, volume.source)) continue;
    error.faults.push_back({.field = "volumes[" + std::to_string(i) + "].source",
                            .what = "'" + volume.source + "' of the hosts may not be mounted"});
  }
  for (size_t i = 0; i < spec.container.capabilities.size(); ++i) {
    const std::string& name = spec.container.capabilities[i];
    if (is_one_of(name, policy.capabilities)) continue;
    error.faults.push_back({.field = "container.capabilities[" + std::to_string(i) + "]",
                            .what = "'" + name + "' may not be had"});
  }
  if (error.faults.empty()) return {};
  return error;
}

}  // namespace muster::control
