#include "job/spec.h"

#include "job/enum_names.h"

namespace muster::job {

namespace {

constexpr Names<Kind, 4> kKinds{{{Kind::kSingle, "single"},
                                 {Kind::kMpi, "mpi"},
                                 {Kind::kGrpc, "grpc"},
                                 {Kind::kTorch, "torch"}}};

constexpr Names<Volume::Kind, 4> kVolumeKinds{{{Volume::Kind::kHostPath, "host_path"},
                                               {Volume::Kind::kTree, "tree"},
                                               {Volume::Kind::kStorage, "storage"},
                                               {Volume::Kind::kArtifacts, "artifacts"}}};

constexpr Names<LaunchBy, 4> kLaunchers{{{LaunchBy::kAuto, "auto"},
                                         {LaunchBy::kSsh, "ssh"},
                                         {LaunchBy::kAgent, "agent"},
                                         {LaunchBy::kSrun, "srun"}}};

constexpr Names<PullPolicy, 3> kPullPolicies{{{PullPolicy::kIfMissing, "if-missing"},
                                              {PullPolicy::kAlways, "always"},
                                              {PullPolicy::kNever, "never"}}};

}  // namespace

std::string_view to_string(Kind kind) {
  return name_in(kKinds, kind);
}

std::optional<Kind> kind_of(std::string_view name) {
  return value_in(kKinds, name);
}

std::string_view to_string(Volume::Kind kind) {
  return name_in(kVolumeKinds, kind);
}

std::optional<Volume::Kind> volume_kind_of(std::string_view name) {
  return value_in(kVolumeKinds, name);
}

std::string_view to_string(Sandbox sandbox) {
  return sandbox == Sandbox::kNone ? "none" : "bubblewrap";
}

std::optional<Sandbox> sandbox_of(std::string_view name) {
  if (name == "bubblewrap") return Sandbox::kBubblewrap;
  if (name == "none") return Sandbox::kNone;
  return std::nullopt;
}

std::string_view to_string(LaunchBy launch) {
  return name_in(kLaunchers, launch);
}

std::optional<LaunchBy> launch_by_of(std::string_view name) {
  return value_in(kLaunchers, name);
}

std::string_view to_string(PullPolicy policy) {
  return name_in(kPullPolicies, policy);
}

std::optional<PullPolicy> pull_policy_of(std::string_view name) {
  return value_in(kPullPolicies, name);
}

}  // namespace muster::job
