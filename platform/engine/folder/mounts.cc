#include "engine/folder/mounts.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/files.h"
#include "base/unique_fd.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

Error refused(const Mount& mount, const std::string& why, const std::string& advice = "") {
  return {.code = ErrorCode::kInvalid,
          .what = "nothing can be mounted at " + mount.target.string() + ": " + why,
          .advice = advice};
}

bool is_hidden(const fs::path& path, const std::vector<fs::path>& hidden) {
  return std::any_of(hidden.begin(), hidden.end(),
                     [&](const fs::path& folder) { return is_within(path, folder); });
}

bool same_kind(const fs::path& one, const fs::path& other) {
  std::error_code error;
  return fs::exists(one, error) && fs::is_directory(one, error) == fs::is_directory(other, error);
}

/// A path, split into the real path of the part that exists and the missing rest.
struct Known {
  fs::path there;
  fs::path missing;
};

Known known_part(const fs::path& path) {
  Known known{path, {}};
  std::error_code error;
  while (!fs::exists(known.there, error)) {
    known.missing =
        known.missing.empty() ? known.there.filename() : known.there.filename() / known.missing;
    known.there = known.there.parent_path();
  }
  const fs::path real = fs::canonical(known.there, error);
  if (!error) known.there = real;
  return known;
}

/// Plans the mount point of `mount` among the machine's files. `target`: the real path.
Result<void> place_on_machine(MountPlan& plan, const Mount& mount, const Known& known,
                              const fs::path& target, const std::vector<fs::path>& hidden) {
  constexpr std::array<const char*, 5> kSandboxes{"/proc", "/sys", "/dev", "/generated",
                                                  "/.machine"};
  if (target == "/") return refused(mount, "it is the root of the sandbox");
  for (const char* folder : kSandboxes) {
    if (is_within(target, folder)) return refused(mount, "it belongs to the sandbox");
  }
  for (const fs::path& folder : hidden) {
    // The task sees this folder empty: bubblewrap creates the rest of the path in it.
    if (!is_within(target, folder)) continue;
    if (fs::is_directory(folder)) return {};
    return refused(mount, folder.string() + " is a file");
  }
  if (known.missing.empty()) {
    if (mount.is_link || !same_kind(target, mount.source)) {
      plan.fresh[target.parent_path()].insert(target.filename().string());
    }
    return {};
  }
  if (!fs::is_directory(known.there)) return refused(mount, known.there.string() + " is a file");
  plan.fresh[known.there].insert(known.missing.begin()->string());
  return {};
}

