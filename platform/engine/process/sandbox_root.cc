#include "engine/process/sandbox_root.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

using Entries = std::vector<fs::directory_entry>;

// Where a fresh folder's links lead: there the machine's own one is.
constexpr const char* kMachine = "/.machine";

// A mount costs bubblewrap a third of a millisecond, for it reads the table of all mounts after
// each: 50 ms for /etc. A link costs next to nothing, but a program that asks for the real name of
// what is behind it sees that it is one.
constexpr size_t kMostMounts = 16;

Entries sorted_entries_of(const fs::path& folder) {
  std::error_code error;
  Entries entries;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry);
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// In the place of a folder that everybody may write to, /tmp, stands another such folder.
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

/// What something is mounted at cannot be renamed from within, by whatever way it is reached.
void hold(const fs::path& folder, BubblewrapWords& words, bool read_only = false) {
  append_words(words, {read_only ? "--ro-bind" : "--dev-bind", folder.string(), folder.string()});
}

class Root {
 public:
  Root(const MountPlan& plan, const std::vector<fs::path>& hidden,
       const std::vector<fs::path>& places, const std::vector<fs::path>& held,
       const std::vector<fs::path>& secret)
      : plan_(plan), hidden_(hidden), held_(held), secret_(secret), in_use_(places) {
    for (const auto& [folder, names] : plan.fresh) in_use_.push_back(folder);
    for (const Mount& mount : plan.mounts) in_use_.push_back(mount.target);
    in_use_.insert(in_use_.end(), hidden.begin(), hidden.end());
    for (const auto& [folder, names] : plan.fresh) {
      // /run is made afresh for sshd in most sandboxes: what is in it keeps its real name.
      if (folder == "/" || folder == "/run") continue;
      if (sorted_entries_of(folder).size() > kMostMounts) of_links_.insert(folder);
    }
  }

  BubblewrapWords words() && {
    show_entries("/");
    hold_folders();
    append_words(words_, {"--proc", "/proc", "--dev-bind", "/dev", "/dev"});
    if (fs::is_directory("/dev/shm")) append_words(words_, {"--tmpfs", "/dev/shm"});
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

  /// Something is mounted there or below.
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

  /// The machine's own folder, and links around it, so that links in it that lead out find their
  /// way.
  void show_machines(const fs::path& folder) {
    const bool within_another =
        std::any_of(machines_.begin(), machines_.end(),
                    [&](const fs::path& shown) { return is_within(folder, shown); });
    if (within_another) return;
    machines_.push_back(folder);
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

  /// The machine's own folder is shown there or below.
  bool is_way_to_machines(const fs::path& path) const {
    return std::any_of(of_links_.begin(), of_links_.end(),
                       [&](const fs::path& folder) { return is_within(folder, path); });
  }

  void hide(const fs::path& path, const fs::path& place) { hide_at(path, place, words_); }

  /// The entries of the root are mounts already. Before anything is shown in one of them.
  void hold_folders() {
    for (const fs::path& folder : held_) {
      if (folder.parent_path() != "/") hold(folder, words_, plan_.is_read_only);
    }
  }

  void show_mount(const Mount& mount) {
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
    hide_in_it("/proc");  // whoever sees the machine's processes sees by them what they see
  }

  const MountPlan& plan_;
  const std::vector<fs::path>& hidden_;
  const std::vector<fs::path>& held_;
  const std::vector<fs::path>& secret_;
  std::vector<fs::path> in_use_;
  std::set<fs::path> of_links_;     ///< fresh folders whose entries are links
  std::vector<fs::path> machines_;  ///< those shown below kMachine
  std::set<fs::path> linked_;       ///< those that have a link below kMachine
  BubblewrapWords words_;
};

}  // namespace

BubblewrapWords root_words(const MountPlan& plan, const std::vector<fs::path>& hidden,
                           const std::vector<fs::path>& places, const std::vector<fs::path>& held,
                           const std::vector<fs::path>& secret) {
  return Root(plan, hidden, places, held, secret).words();
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

}  // namespace muster::engine
