#include "engine/process/sandbox.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "base/subprocess.h"
#include "base/text.h"
#include "engine/shim/network.h"

namespace muster::engine {

namespace fs = std::filesystem;

// --- the root of a sandbox

namespace {

using Entries = std::vector<fs::directory_entry>;

// The machine's folders are mounted below this path, for the links in new folders.
constexpr const char* kMachine = "/.machine";

// A folder with at most this many entries is rebuilt with a mount for each entry, a larger one with
// links. A mount costs bubblewrap a third of a millisecond, since it reads the table of all mounts
// after each mount: 50 ms for /etc. A link costs almost nothing, but programs that resolve it see
// another path.
constexpr size_t kMostMounts = 16;

Entries sorted_entries_of(const fs::path& folder) {
  std::error_code error;
  Entries entries;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry);
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// Hides a path. A folder that every account may write to (/tmp) is replaced by another such
/// folder.
void hide_at(const fs::path& path, const fs::path& place, BubblewrapWords& words) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    const bool is_everybodys = (status.permissions() & fs::perms::sticky_bit) != fs::perms::none;
    if (is_everybodys) append_words(words, {"--perms", "1777"});
    return append_words(words, {"--tmpfs", place.string()});
  }
  append_words(words, {"--ro-bind", "/dev/null", place.string()});
}

/// Mounts the folder over itself: a mount point cannot be renamed from within the sandbox, whatever
/// path leads to it.
void hold(const fs::path& folder, BubblewrapWords& words, bool read_only = false) {
  append_words(words, {read_only ? "--ro-bind" : "--dev-bind", folder.string(), folder.string()});
}

class Root {
 public:
  Root(const MountPlan& plan, const std::vector<fs::path>& hidden,
       const std::vector<fs::path>& places, const std::vector<fs::path>& held,
       const std::vector<fs::path>& secret, const BubblewrapWords& devices)
      : plan_(plan),
        hidden_(hidden),
        held_(held),
        secret_(secret),
        devices_(devices),
        in_use_(places) {
    for (const auto& [folder, names] : plan.fresh) in_use_.push_back(folder);
    for (const Mount& mount : plan.mounts) in_use_.push_back(mount.target);
    in_use_.insert(in_use_.end(), hidden.begin(), hidden.end());
    for (const auto& [folder, names] : plan.fresh) {
      // Most sandboxes have a new /run, for sshd: its entries are mounts, so that they keep their
      // paths.
      if (folder == "/" || folder == "/run") continue;
      if (sorted_entries_of(folder).size() > kMostMounts) of_links_.insert(folder);
    }
  }

  BubblewrapWords words() && {
    show_entries("/");
    hold_folders();
    append_words(words_, {"--proc", "/proc"});
    if (devices_.empty()) append_words(words_, {"--dev-bind", "/dev", "/dev"});
    words_.insert(words_.end(), devices_.begin(), devices_.end());
    if (fs::is_directory("/dev/shm")) {
      append_words(words_, {"--perms", "1777", "--tmpfs", "/dev/shm"});
    }
    for (const auto& [folder, names] : plan_.fresh) {
      if (folder != "/") show_fresh(folder);
    }
    for (const fs::path& path : hidden_) hide(path, path);
    for (const Mount& mount : plan_.mounts) show_mount(mount);
    return std::move(words_);
  }

 private:
  bool is_fresh(const fs::path& path) const { return plan_.fresh.contains(path); }

  bool is_left_out(const fs::path& path) const {
    const auto fresh = plan_.fresh.find(path.parent_path());
    return is_fresh(path) ||
           (fresh != plan_.fresh.end() && fresh->second.contains(path.filename().string()));
  }

  /// Whether something is mounted at the path or below it.
  bool is_in_use(const fs::path& path) const {
    return std::any_of(in_use_.begin(), in_use_.end(),
                       [&](const fs::path& used) { return is_within(used, path); });
  }

  void show_entries(const fs::path& folder) {
    const bool link = of_links_.contains(folder);
    if (link) show_machines(folder);
    for (const auto& entry : sorted_entries_of(folder)) {
      if (is_left_out(entry.path())) continue;
      if (link && !is_in_use(entry.path()) && !entry.is_symlink()) {
        append_words(words_,
                     {"--symlink", kMachine + entry.path().string(), entry.path().string()});
      } else {
        show_entry(entry);
      }
    }
  }

