#include "engine/process/volumes.h"

#include <algorithm>

#include "base/files.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using job::Volume;

namespace {

// Whoever sees the machine's processes reaches by them every file that they do.
constexpr const char* kProcesses = "/proc";

Error fault(const Volume& volume, const std::string& why, const std::string& advice = "") {
  return {.code = ErrorCode::kInvalid,
          .what = "volume " + volume.target + ": " + why,
          .advice = advice};
}

Result<fs::path> find_host_path(const Volume& volume, const std::vector<fs::path>& all_hidden,
                                const std::vector<fs::path>& shared = {},
                                const std::vector<fs::path>& secret = {}) {
  std::error_code error;
  fs::path real = fs::canonical(volume.source, error);
  const Error not_there = fault(volume, "there is no '" + volume.source + "' on this node",
                                "a path of the node is meant, as the server's account finds it");
  if (error) return not_there;
  const auto holds_it = [&](const fs::path& folder) { return is_within(real, folder); };
  const bool is_shared = std::any_of(shared.begin(), shared.end(), holds_it);
  for (const fs::path& hidden : is_shared ? secret : all_hidden) {
    if (real == hidden) return fault(volume, "'" + volume.source + "' is hidden from tasks");
    // What is there in it and what is not look the same: who may not read names may not guess them.
    if (is_within(real, hidden)) return not_there;
  }
  if (is_within(real, kProcesses)) {
    return fault(volume, "'" + volume.source + "' would show the processes of others");
  }
  return real;
}

Result<fs::path> find_storage(const Volume& volume, const std::string& project,
                              const VolumeFolders& folders) {
  if (folders.storage.empty()) return fault(volume, "this node keeps no storage");
  if (!is_folder_name(project) || !is_folder_name(volume.source)) {
    return fault(volume, "'" + volume.source + "' of project '" + project + "' names no storage");
  }
  fs::path folder = folders.storage / project / volume.source;
  MUSTER_CHECK(base::make_private_folder(folder.parent_path()));
  MUSTER_CHECK(base::make_private_folder(folder));
  return folder;
}

Result<fs::path> find_own(fs::path folder) {
  MUSTER_CHECK(base::make_private_folder(folder));
  return folder;
}

Result<fs::path> find_source(const launch::TaskPlan& plan, size_t index,
                             const VolumeFolders& folders) {
  const Volume& volume = plan.volumes[index];
  switch (volume.kind) {
    case Volume::Kind::kHostPath:
      return find_host_path(volume, folders.hidden, folders.shared, folders.secret);
    case Volume::Kind::kStorage:
      return find_storage(volume, plan.project, folders);
    case Volume::Kind::kArtifacts:
      return find_own(folders.artifacts());
    case Volume::Kind::kTree:
      break;
  }
  if (volume.source.empty()) return find_own(folders.tree(index));
  return folders.tree(index);
}

}  // namespace

bool is_folder_name(const std::string& text) {
  return !text.empty() && text != "." && text != ".." && text.find('/') == std::string::npos &&
         text.find('\0') == std::string::npos;
}

Result<std::vector<Mount>> find_volumes(const launch::TaskPlan& plan,
                                        const VolumeFolders& folders) {
  std::vector<Mount> mounts;
  if (!plan.volumes.empty() && plan.sandbox == job::Sandbox::kNone) {
    return fault(plan.volumes.front(), "volumes need a sandbox", "leave out --sandbox none");
  }
  for (size_t i = 0; i < plan.volumes.size(); ++i) {
    const Volume& volume = plan.volumes[i];
    MUSTER_TRY(fs::path source, find_source(plan, i, folders));
    mounts.push_back({.source = std::move(source),
                      .target = volume.target,
                      .read_only = volume.read_only,
                      .own = volume.kind != Volume::Kind::kHostPath});
  }
  return mounts;
}

Result<void> check_host_path(const Volume& volume, const std::vector<fs::path>& hidden) {
  MUSTER_TRY(const fs::path real, find_host_path(volume, hidden));
  const auto shown = [&](const fs::path& place) { return is_within(place, real); };
  if (std::none_of(hidden.begin(), hidden.end(), shown) && !is_within(kProcesses, real)) return {};
  return fault(volume, "'" + volume.source + "' holds what is hidden from tasks",
               "name the folders in it that are needed, one by one");
}

}  // namespace muster::engine
