#include "engine/process/sandbox.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/subprocess.h"
#include "engine/process/sandbox_root.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

// Bubblewrap takes 9000 words, those of the command among them.
constexpr size_t kMostWords = 8900;

/// Files of /generated that are found elsewhere, too, by links: they may be replaced while the task
/// runs. A volume of the user's at that place wins.
void add_links_to_generated(const launch::TaskPlan& plan, std::vector<Mount>& mounts) {
  const std::vector<Mount> volumes = mounts;
  for (const auto& [name, target] : plan.also_at) {
    bool taken = false;
    for (const Mount& volume : volumes) taken = taken || is_within(target, volume.target);
    if (taken) continue;
    mounts.push_back({.source = fs::path("/generated") / name, .target = target, .is_link = true});
  }
}

/// What the sandbox itself puts in folders of the machine.
///
/// sshd wants /run/sshd when it is started by root, and a machine that never ran one lacks it.
/// Names must resolve, or every question costs a timeout of DNS: bubblewrap would make the place of
/// an /etc/hosts that is missing in the machine's own /etc.
void add_own_places(MountPlan& plan) {
  plan.fresh["/"].insert({"proc", "dev", "generated", ".machine"});
  if (::geteuid() == 0) plan.fresh["/run"].insert("sshd");
  if (!fs::exists("/etc/hosts")) plan.fresh["/etc"].insert("hosts");
}

base::Error too_many_entries(const MountPlan& plan) {
  std::string folders;
  for (const auto& [folder, names] : plan.fresh) {
    if (folder != "/" && folder != "/run")
      folders += (folders.empty() ? "" : ", ") + folder.string();
  }
  return {.code = base::ErrorCode::kExhausted,
          .what = "too many entries to make room for a volume in " + folders,
          .advice = "choose a place in a folder with fewer entries, or in one of its own"};
}

/// The sandbox that the task's own one is made in: the whole machine but for what is hidden, of
/// which only the task's folders are there. Bubblewrap looks up the paths of mounts by name, and
/// whatever they lead to by then, they do it in here.
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

/// Settings of the kernel, through which root changes the whole machine, and control groups,
/// through which a task of the account that owns them raises its own limits.
void guard_kernel_files(BubblewrapWords& words) {
  for (const char* path : {"/sys", "/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs"}) {
    if (fs::exists(path)) append_words(words, {"--ro-bind", path, path});
  }
  if (::geteuid() != 0) return;
  for (const char* path : {"/proc/sysrq-trigger", "/proc/kcore", "/proc/keys"}) {
    if (fs::exists(path)) append_words(words, {"--ro-bind", "/dev/null", path});
  }
}

/// Those of root that sshd and programs in containers have; the others reach the whole machine.
void drop_rights(BubblewrapWords& words) {
  append_words(words, {"--cap-drop", "ALL"});
  for (const char* right :
       {"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID",
        "CAP_SETUID", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_SETFCAP"}) {
    append_words(words, {"--cap-add", right});
  }
}

void show_file(BubblewrapWords& words, const fs::path& file, const std::string& place) {
  if (fs::exists(place)) append_words(words, {"--ro-bind", file.string(), place});
}

/// Often a link to a file in /run: what it leads to is replaced.
void show_resolver(BubblewrapWords& words, const TaskFolder& folder) {
  std::error_code error;
  const fs::path place = fs::canonical("/etc/resolv.conf", error);
  if (error || !fs::exists(folder.resolver())) return;
  append_words(words, {"--ro-bind", folder.resolver().string(), place.string()});
}

}  // namespace

std::string sandbox_advice() {
  return "install bubblewrap (apt install bubblewrap) and allow user namespaces (sysctl "
         "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), or "
         "run without a sandbox: --sandbox none";
}

base::Result<BubblewrapWords> sandbox_command(const launch::TaskPlan& plan,
                                              const TaskFolder& folder,
                                              const std::vector<Mount>& volumes,
                                              const std::vector<fs::path>& hidden, bool shared,
                                              const std::vector<fs::path>& secret,
                                              Confinement confinement) {
  auto bwrap = base::find_program("bwrap", base::current_environment());
  if (!bwrap) {
    return base::Error{.code = base::ErrorCode::kNotFound,
                       .what = "bubblewrap (bwrap) is not installed",
                       .advice = sandbox_advice()};
  }
  std::vector<Mount> wanted = volumes;
  add_links_to_generated(plan, wanted);
  MUSTER_TRY(MountPlan mounts, plan_mounts(std::move(wanted), hidden));
  add_own_places(mounts);
  mounts.is_read_only = confinement == Confinement::kMachine && ::geteuid() == 0;
  BubblewrapWords words =
      root_words(mounts, hidden, {"/etc/hosts", "/etc/passwd", "/etc/shadow"},
                 shared ? folders_above(hidden) : std::vector<fs::path>(), secret);
  if (words.size() > kMostWords) return too_many_entries(mounts);
  words.insert(words.begin(), *bwrap);
  if (shared && shows_the_nodes_paths(volumes)) {
    const BubblewrapWords around = surroundings(*bwrap, folder, mounts.mounts, hidden, secret);
    words.insert(words.begin(), around.begin(), around.end());
  }
  if (::geteuid() == 0) append_words(words, {"--dir", "/run/sshd"});
  append_words(words, {"--bind", folder.generated().string(), "/generated"});
  append_words(words, {"--ro-bind", folder.hosts().string(), "/etc/hosts"});
  show_resolver(words, folder);
  if (plan.ssh) {
    show_file(words, folder.passwd(), "/etc/passwd");
    // Only root's sshd reads it, and only root may bind over it.
    if (::geteuid() == 0) show_file(words, folder.shadow(), "/etc/shadow");
  }
  if (confinement != Confinement::kNone) {
    guard_kernel_files(words);
    if (::geteuid() == 0) drop_rights(words);
  }
  append_words(words, {"--unshare-pid", "--unshare-uts", "--unshare-ipc", "--hostname",
                       plan.hostname, "--as-pid-1", "--die-with-parent"});
  return words;
}

}  // namespace muster::engine
