#include "engine/rank_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/files.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::UniqueFd;

namespace {

/// The limit for one task; only an attack would create more.
constexpr size_t kMostFiles = 65'536;

/// The number at the beginning of a text.
std::optional<int> leading_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

std::optional<int> world_size_in(const fs::path& path) {
  struct stat status{};
  const UniqueFd named(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!named || ::fstat(named.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const auto text = base::read_file("/proc/self/fd/" + std::to_string(named.get()), 64);
  return text ? leading_number(*text) : std::nullopt;
}

}  // namespace

std::optional<SignedRank> rank_in(const fs::path& folder, const std::string& name) {
  const auto number = base::number_of<int>(name);
  if (!number || *number < kHangs) return std::nullopt;
  return SignedRank{.rank = *number, .world_size = world_size_in(folder / name).value_or(0)};
}

std::vector<SignedRank> ranks_in(const fs::path& folder) {
  std::vector<SignedRank> ranks;
  // A link could lead to folders outside the task, and the task may put one there at any time.
  const UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return ranks;
  const fs::path itself = "/proc/self/fd/" + std::to_string(opened.get());
  std::error_code error;
  size_t looked_at = 0;
  for (fs::directory_iterator at(itself, error), end; !error && at != end; at.increment(error)) {
    if (++looked_at > kMostFiles) break;
    if (const auto rank = rank_in(itself, at->path().filename().string())) ranks.push_back(*rank);
  }
  return ranks;
}

base::Result<void> sign_in(const fs::path& folder, const SignedRank& rank) {
  const fs::path path = folder / std::to_string(rank.rank);
  const UniqueFd file(::open(
      path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file) return base::system_error("cannot write '" + path.string() + "'", errno);
  // A server with another account than the task reads it by the group of the folder.
  constexpr mode_t kReadByGroup = 0640;
  ::fchmod(file.get(), kReadByGroup);
  return base::write_all(file.get(), std::to_string(rank.world_size) + "\n");
}

}  // namespace muster::engine