/// Makes an empty one of the kind of `like` at `below` in `root`, and the folders above it. Tasks may
/// write to `root` meanwhile: no link in it is followed.
Result<void> make_place(const fs::path& root, const fs::path& below, const fs::path& like) {
  constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const auto failed = [&] {
    return base::system_error("cannot make " + (root / below).string(), errno);
  };
  std::error_code error;
  const bool is_folder = fs::is_directory(like, error);
  base::UniqueFd folder(::open(root.c_str(), kFolder));
  if (!folder) return failed();
  for (const fs::path& name : is_folder ? below : below.parent_path()) {
    if (::mkdirat(folder.get(), name.c_str(), 0755) != 0 && errno != EEXIST) return failed();
    base::UniqueFd inner(::openat(folder.get(), name.c_str(), kFolder));
    if (!inner) return failed();
    folder = std::move(inner);
  }
  if (is_folder) return {};
  const base::UniqueFd file(::openat(folder.get(), below.filename().c_str(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  return file ? Result<void>() : failed();
}

/// Plans the mount point of `mount` inside the volume `outer`. No part of the path may be a link,
/// which could lead out of the volume.
Result<void> place_in_mount(const Mount& outer, const Mount& mount, const fs::path& below,
                            const std::vector<fs::path>& hidden) {
  if (outer.is_link) return refused(mount, outer.target.string() + " is a link");
  std::error_code error;
  const fs::path root = fs::canonical(outer.source, error);
  fs::path place = root;
  for (const fs::path& name : below) {
    // Tasks see this folder empty, so no error may reveal its content.
    if (!outer.own && is_hidden(place, hidden) && fs::is_directory(place, error)) return {};
    if (fs::exists(place, error) && !fs::is_directory(fs::symlink_status(place, error))) {
      return refused(mount, place.string() + " is not a folder");
    }
    place /= name;
  }
  const fs::file_status there = fs::symlink_status(place, error);
  if (fs::is_symlink(there)) return refused(mount, place.string() + " is a link");
  if (same_kind(place, mount.source)) return {};
  if (fs::exists(there))
    return refused(mount, place.string() + " is not of the same type (file or folder)");
  if (outer.own) return make_place(root, below, mount.source);
  return refused(mount,
                 "it is within " + outer.target.string() + ", and there is no " + place.string(),
                 "create it there, or choose another path");
}

}  // namespace

std::vector<fs::path> real_paths(const std::vector<fs::path>& paths) {
  std::vector<fs::path> real;
  for (const fs::path& path : paths) {
    std::error_code error;
    fs::path there = fs::canonical(path, error);
    if (!error) real.push_back(std::move(there));
  }
  std::sort(real.begin(), real.end());
  std::vector<fs::path> outermost;
  for (fs::path& path : real) {
    if (!is_hidden(path, outermost)) outermost.push_back(std::move(path));
  }
  return outermost;
}

std::vector<fs::path> folders_above(const std::vector<fs::path>& paths) {
  std::set<fs::path> above;
  for (const fs::path& path : paths) {
    for (fs::path folder = path.parent_path(); folder.has_relative_path();
         folder = folder.parent_path()) {
      above.insert(folder);
    }
  }
  return {above.begin(), above.end()};
}

bool is_within(const fs::path& path, const fs::path& folder) {
  const std::string& inner = path.native();
  const std::string& outer = folder.native();
  if (!inner.starts_with(outer)) return false;
  return inner.size() == outer.size() || outer == "/" || inner[outer.size()] == '/';
}

Result<MountPlan> plan_mounts(std::vector<Mount> mounts, const std::vector<fs::path>& hidden) {
  MountPlan plan;
  // Outer mounts first: bubblewrap mounts in this order.
  std::sort(mounts.begin(), mounts.end(),
            [](const Mount& a, const Mount& b) { return a.target < b.target; });
  for (size_t i = 0; i < mounts.size(); ++i) {
    const auto within = [](const fs::path& target, const std::vector<Mount>& of, size_t count) {
      while (count > 0 && !is_within(target, of[count - 1].target)) --count;
      return count;
    };
    // First by the path as written, then by the real path: a link may lead into another mount.
    if (const size_t outer = within(mounts[i].target, mounts, i); outer > 0) {
      const fs::path below = mounts[i].target.lexically_relative(mounts[outer - 1].target);
      MUSTER_CHECK(place_in_mount(plan.mounts[outer - 1], mounts[i], below, hidden));
      plan.mounts.push_back(mounts[i]);
      plan.mounts.back().target = plan.mounts[outer - 1].target / below;
      continue;
    }
    const Known known = known_part(mounts[i].target);
    const fs::path target = known.missing.empty() ? known.there : known.there / known.missing;
    for (const Mount& other : plan.mounts) {
      if (is_within(target, other.target) || is_within(other.target, target)) {
        return refused(mounts[i], "links lead to " + other.target.string() +
                                      ", where another volume is mounted");
      }
    }
    MUSTER_CHECK(place_on_machine(plan, mounts[i], known, target, hidden));
    plan.mounts.push_back(mounts[i]);
    plan.mounts.back().target = target;
  }
  return plan;
}

namespace fs = std::filesystem;

using job::Volume;

namespace {

// Through /proc, a task could reach every file that the machine's processes can reach.
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
                                "name a path of the node that the server's account can read");
  if (error) return not_there;
  const auto holds_it = [&](const fs::path& folder) { return is_within(real, folder); };
  const bool is_shared = std::any_of(shared.begin(), shared.end(), holds_it);
  for (const fs::path& hidden : is_shared ? secret : all_hidden) {
    if (real == hidden) return fault(volume, "'" + volume.source + "' is hidden from tasks");
    // Existing and missing paths give the same error, so that hidden names cannot be guessed.
    if (is_within(real, hidden)) return not_there;
  }
  if (is_within(real, kProcesses)) {
    return fault(volume, "'" + volume.source + "' would show the processes of other users");
  }
  return real;
}

Result<fs::path> find_storage(const Volume& volume, const std::string& project,
                              const VolumeFolders& folders) {
  if (folders.storage.empty()) return fault(volume, "this node has no storage");
  if (!is_folder_name(project) || !is_folder_name(volume.source)) {
    return fault(
        volume, "'" + volume.source + "' of project '" + project + "' is not a valid storage name");
  }
  fs::path folder = folders.storage / project / volume.source;
  MUSTER_CHECK(base::make_private_folder(folder.parent_path()));
  MUSTER_CHECK(make_folder_of_tasks(folder));
  return folder;
}

Result<fs::path> find_own(fs::path folder) {
  MUSTER_CHECK(make_folder_of_tasks(folder));
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

Result<void> make_folder_of_tasks(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(path, error))) return {};
  return base::make_private_folder(path);
}

bool is_folder_name(const std::string& text) {
  return !text.empty() && text != "." && text != ".." && text.find('/') == std::string::npos &&
         text.find('\0') == std::string::npos;
}

Result<std::vector<Mount>> find_volumes(const launch::TaskPlan& plan,
                                        const VolumeFolders& folders) {
  std::vector<Mount> mounts;
  if (!plan.volumes.empty() && plan.sandbox == job::Sandbox::kNone) {
    return fault(plan.volumes.front(), "volumes require a sandbox", "remove --sandbox none");
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
  return fault(volume, "'" + volume.source + "' contains paths that are hidden from tasks",
               "name the needed folders in it one by one");
}

}  // namespace muster::engine
