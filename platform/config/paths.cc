#include "config/paths.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/files.h"
#include "base/subprocess.h"

namespace muster::config {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSocketName = "muster.sock";

/// The value of a variable, or an empty path if it is not set.
fs::path path_in(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? fs::path() : fs::path(found->second);
}

fs::path absolute_path_in(const Environment& environment, const std::string& name) {
  fs::path path = path_in(environment, name);
  return path.is_absolute() ? path : fs::path();
}

/// The folder in `variable`, or `below_home` in the home folder; empty without a home folder.
fs::path xdg_folder(const PathInputs& inputs, const std::string& variable,
                    const fs::path& below_home) {
  const fs::path xdg = absolute_path_in(inputs.environment, variable);
  if (!xdg.empty()) return xdg / "muster";
  fs::path home = absolute_path_in(inputs.environment, "HOME");
  if (home.empty()) home = inputs.home_of_user;
  return home.empty() ? home : home / below_home / "muster";
}

Paths paths_below(const fs::path& folder) {
  return {.state_folder = folder, .socket = folder / kSocketName};
}

std::string home_of_user() {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer{};
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? "" : found->pw_dir;
}

bool is_own_folder(const fs::path& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid();
}

PathInputs inputs_here(const std::optional<fs::path>& state_folder) {
  return {.environment = environment_of(base::current_environment()),
          .state_folder = state_folder,
          .home_of_user = home_of_user(),
          .is_own_folder = is_own_folder};
}

}  // namespace

Environment environment_of(const std::vector<std::string>& lines) {
  Environment result;
  for (const std::string& line : lines) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    result[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return result;
}

Result<Paths> find_paths(const PathInputs& inputs) {
  if (inputs.state_folder) return paths_below(*inputs.state_folder);
  const fs::path chosen = path_in(inputs.environment, "MUSTER_STATE_DIR");
  if (!chosen.empty() && !chosen.is_absolute()) {
    // Relative to the current folder, each command would have a server of its own.
    return base::Error{
        .code = base::ErrorCode::kInvalid,
        .what = "MUSTER_STATE_DIR is '" + chosen.string() + "', which is not an absolute path",
        .advice = "set it to the path of a folder from '/'"};
  }
  if (!chosen.empty()) return paths_below(chosen.lexically_normal());

  Paths paths = paths_below(xdg_folder(inputs, "XDG_STATE_HOME", ".local/state"));
  if (paths.state_folder.empty()) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "there is no home folder for the state of the server",
                       .advice = "set MUSTER_STATE_DIR to a folder of your own"};
  }
  const fs::path runtime = absolute_path_in(inputs.environment, "XDG_RUNTIME_DIR");
  if (!runtime.empty() && inputs.is_own_folder(runtime)) {
    paths.socket = runtime / "muster" / kSocketName;
  }
  return paths;
}

fs::path find_config_folder(const PathInputs& inputs) {
  return xdg_folder(inputs, "XDG_CONFIG_HOME", ".config");
}

Result<Paths> paths_here(const std::optional<fs::path>& state_folder) {
  return find_paths(inputs_here(state_folder));
}

fs::path config_folder_here() {
  return find_config_folder(inputs_here(std::nullopt));
}

std::string recorded_engine(const fs::path& jobs_folder) {
  constexpr size_t kMost = 64;
  const auto text = base::read_file(engine_record(jobs_folder), kMost);
  return text ? text->substr(0, text->find('\n')) : "";
}

namespace {

/// Whether a folder has only what a server keeps there, or nothing. `lost+found` is in the root of
/// each disk with ext4.
bool is_of_a_server(const fs::path& folder) {
  std::error_code error;
  bool is_empty = true;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    for (const char* const own : {"muster.db", "server.lock"}) {
      if (name == own) return true;
    }
    is_empty = is_empty && name == "lost+found";
  }
  return is_empty;
}

/// A server closes its folder to other users. So it takes no folder that may be there for them, such
/// as a home folder or /etc.
Result<void> check_free_for_state(const fs::path& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  const fs::perms others = fs::perms::group_all | fs::perms::others_all;
  const bool is_open =
      fs::is_directory(status) && (status.permissions() & others) != fs::perms::none;
  if (!is_open || is_of_a_server(folder)) return {};
  return base::Error{
      .code = base::ErrorCode::kRefused,
      .what = "folder '" + folder.string() +
              "' is open to other users and has other files than those of a server, which would "
              "close it to them",
      .advice =
          "set MUSTER_STATE_DIR (in a server's file: state_dir) to a new folder; or, if no "
          "other user needs this one: chmod 700 " +
          folder.string()};
}

}  // namespace

Result<void> make_folders(const Paths& paths) {
  MUSTER_CHECK(check_free_for_state(paths.state_folder));
  MUSTER_CHECK(base::make_private_folder(paths.state_folder));
  return base::make_private_folder(paths.socket.parent_path());
}

}  // namespace muster::config