  void show_entry(const fs::directory_entry& entry) {
    const std::string path = entry.path().string();
    std::error_code error;
    if (entry.is_symlink(error)) {
      append_words(words_, {"--symlink", fs::read_symlink(entry.path(), error).string(), path});
    } else if (entry.is_directory(error) || entry.is_regular_file(error)) {
      append_words(words_, {plan_.is_read_only ? "--ro-bind-try" : "--dev-bind-try", path, path});
    }
  }

  void show_fresh(const fs::path& folder) {
    struct stat facts{};
    if (::stat(folder.c_str(), &facts) == 0) {
      std::array<char, 8> mode{};
      std::snprintf(mode.data(), mode.size(), "%04o", facts.st_mode & 07777);
      append_words(words_, {"--perms", mode.data()});
    }
    append_words(words_, {"--tmpfs", folder.string()});
    show_entries(folder);
  }

  /// Mounts the machine's folder below kMachine, with links around it, so that relative links that
  /// lead out of the folder still work.
  void show_machines(const fs::path& folder) {
    const bool within_another =
        std::any_of(machines_.begin(), machines_.end(),
                    [&](const fs::path& shown) { return is_within(folder, shown); });
    if (within_another) return;
    machines_.push_back(folder);
    for (const fs::path& above : folders_above({kMachine + folder.string()})) make_open(above);
    append_words(words_, {plan_.is_read_only ? "--ro-bind" : "--dev-bind", folder.string(),
                          kMachine + folder.string()});
    for (const fs::path& path : hidden_) {
      if (is_within(path, folder)) hide(path, kMachine + path.string());
    }
    fs::path above = "/";
    for (const fs::path& name : folder.relative_path()) {
      for (const auto& entry : sorted_entries_of(above)) {
        const bool new_link = entry.path() != above / name && linked_.insert(entry.path()).second;
        if (!new_link || is_way_to_machines(entry.path())) continue;
        append_words(words_,
                     {"--symlink", entry.path().string(), kMachine + entry.path().string()});
      }
      above /= name;
    }
  }

  /// Whether a folder of the machine is mounted at the path or below it.
  bool is_way_to_machines(const fs::path& path) const {
    return std::any_of(of_links_.begin(), of_links_.end(),
                       [&](const fs::path& folder) { return is_within(folder, path); });
  }

  void hide(const fs::path& path, const fs::path& place) { hide_at(path, place, words_); }

  /// Makes folders unmovable, before anything is mounted in them. The entries of the root are
  /// mounts already.
  void hold_folders() {
    for (const fs::path& folder : held_) {
      if (folder.parent_path() != "/") hold(folder, words_, plan_.is_read_only);
    }
  }

  /// Bubblewrap makes missing folders 0700. They belong to its account, which may be another than
  /// that of the task.
  void make_open(const fs::path& folder) {
    append_words(words_, {"--perms", "0755", "--dir", folder.string()});
  }

  void make_way(const fs::path& target) {
    for (const fs::path& folder : folders_above({target})) {
      const bool is_made = std::any_of(hidden_.begin(), hidden_.end(), [&](const fs::path& place) {
        return folder != place && is_within(folder, place);
      });
      std::error_code error;
      if (is_made || !fs::exists(folder, error)) make_open(folder);
    }
  }

  void show_mount(const Mount& mount) {
    make_way(mount.target);
    if (mount.is_link) {
      return append_words(words_, {"--symlink", mount.source.string(), mount.target.string()});
    }
    if (mount.is_configured) return show_configured(mount, secret_, words_);
    append_words(words_, {mount.read_only ? "--ro-bind" : "--bind", mount.source.string(),
                          mount.target.string()});
    if (mount.own) return;
    const auto hide_in_it = [&](const fs::path& path) {
      if (!is_within(path, mount.source)) return;
      hide(path, mount.target / path.lexically_relative(mount.source));
    };
    for (const fs::path& path : hidden_) hide_in_it(path);
    hide_in_it("/proc");  // /proc/PID/root of the machine's processes shows their files
  }

