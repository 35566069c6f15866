#include "engine/folder/task_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/unique_fd.h"
#include "engine/rank_files.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Result;
using base::UniqueFd;

namespace {

constexpr size_t kLongestRecord = 64 << 10;

std::string_view without_line_end(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

}  // namespace

TaskEnded end_left_in(const TaskFolder& folder) {
  const auto text = base::read_file(folder.exit(), kLongestRecord);
  const auto record = text ? decode_exit(*text) : Result<ExitRecord>(text.error());
  if (!record) return {.status = {.lost = true}, .time = base::SystemClock().now()};
  return {.status = record->status, .time = record->ended};
}

Result<std::unique_ptr<LogCursor>> open_log_in(const TaskFolder& folder, const std::string& task) {
  UniqueFd file(::open(folder.log().c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return base::system_error("cannot read the log of " + task, errno);
  return std::unique_ptr<LogCursor>(
      std::make_unique<FileLogCursor>(std::move(file), folder.log_start()));
}

std::vector<RankPlace> ranks_in(const TaskFolder& folder, const std::string& task) {
  std::vector<RankPlace> places;
  for (const fs::path& ranks : {folder.generated() / "ranks", folder.path / "ranks"}) {
    for (const SignedRank& signed_in : ranks_in(ranks)) {
      places.push_back({.rank = signed_in.rank, .world_size = signed_in.world_size, .task = task});
    }
  }
  return places;
}

std::vector<RankPlace> ranks_in(const fs::path& attempt, const std::vector<std::string>& tasks) {
  std::vector<RankPlace> places;
  for (const std::string& task : tasks) {
    const auto found = ranks_in(TaskFolder{attempt / task}, task);
    places.insert(places.end(), found.begin(), found.end());
  }
  return places;
}

std::optional<fs::path> artifacts_in(const fs::path& job) {
  fs::path folder = job / "artifacts";
  std::error_code error;
  return fs::is_directory(folder, error) ? std::optional(std::move(folder)) : std::nullopt;
}

std::string mpi_in(const TaskFolder& folder) {
  const auto text = base::read_file(folder.mpi(), kLongestRecord);
  return text ? std::string(without_line_end(*text)) : "";
}

}  // namespace muster::engine
