#include "engine/container/container_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "engine/container/labels.h"
#include "engine/folder/mounts.h"

namespace muster::engine {

namespace fs = std::filesystem;

using job::Volume;
using launch::TaskPlan;
using workspace::ArchiveEntry;

namespace {

// The capabilities needed to install packages, run sshd and change the account. None of them
// reaches beyond the container's own files and processes.
constexpr std::array kCapabilities{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID",
                                   "KILL",  "SETGID",       "SETUID", "SYS_CHROOT"};

// Folders that programs expect to be writable even if the root is read-only.
constexpr std::array kScratch{"/tmp", "/run", "/var/tmp"};

// An sshd that root starts requires this folder, closed to others. Images lack it, because /run is
// created when a machine starts.
constexpr const char* kSshdFolder = "/run/sshd";

/// No volume of a user may be in these folders.
constexpr std::array kOwnPlaces{kMusterFolder, kGeneratedFolder, "/proc", "/sys", "/dev"};

/// Both paths are normal: "/a/b" is within "/a" and within "/a/b".
bool lies_in(std::string_view path, std::string_view folder) {
  if (folder == "/") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string plain(const std::string& path) {
  std::string text = fs::path(path).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool is_covered(const TaskPlan& plan, const std::string& path) {
  return std::any_of(plan.volumes.begin(), plan.volumes.end(),
                     [&](const Volume& volume) { return lies_in(path, plain(volume.target)); });
}

std::string parent_folder_of(const std::string& path) {
  return fs::path(path).parent_path().string();
}

/// The places of also_at that get links. A volume of the user takes precedence.
std::map<std::string, std::string> links_of(const TaskPlan& plan) {
  std::map<std::string, std::string> links;
  for (const auto& [file, place] : plan.also_at) {
    if (!is_covered(plan, place)) links[place] = std::string(kGeneratedFolder) + "/" + file;
  }
  return links;
}

bool needs_sshd_folder(const TaskPlan& plan) {
  return plan.ssh && plan.account.uid == 0 && !plan.ssh->command.empty() &&
         !lies_in(plan.ssh->command.front(), kMusterFolder);
}

DockerMount volume_mount(const GangId& gang, const TaskPlan& plan, size_t index,
                         const std::string& owner) {
  const Volume& volume = plan.volumes[index];
  const std::string name = engine_volume(owner, gang.job_id, plan, index);
  return {.kind = name.empty() ? DockerMount::Kind::kBind : DockerMount::Kind::kVolume,
          .source = name.empty() ? volume.source : name,
          .target = plain(volume.target),
          .read_only = volume.read_only};
}

// The shim in the container enforces the limits that the engine does not enforce.
TaskLimits limits_in_container(const TaskPlan& plan, const ContainerSite& site) {
  TaskLimits limits = site.limits;
  limits.memory_bytes = plan.resources.memory_bytes;
  limits.scratch = {kGeneratedFolder};
  limits.is_held_by_container = true;
  return limits;
}

std::vector<DockerMount> mounts_of(const GangId& gang, const TaskPlan& plan,
                                   const ContainerSite& site) {
  std::vector<DockerMount> mounts{{.source = "", .target = kMusterFolder},
                                  {.source = "", .target = kGeneratedFolder}};
  std::set<std::string> folders;
  for (const auto& [place, file] : links_of(plan)) folders.insert(parent_folder_of(place));
  if (needs_sshd_folder(plan) && !is_covered(plan, kSshdFolder)) folders.insert(kSshdFolder);
  for (const std::string& folder : folders) mounts.push_back({.source = "", .target = folder});
  for (const char* folder : kScratch) {
    if (plan.container.writable_root || is_covered(plan, folder)) continue;
    mounts.push_back({.kind = DockerMount::Kind::kTmpfs,
                      .source = "",
                      .target = folder,
                      .tmpfs_bytes = site.limits.scratch_bytes});
  }
  for (size_t i = 0; i < plan.volumes.size(); ++i) {
    mounts.push_back(volume_mount(gang, plan, i, site.owner));
  }
  // A mount inside another mount follows it.
  std::stable_sort(mounts.begin(), mounts.end(), [](const auto& one, const auto& other) {
    return std::count(one.target.begin(), one.target.end(), '/') <
           std::count(other.target.begin(), other.target.end(), '/');
  });
  return mounts;
}

std::vector<std::string> capabilities_of(const TaskPlan& plan) {
  std::vector<std::string> all(kCapabilities.begin(), kCapabilities.end());
  for (const std::string& more : plan.container.capabilities) {
    if (std::find(all.begin(), all.end(), more) == all.end()) all.push_back(more);
  }
  return all;
}

ArchiveEntry folder_entry(std::string path, mode_t mode, const launch::Account& account) {
  return {.path = std::move(path),
          .content = {},
          .mode = mode,
          .is_folder = true,
          .uid = account.uid,
          .gid = account.gid,
          .link = {}};
}

ArchiveEntry file_entry(std::string path, std::string content, mode_t mode,
                        const launch::Account& account) {
  return {.path = std::move(path),
          .content = std::move(content),
          .mode = mode,
          .uid = account.uid,
          .gid = account.gid,
          .link = {}};
}

/// The form of "/muster/task" in archives, without the leading slash.
std::string relative(std::string_view path) {
  return std::string(path.substr(1));
}

void add_generated_files(const TaskPlan& plan, std::vector<ArchiveEntry>& files) {
  const std::string root = relative(kGeneratedFolder);
  files.push_back(folder_entry(root, 0700, plan.account));
  std::set<std::string> folders(plan.folders.begin(), plan.folders.end());
  for (const launch::PlannedFile& file : plan.files) {
    for (fs::path above = fs::path(file.path).parent_path(); !above.empty();
         above = above.parent_path()) {
      folders.insert(above.string());
    }
  }
  for (const std::string& folder : folders) {  // sorted: those above come first
    files.push_back(folder_entry(root + "/" + folder, 0700, plan.account));
  }
  for (const launch::PlannedFile& file : plan.files) {
    files.push_back(file_entry(root + "/" + file.path, file.content, file.mode, plan.account));
  }
}

/// The remote shell is half of the data put into a container, and few tasks use it.
bool is_of_use(const std::string& program, const TaskPlan& plan) {
  if (program != kRemoteShell) return true;
  return std::any_of(plan.files.begin(), plan.files.end(),
                     [](const launch::PlannedFile& file) { return file.path.starts_with("rsh/"); });
}

}  // namespace

std::string engine_volume(const std::string& owner, const std::string& job_id, const TaskPlan& plan,
                          size_t index) {
  const Volume& volume = plan.volumes[index];
  switch (volume.kind) {
    case Volume::Kind::kTree:
      return volume_name(job_id, "tree-" + std::to_string(index));
    case Volume::Kind::kArtifacts:
      return volume_name(job_id, "artifacts");
    case Volume::Kind::kStorage:
      return storage_name(owner, plan.project, volume.source);
    case Volume::Kind::kHostPath:
      break;
  }
  return "";
}

base::Result<void> check_places(const TaskPlan& plan) {
  base::Error error{.code = base::ErrorCode::kInvalid};
  for (const Volume& volume : plan.volumes) {
    if (volume.kind == Volume::Kind::kStorage && !is_folder_name(volume.source)) {
      error.faults.push_back({.field = "volume " + volume.target,
                              .what = "'" + volume.source + "' is not a valid storage name"});
    }
    const std::string target = plain(volume.target);
    const auto own = std::find_if(kOwnPlaces.begin(), kOwnPlaces.end(),
                                  [&](const char* place) { return lies_in(target, place); });
    if (own == kOwnPlaces.end() && target.starts_with('/') && target != "/") continue;
    error.faults.push_back({.field = "volume " + volume.target,
                            .what = own == kOwnPlaces.end()
                                        ? "a volume cannot replace the root folder"
                                        : std::string(*own) + " is reserved in containers"});
  }
  if (error.faults.empty()) return {};
  error.what = error.faults.front().field + ": " + error.faults.front().what;
  error.advice = "choose another path or name";
  if (error.faults.size() == 1) error.faults.clear();
  return error;
}

ContainerConfig container_config(const GangId& gang, const TaskPlan& plan,
                                 const ContainerSite& site) {
  ContainerConfig config;
  config.name = container_name(gang, plan.task);
  config.image = plan.image;
  config.hostname = plan.hostname;
  config.user = std::to_string(plan.account.uid) + ":" + std::to_string(plan.account.gid);
  config.entrypoint = {std::string(kProgramsFolder) + "/muster-shim", "--container", kTaskFolder};
  config.folder = "/";
  config.labels = labels_of_task(site.owner, gang, plan.task);
  config.mounts = mounts_of(gang, plan, site);
  config.network = site.network;
  if (plan.reach == launch::Reach::kNames) {
    config.aliases = {plan.hostname};
  } else {
    config.extra_hosts = plan.hosts;
  }
  config.cpu_milli = plan.resources.cpu_milli;
  config.memory_bytes = plan.resources.memory_bytes;
  config.processes = site.limits.processes;
  config.shm_bytes = plan.container.shm_bytes;
  // The shim gives the task's program an environment of its own.
  if (plan.gpus.empty()) config.environment = {kNoGpus};
  if (site.gives_gpus) config.gpus = plan.gpus;
  config.read_only_root = !plan.container.writable_root;
  config.no_new_privileges = !plan.container.new_privileges;
  config.capabilities = capabilities_of(plan);
  // As in a sandbox of the process engine (engine/process/sandbox.cc), for the same reason.
  if (plan.reach == launch::Reach::kNames) config.hidden = {"/proc/kallsyms"};
  return config;
}

ShimPlan shim_plan(const TaskPlan& plan, const ContainerSite& site) {
  ShimPlan shim;
  shim.wrapper = {std::string(kProgramsFolder) + "/muster-shim", "--inner"};
  shim.inner.argv = plan.argv;
  for (const auto& [name, value] : plan.environment) {
    shim.inner.environment.push_back(name + "=" + value);
  }
  shim.inner.folder = plan.folder;
  if (plan.own_rank_output) shim.inner.rank_output_folder = kGeneratedFolder;
  shim.inner.input = plan.input;
  shim.inner.terminal = plan.terminal;
  shim.inner.generated = kGeneratedFolder;
  shim.inner.mpi = plan.mpi;
  shim.inner.takes_ranks = plan.takes_ranks;
  shim.inner.limits = limits_in_container(plan, site);
  shim.generated = kGeneratedFolder;
  if (plan.ssh) {
    shim.inner.ssh_command = plan.ssh->command;
    shim.address = plan.ssh->bind.empty() ? plan.address : plan.ssh->bind;
    shim.port = plan.ssh->port;
  }
  shim.serves = plan.serves;
  shim.grace = plan.grace;
  shim.tags_ranks = plan.tags_ranks;
  shim.prepends_rank = plan.prepends_rank;
  // A filter takes the right to make one, or the promise to gain no rights.
  const bool has_more_rights =
      plan.container.new_privileges || !plan.container.capabilities.empty();
  if (!has_more_rights) shim.inner.filter = site.filter;
  shim.log_quota = site.log_quota;
  shim.sampling = site.sampling;
  shim.sampling.gpus = plan.gpus;
  return shim;
}

std::vector<ArchiveEntry> programs_of(const TaskPlan& plan,
                                      const std::vector<ArchiveEntry>& programs) {
  const launch::Account root;
  std::vector<ArchiveEntry> files{folder_entry(relative(kMusterFolder), 0755, root),
                                  folder_entry(relative(kProgramsFolder), 0755, root)};
  for (const ArchiveEntry& program : programs) {
    if (!is_of_use(program.path, plan)) continue;
    files.push_back(program);
    files.back().path = relative(kProgramsFolder) + "/" + program.path;
  }
  files.push_back(folder_entry(relative(kTaskFolder), 0700, plan.account));
  return files;
}

std::vector<ArchiveEntry> files_of(const TaskPlan& plan, const ShimPlan& shim) {
  const launch::Account root;
  std::vector<ArchiveEntry> files;
  add_generated_files(plan, files);
  for (const auto& [place, file] : links_of(plan)) {
    ArchiveEntry link = file_entry(relative(place), "", 0777, root);
    link.link = file;
    files.push_back(std::move(link));
  }
  const TaskFolder folder{relative(kTaskFolder)};
  files.push_back(file_entry(folder.plan().string(), encode(shim), 0600, plan.account));
  files.push_back(file_entry(folder.complete().string(), "", 0600, plan.account));
  return files;
}

std::vector<VolumeFiles> by_volume(const std::vector<ArchiveEntry>& files,
                                   const std::vector<DockerMount>& mounts) {
  std::vector<VolumeFiles> volumes;
  for (const DockerMount& mount : mounts) {
    if (mount.kind == DockerMount::Kind::kVolume && mount.source.empty()) {
      volumes.push_back({.folder = mount.target, .entries = {}});
    }
  }
  for (const ArchiveEntry& file : files) {
    const std::string place = "/" + file.path;
    VolumeFiles* innermost = nullptr;
    for (VolumeFiles& volume : volumes) {
      const bool is_in = lies_in(place, volume.folder);
      if (is_in && (innermost == nullptr || volume.folder.size() > innermost->folder.size())) {
        innermost = &volume;
      }
    }
    if (innermost == nullptr) continue;
    ArchiveEntry entry = file;
    entry.path = place == innermost->folder ? "." : place.substr(innermost->folder.size() + 1);
    innermost->entries.push_back(std::move(entry));
  }
  std::erase_if(volumes, [](const VolumeFiles& volume) { return volume.entries.empty(); });
  std::stable_partition(volumes.begin(), volumes.end(),
                        [](const VolumeFiles& volume) { return volume.folder != kMusterFolder; });
  return volumes;
}

}  // namespace muster::engine