  const MountPlan& plan_;
  const std::vector<fs::path>& hidden_;
  const std::vector<fs::path>& held_;
  const std::vector<fs::path>& secret_;
  const BubblewrapWords& devices_;
  std::vector<fs::path> in_use_;
  std::set<fs::path> of_links_;     ///< new folders whose entries are links
  std::vector<fs::path> machines_;  ///< folders that are mounted below kMachine
  std::set<fs::path> linked_;       ///< folders that have a link below kMachine
  BubblewrapWords words_;
};

}  // namespace

BubblewrapWords root_words(const MountPlan& plan, const std::vector<fs::path>& hidden,
                           const std::vector<fs::path>& places, const std::vector<fs::path>& held,
                           const std::vector<fs::path>& secret, const BubblewrapWords& devices) {
  return Root(plan, hidden, places, held, secret, devices).words();
}

void show_configured(const Mount& mount, const std::vector<fs::path>& secret,
                     BubblewrapWords& words) {
  append_words(words, {mount.read_only ? "--ro-bind" : "--bind", mount.source.string(),
                       mount.target.string()});
  for (const fs::path& path : secret) {
    if (!is_within(path, mount.source)) continue;
    hide_at(path, mount.target / path.lexically_relative(mount.source), words);
  }
}

void limit_temporary_places(int64_t bytes, BubblewrapWords& words) {
  const std::set<std::string> places{"/tmp", "/var/tmp", "/dev/shm", "/run"};
  BubblewrapWords limited;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool is_place =
        words[i] == "--tmpfs" && i + 1 < words.size() && places.contains(words[i + 1]);
    if (is_place) append_words(limited, {"--size", std::to_string(bytes)});
    limited.push_back(std::move(words[i]));
  }
  words = std::move(limited);
}

void hold_and_hide(const std::vector<fs::path>& hidden, BubblewrapWords& words) {
  for (const fs::path& folder : folders_above(hidden)) hold(folder, words);
  for (const fs::path& path : hidden) hide_at(path, path, words);
}

// --- the whole command

