#include "engine/process/team_places.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/files.h"
#include "engine/folder/mounts.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

/// Entries of /run that tasks see: the sockets of the resolver and of account databases, and the
/// GPU driver's helper. Every account of the machine may use them.
constexpr std::array<const char*, 8> kOfRun{"/run/systemd/resolve",
                                            "/run/resolvconf",
                                            "/run/NetworkManager/resolv.conf",
                                            "/run/nscd",
                                            "/run/nslcd",
                                            "/run/nvidia-persistenced",
                                            "/run/nvidia-fabricmanager",
                                            "/run/nvidia-imex"};

bool is_in_private_place(const fs::path& path, const TeamPlaces& places) {
  const std::vector<fs::path> all = real_paths(private_places(places));
  return std::any_of(all.begin(), all.end(),
                     [&](const fs::path& place) { return is_within(path, place); });
}

Mount shown_as_it_is(const fs::path& path, bool read_only) {
  return {.source = path, .target = path, .read_only = read_only, .is_configured = true};
}

}  // namespace

std::vector<fs::path> private_places(const TeamPlaces& places) {
  std::vector<fs::path> all{"/tmp", "/var/tmp", "/run"};
  const bool has_home = places.account_home.is_absolute() && places.account_home != "/";
  if (has_home) all.push_back(places.account_home);
  return all;
}

fs::path home_of_tasks(const TeamPlaces& places) {
  std::error_code error;
  fs::path home = fs::canonical(places.account_home, error);
  if (error || home == "/" || !fs::is_directory(home, error)) return "/tmp";
  return home;
}

base::Result<std::vector<Mount>> mounts_in_private_places(const TeamPlaces& places,
                                                          const std::string& owner,
                                                          const fs::path& programs) {
  if (!is_folder_name(owner)) {
    return base::Error{
        .code = base::ErrorCode::kInvalid,
        .what = "'" + owner + "' cannot have a home: the name is not valid for a folder"};
  }
  std::vector<Mount> mounts;
  if (const fs::path home = home_of_tasks(places); home != "/tmp") {
    MUSTER_CHECK(base::make_private_folder(places.homes));
    MUSTER_CHECK(make_folder_of_tasks(places.homes / owner));
    mounts.push_back({.source = places.homes / owner, .target = home, .own = true});
  }
  std::error_code error;
  for (const char* path : kOfRun) {
    if (fs::exists(path, error)) mounts.push_back(shown_as_it_is(path, true));
  }
  for (const fs::path& folder : real_paths(places.shared)) {
    if (is_in_private_place(folder, places)) mounts.push_back(shown_as_it_is(folder, false));
  }
  const fs::path own = fs::canonical(programs, error);
  const auto shows_it = [&](const fs::path& folder) { return is_within(own, folder); };
  const std::vector<fs::path> shared = real_paths(places.shared);
  if (!error && is_in_private_place(own, places) &&
      std::none_of(shared.begin(), shared.end(), shows_it)) {
    mounts.push_back(shown_as_it_is(own, true));
  }
  return mounts;
}

namespace {

/// Whether the mount leads to a file of this path. True if this process may not look.
bool may_show(const Mount& mount, const fs::path& path) {
  if (!is_within(path, mount.target)) return false;
  if (mount.is_link) return true;
  std::error_code error;
  const fs::path source = mount.source / path.lexically_relative(mount.target);
  return fs::status(source, error).type() != fs::file_type::not_found;
}

}  // namespace

base::Result<void> check_working_folder(const TeamPlaces& places, const fs::path& folder,
                                        const std::vector<Mount>& mounts) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error || !fs::is_directory(real, error)) return {};  // the shim reports it
  const std::vector<fs::path> hidden = real_paths(private_places(places));
  const auto place = std::find_if(hidden.begin(), hidden.end(), [&](const fs::path& each) {
    return real != each && is_within(real, each);
  });
  if (place == hidden.end()) return {};
  for (const Mount& mount : mounts) {
    for (const fs::path& path : {folder, real}) {
      // Bubblewrap makes the folders above a mount.
      if (is_within(mount.target, path) || may_show(mount, path)) return {};
    }
  }
  return base::Error{.code = base::ErrorCode::kRefused,
                     .what = "its working folder '" + folder.string() +
                             "' is hidden: tasks on a shared server do not see the machine's " +
                             place->string(),
                     .advice =
                         "choose a working folder elsewhere, or send the files with the job; an "
                         "administrator can let tasks see the folder with the key shared_folders"};
}

std::vector<std::string> environment_for_holders(const std::vector<std::string>& environment) {
  constexpr std::array<std::string_view, 9> kKept{"PATH",   "LANG",         "LANGUAGE",
                                                  "LC_ALL", "LC_CTYPE",     "LC_MESSAGES",
                                                  "TZ",     "ASAN_OPTIONS", "LD_LIBRARY_PATH"};
  std::vector<std::string> kept;
  for (const std::string& entry : environment) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (std::find(kKept.begin(), kKept.end(), name) != kKept.end()) kept.push_back(entry);
  }
  return kept;
}

}  // namespace muster::engine
