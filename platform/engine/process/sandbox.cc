#include "engine/process/sandbox.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/subprocess.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

void append(Words& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

void show_entry(Words& words, const fs::directory_entry& entry) {
  const std::string path = entry.path().string();
  std::error_code error;
  if (entry.is_symlink(error)) {
    append(words, {"--symlink", fs::read_symlink(entry.path(), error).string(), path});
  } else if (entry.is_directory(error) || entry.is_regular_file(error)) {
    append(words, {"--dev-bind-try", path, path});
  }
}

/// The root is a fresh one with the machine's entries in it: only so can /generated exist without
/// anything being made in the machine's own root.
void show_entries(Words& words, const std::string& parent, const Words& hidden) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (const auto& entry : fs::directory_iterator(parent, error)) entries.push_back(entry);
  std::sort(entries.begin(), entries.end());
  for (const auto& entry : entries) {
    if (std::find(hidden.begin(), hidden.end(), entry.path()) == hidden.end()) {
      show_entry(words, entry);
    }
  }
}

/// Names must resolve, or every question costs a timeout of DNS. Bubblewrap would make the place of
/// a file that is missing in the machine's own /etc; where /etc/hosts is, it gets an /etc of its
/// own.
void show_hosts(Words& words, const fs::path& hosts) {
  if (!fs::exists("/etc/hosts")) {
    append(words, {"--tmpfs", "/etc"});
    show_entries(words, "/etc", {"/etc/hosts"});
  }
  append(words, {"--ro-bind", hosts.string(), "/etc/hosts"});
}

void show_file(Words& words, const fs::path& file, const std::string& place) {
  if (fs::exists(place)) append(words, {"--ro-bind", file.string(), place});
}

/// sshd wants /run/sshd when it is started by root, and a machine that never ran one lacks it.
void show_run(Words& words) {
  if (::geteuid() != 0) return append(words, {"--dev-bind-try", "/run", "/run"});
  append(words, {"--tmpfs", "/run"});
  show_entries(words, "/run", {"/run/sshd"});
  append(words, {"--dir", "/run/sshd"});
}

/// By their real names: bubblewrap would follow a link within the new root.
void hide(Words& words, const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return;
  if (fs::is_directory(real, error)) return append(words, {"--tmpfs", real.string()});
  append(words, {"--ro-bind", "/dev/null", real.string()});
}

}  // namespace

std::string sandbox_advice() {
  return "install bubblewrap (apt install bubblewrap) and allow user namespaces (sysctl "
         "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), or "
         "run without a sandbox: --sandbox none";
}

base::Result<Words> sandbox_command(const launch::TaskPlan& plan, const TaskFolder& folder,
                                    const std::vector<fs::path>& hidden) {
  auto bwrap = base::find_program("bwrap", base::current_environment());
  if (!bwrap) {
    return base::Error{.code = base::ErrorCode::kNotFound,
                       .what = "bubblewrap (bwrap) is not installed",
                       .advice = sandbox_advice()};
  }
  Words words{*std::move(bwrap)};
  show_entries(words, "/", {"/proc", "/dev", "/run", "/generated"});
  append(words, {"--proc", "/proc", "--dev-bind", "/dev", "/dev"});
  if (fs::is_directory("/dev/shm")) append(words, {"--tmpfs", "/dev/shm"});
  show_run(words);
  for (const fs::path& path : hidden) hide(words, path);
  append(words, {"--bind", folder.generated().string(), "/generated"});
  show_hosts(words, folder.hosts());
  if (plan.ssh) {
    show_file(words, folder.passwd(), "/etc/passwd");
    // Only root's sshd reads it, and only root may bind over it.
    if (::geteuid() == 0) show_file(words, folder.shadow(), "/etc/shadow");
  }
  append(words, {"--unshare-pid", "--unshare-uts", "--unshare-ipc", "--hostname", plan.hostname,
                 "--as-pid-1", "--die-with-parent"});
  return words;
}

}  // namespace muster::engine