namespace {

// Bubblewrap takes at most 9000 arguments, including those of the command.
constexpr size_t kMostWords = 8900;

/// Adds links at other paths to files of /generated. They are links, not mounts, because the files
/// may be replaced while the task runs. A user's volume at such a path takes precedence.
void add_links_to_generated(const launch::TaskPlan& plan, std::vector<Mount>& mounts) {
  const std::vector<Mount> volumes = mounts;
  for (const auto& [name, target] : plan.also_at) {
    bool taken = false;
    for (const Mount& volume : volumes) taken = taken || is_within(target, volume.target);
    if (taken) continue;
    mounts.push_back({.source = fs::path("/generated") / name, .target = target, .is_link = true});
  }
}

/// Files that the task has in place of the machine's; the keys are paths of the sandbox.
using OwnFiles = std::map<fs::path, fs::path>;

OwnFiles own_files_of(const launch::TaskPlan& plan, const TaskFolder& folder) {
  OwnFiles files{{"/etc/hosts", folder.hosts()}};
  if (fs::exists(folder.resolver())) files.emplace("/etc/resolv.conf", folder.resolver());
  if (!plan.ssh) return files;
  files.emplace("/etc/passwd", folder.passwd());
  // An sshd that cannot read /etc/shadow asks the next source of /etc/nsswitch.conf. There systemd
  // reports the account nobody as locked, and sshd then refuses its key.
  files.emplace("/etc/shadow", folder.shadow());
  return files;
}

/// Root without a team: a task may install programs.
bool writes_to_machine(const MountPlan& plan) {
  return ::geteuid() == 0 && !plan.is_read_only;
}

/// Adds the paths that the sandbox itself needs in folders of the machine.
///
/// sshd needs /run/sshd when root starts it, and a machine that never ran an sshd lacks it.
///
/// The task's own files of /etc lie in an /etc of its own. A program that replaces a file of the
/// machine's /etc by another (useradd, a DHCP client, an editor) would remove a mount over that file
/// from all sandboxes, which then would see the machine's.
void add_own_places(MountPlan& plan, const OwnFiles& files) {
  plan.fresh["/"].insert({"proc", "dev", "generated", ".machine"});
  if (::geteuid() == 0) plan.fresh["/run"].insert("sshd");
  for (const auto& [path, file] : files) {
    const fs::path above = path.parent_path();
    // bubblewrap would create a missing file in the machine's own folder.
    if (writes_to_machine(plan) && fs::exists(path) && !plan.fresh.contains(above)) continue;
    plan.fresh[above].insert(path.filename().string());
  }
}

base::Error too_many_entries(const MountPlan& plan) {
  std::string folders;
  for (const auto& [folder, names] : plan.fresh) {
    if (folder != "/" && folder != "/run")
      folders += (folders.empty() ? "" : ", ") + folder.string();
  }
  return {.code = base::ErrorCode::kExhausted,
          .what = "too many entries to mount a volume in " + folders,
          .advice = "mount the volume in a folder with fewer entries, or in a new folder"};
}

/// The outer of two sandboxes, in which the task's own sandbox is made: the whole machine without
/// the hidden paths, of which only the task's own folders remain. The inner bubblewrap resolves the
/// paths of its mounts in here. So a path that another task has replaced by a link meanwhile cannot
/// lead to something hidden.
BubblewrapWords surroundings(const std::string& bwrap, const TaskFolder& folder,
                             const std::vector<Mount>& mounts, const std::vector<fs::path>& hidden,
                             const std::vector<fs::path>& secret) {
  BubblewrapWords words{bwrap, "--dev-bind", "/", "/"};
  hold_and_hide(hidden, words);
  for (const Mount& mount : mounts) {
    if (mount.is_configured) show_configured(mount, secret, words);
  }
  std::vector<fs::path> own{folder.generated(), folder.hosts(), folder.resolver(), folder.passwd(),
                            folder.shadow()};
  for (const Mount& mount : mounts) {
    if (mount.own) own.push_back(mount.source);
  }
  for (const fs::path& path : own)
    append_words(words, {"--bind-try", path.string(), path.string()});
  append_words(words, {"--die-with-parent"});
  return words;
}

bool shows_the_nodes_paths(const std::vector<Mount>& mounts) {
  return std::any_of(mounts.begin(), mounts.end(),
                     [](const Mount& mount) { return !mount.own && !mount.is_configured; });
}

/// Makes the kernel's settings read-only, by which root could change the whole machine, and control
/// groups, by which a task could raise its own limits.
void guard_kernel_files(BubblewrapWords& words) {
  for (const char* path : {"/sys", "/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs"}) {
    if (fs::exists(path)) append_words(words, {"--ro-bind", path, path});
  }
  if (::geteuid() != 0) return;
  for (const char* path : {"/proc/sysrq-trigger", "/proc/kcore", "/proc/keys"}) {
    if (fs::exists(path)) append_words(words, {"--ro-bind", "/dev/null", path});
  }
}

/// Hides the kernel's symbols, as systemd's ProtectKernelTunables does. libfabric, which Open MPI
/// may load in each rank, searches the 5 MB twice for drivers of RDMA: 0.1 s of CPU time a rank. A
/// gang on one machine uses no RDMA; elsewhere the search decides whether GPU memory can be sent
/// directly.
void hide_kernel_symbols(const launch::TaskPlan& plan, BubblewrapWords& words) {
  constexpr const char* kSymbols = "/proc/kallsyms";
  if (plan.reach != launch::Reach::kLoopback || !fs::exists(kSymbols)) return;
  append_words(words, {"--ro-bind", "/dev/null", kSymbols});
}

/// Drops the capabilities of root that reach the whole machine. sshd and programs in containers
/// need the remaining ones.
void drop_rights(BubblewrapWords& words) {
  append_words(words, {"--cap-drop", "ALL"});
  for (const char* right :
       {"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID",
        "CAP_SETUID", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_SETFCAP"}) {
    append_words(words, {"--cap-add", right});
  }
}

void show_own_files(const OwnFiles& files, const MountPlan& plan, BubblewrapWords& words) {
  for (const auto& [path, file] : files) {
    std::error_code error;
    // Often a link to a file in /run.
    const fs::path place =
        plan.fresh.contains(path.parent_path()) ? path : fs::canonical(path, error);
    if (!error) append_words(words, {"--ro-bind", file.string(), place.string()});
  }
  // Its memory would count for no process of the task.
  const bool is_own = plan.fresh.contains("/etc") && !writes_to_machine(plan);
  if (is_own) append_words(words, {"--remount-ro", "/etc"});
}

}  // namespace

std::vector<FileState> machine_files() {
  constexpr int64_t kSecond = 1'000'000'000;
  std::vector<FileState> found;
  for (const char* path : {"/etc/hosts", "/etc/resolv.conf", "/etc/passwd", "/etc/shadow"}) {
    struct stat file{};
    FileState& state = found.emplace_back();
    if (::stat(path, &file) != 0) continue;
    state = {.device = file.st_dev,
             .inode = file.st_ino,
             .changed = file.st_ctim.tv_sec * kSecond + file.st_ctim.tv_nsec};
  }
  return found;
}

std::string sandbox_advice(bool has_bubblewrap, const std::vector<std::string>& settings) {
  std::string advice;
  if (!has_bubblewrap) advice = "install bubblewrap (apt install bubblewrap)";
  if (!settings.empty()) {
    if (!advice.empty()) advice += " and ";
    advice += "allow user namespaces (sysctl " + base::joined(settings, " ") + ")";
  }
  // The kernel allows them; the container in which this program runs may not.
  if (advice.empty()) advice = "allow user namespaces (in a container: CAP_SYS_ADMIN)";
  return advice + ", or run without a sandbox: --sandbox none";
}

std::string sandbox_advice() {
  const bool has_bubblewrap = base::find_program("bwrap", base::current_environment()).ok();
  return sandbox_advice(has_bubblewrap, needed_namespace_settings());
}

base::Result<BubblewrapWords> sandbox_command(
    const launch::TaskPlan& plan, const TaskFolder& folder, const std::vector<Mount>& volumes,
    const std::vector<fs::path>& hidden, bool shared, const std::vector<fs::path>& secret,
    Confinement confinement, bool has_account, const BubblewrapWords& devices) {
  auto bwrap = base::find_program("bwrap", base::current_environment());
  if (!bwrap) {
    return base::Error{.code = base::ErrorCode::kNotFound,
                       .what = "bubblewrap (bwrap) is not installed",
                       .advice = sandbox_advice()};
  }
  std::vector<Mount> all_mounts = volumes;
  add_links_to_generated(plan, all_mounts);
  MUSTER_TRY(MountPlan mounts, plan_mounts(std::move(all_mounts), hidden));
  mounts.is_read_only = confinement == Confinement::kMachine && ::geteuid() == 0;
  const OwnFiles own_files = own_files_of(plan, folder);
  add_own_places(mounts, own_files);
  std::vector<fs::path> places;
  for (const auto& [path, file] : own_files) places.push_back(path);
  BubblewrapWords words =
      root_words(mounts, hidden, places, shared ? folders_above(hidden) : std::vector<fs::path>(),
                 secret, devices);
  if (words.size() > kMostWords) return too_many_entries(mounts);
  words.insert(words.begin(), *bwrap);
  if (shared && shows_the_nodes_paths(volumes)) {
    const BubblewrapWords around = surroundings(*bwrap, folder, mounts.mounts, hidden, secret);
    words.insert(words.begin(), around.begin(), around.end());
  }
  if (::geteuid() == 0) append_words(words, {"--dir", "/run/sshd"});
  append_words(words, {"--bind", folder.generated().string(), "/generated"});
  show_own_files(own_files, mounts, words);
  hide_kernel_symbols(plan, words);
  if (confinement != Confinement::kNone) {
    guard_kernel_files(words);
    if (::geteuid() == 0 && !has_account) drop_rights(words);
  }
  append_words(words, {"--unshare-pid", "--unshare-uts", "--unshare-ipc", "--hostname",
                       plan.hostname, "--as-pid-1", "--die-with-parent"});
  return words;
}

}  // namespace muster::engine
