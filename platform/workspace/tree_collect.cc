// What nobody uses goes. Part of TreeStore.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <unordered_set>

#include "workspace/path_text.h"
#include "workspace/store_files.h"
#include "workspace/tree_store.h"

namespace muster::workspace {

namespace fs = std::filesystem;
using base::Error;
using base::UniqueFd;

namespace {

using Used = std::set<std::pair<std::string, std::string>>;

/// The files of a folder; none where there is no such folder.
Result<std::vector<fs::path>> items_of(const fs::path& folder) {
  std::vector<fs::path> items;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    items.push_back(at->path());
  }
  if (!error || error == std::errc::no_such_file_or_directory) return items;
  return base::system_error("cannot list " + shown(folder.native()), error.value());
}

/// One project. Runs while the store is held alone.
class Collector {
 public:
  Collector(const ProjectFiles& files, std::string project, const Used& used, base::Time before)
      : files_(files), project_(std::move(project)), used_(used), before_(before) {}

  Result<int64_t> collect() {
    MUSTER_TRY(const auto trees, items_of(files_.trees()));
    for (const fs::path& tree : trees) MUSTER_CHECK(look_at_tree(tree));
    MUSTER_TRY(const auto halves, items_of(files_.incoming()));
    for (const fs::path& half : halves) MUSTER_CHECK(remove_if_old(half));
    MUSTER_TRY(const auto folders, items_of(files_.chunks()));
    for (const fs::path& folder : folders) {
      MUSTER_TRY(const auto chunks, items_of(folder));
      for (const fs::path& chunk : chunks) {
        if (!has_.contains(chunk.filename().native())) MUSTER_CHECK(remove_if_old(chunk));
      }
    }
    return removed_;
  }

 private:
  Result<void> look_at_tree(const fs::path& tree) {
    const std::string id = tree.filename();
    if (!used_.contains({project_, id})) {
      MUSTER_TRY(const bool gone, remove_if_old(tree));
      if (gone) return {};
    }
    // Where this fails no chunk of the project is removed: nobody knows which the tree has.
    MUSTER_TRY(const TreeRecord record, read_record(files_, id));
    MUSTER_TRY(const Manifest manifest, read_manifest(files_, id, record.manifest_chunks));
    has_.insert(record.manifest_chunks.begin(), record.manifest_chunks.end());
    for (const Entry& entry : manifest.entries) {
      has_.insert(entry.chunks.begin(), entry.chunks.end());
    }
    return {};
  }

  /// Whether it was.
  Result<bool> remove_if_old(const fs::path& file) {
    struct stat status{};
    if (::lstat(file.c_str(), &status) != 0) {
      return base::system_error("cannot look at " + shown(file.native()), errno);
    }
    const base::Time used = base::Time(std::chrono::seconds(status.st_mtim.tv_sec) +
                                       std::chrono::nanoseconds(status.st_mtim.tv_nsec));
    if (used >= before_ || !S_ISREG(status.st_mode)) return false;
    if (::unlink(file.c_str()) != 0) {
      return base::system_error("cannot remove " + shown(file.native()), errno);
    }
    removed_ += status.st_size;
    return true;
  }

  const ProjectFiles& files_;
  std::string project_;
  const Used& used_;
  base::Time before_;
  std::unordered_set<ChunkId> has_;
  int64_t removed_ = 0;
};

}  // namespace

Result<int64_t> TreeStore::collect(const Used& used, base::Time before) {
  MUSTER_TRY(const auto projects, items_of(folder_));
  int64_t removed = 0;
  std::optional<Error> first;
  for (const fs::path& folder : projects) {
    const std::string project = folder.filename();
    const auto files = ProjectFiles::of(folder_, project);
    if (!files) continue;  // the lock
    // For each anew, so that others wait for one project at most.
    MUSTER_TRY(const UniqueFd held, hold_store(folder_, Hold::kAlone));
    auto collected = Collector(*files, project, used, before).collect();
    if (collected) removed += *collected;
    // One project that cannot be read keeps no other from being tidied.
    if (!collected && !first) first = std::move(collected).error();
  }
  if (first) return *std::move(first);
  return removed;
}

}  // namespace muster::workspace
