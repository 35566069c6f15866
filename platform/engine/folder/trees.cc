#include "engine/folder/trees.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "engine/disk_use.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::Result;
using job::Volume;

namespace {

// Beside the jobs' folders, whose names are ids and never begin with a dot.
constexpr const char* kUnpacking = ".unpacking";
constexpr const char* kRemoved = ".removed";
constexpr std::chrono::minutes kRetryPause{10};

struct Tree {
  std::string id;
  std::string target;  ///< the path at which tasks find it
  fs::path place;
  fs::path draft;
};

/// The tree is synced to disk before it is renamed. Otherwise a power failure could leave a tree of
/// empty files under the final name.
Result<void> sync(const fs::path& folder) {
  const base::UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || ::syncfs(opened.get()) != 0) {
    return base::system_error("cannot write '" + folder.string() + "' to disk", errno);
  }
  return {};
}

Result<void> write_tree(const JobTrees::Unpack& unpack, const std::string& project,
                        const Tree& tree) {
  MUSTER_CHECK(base::remove_tree(tree.draft));
  MUSTER_CHECK(base::make_private_folder(tree.draft));
  MUSTER_CHECK(unpack(project, tree.id, tree.draft));
  MUSTER_CHECK(sync(tree.draft));
  std::error_code error;
  // Fails if the job was removed meanwhile, because the folder of the job is not created again.
  fs::rename(tree.draft, tree.place, error);
  if (error) return base::system_error("cannot rename " + tree.draft.string(), error.value());
  return {};
}

Result<void> bring_tree(const JobTrees::Unpack& unpack, const std::string& project,
                        const Tree& tree) {
  std::error_code ignored;
  if (fs::exists(tree.place, ignored)) return {};
  auto written = write_tree(unpack, project, tree);
  if (written) return {};
  if (const auto removed = base::remove_tree(tree.draft); !removed) {
    base::log_error(removed.error().what);
  }
  Error error = std::move(written).error();
  error.what = "the files for " + tree.target + " cannot be unpacked: " + error.what;
  return error;
}

bool is_sent(const Volume& volume) {
  return volume.kind == Volume::Kind::kTree && !volume.source.empty();
}

void remove_quietly(const fs::path& path) {
  if (const auto removed = base::remove_tree(path); !removed) {
    base::log_error(removed.error().what);
  }
}

std::vector<std::string> entry_names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

}  // namespace

JobTrees::JobTrees(base::EventLoop& loop, fs::path jobs_folder, Unpack unpack, Remove remove)
    : loop_(loop),
      jobs_folder_(std::move(jobs_folder)),
      unpack_(std::move(unpack)),
      remove_(remove ? std::move(remove) : Remove(base::remove_tree)),
      unpacking_(loop),
      removing_(loop) {}

fs::path JobTrees::folder_of(const std::string& job_id, size_t volume) const {
  return jobs_folder_ / job_id / "trees" / std::to_string(volume);
}

bool JobTrees::are_here(const std::string& job_id, const std::vector<Volume>& volumes) const {
  for (size_t i = 0; i < volumes.size(); ++i) {
    std::error_code ignored;
    if (is_sent(volumes[i]) && !fs::exists(folder_of(job_id, i), ignored)) return false;
  }
  return true;
}

void JobTrees::unpack(const std::string& job_id, const std::string& project,
                      const std::vector<Volume>& volumes, Done done) {
  std::vector<Tree> trees;
  for (size_t i = 0; i < volumes.size(); ++i) {
    if (!is_sent(volumes[i])) continue;
    trees.push_back({.id = volumes[i].source,
                     .target = volumes[i].target,
                     .place = folder_of(job_id, i),
                     .draft = jobs_folder_ / kUnpacking / (job_id + "-" + std::to_string(i))});
  }
  auto result = std::make_shared<Result<void>>();
  if (unpack_ == nullptr) *result = Error{.what = "this server cannot unpack files that were sent"};
  for (const fs::path& folder : {jobs_folder_ / job_id / "trees", jobs_folder_ / kUnpacking}) {
    if (*result) *result = base::make_private_folder(folder);
  }
  unpacking_.run(
      [unpack = unpack_, project, trees = std::move(trees), result] {
        for (const Tree& tree : trees) {
          if (*result) *result = bring_tree(unpack, project, tree);
        }
      },
      [result, done = std::move(done)] { done(*result); });
}

Result<void> JobTrees::remove(const std::string& job_id) {
  const fs::path folder = jobs_folder_ / job_id;
  std::error_code error;
  if (!fs::exists(fs::symlink_status(folder, error))) return {};
  const fs::path removed = jobs_folder_ / kRemoved / job_id;
  MUSTER_CHECK(base::make_private_folder(removed.parent_path()));
  fs::rename(folder, removed, error);
  if (error) return base::system_error("cannot remove " + folder.string(), error.value());
  take_from_disk(job_id);
  return {};
}

void JobTrees::measure(const std::string& job_id, std::function<void(int64_t)> done) {
  const auto bytes = std::make_shared<int64_t>(0);
  removing_.run([folder = jobs_folder_ / job_id, bytes] { *bytes = disk_use(folder).bytes; },
                [bytes, done = std::move(done)] { done(*bytes); });
}

/// Deletes the folders of removed jobs. A file that cannot be deleted now (a file system is mounted
/// on it, or the disk is read-only) is tried again later.
void JobTrees::take_from_disk(const std::string& name) {
  const auto outcome = std::make_shared<Result<void>>();
  removing_.run(
      [path = jobs_folder_ / kRemoved / name, remove = remove_, outcome] {
        *outcome = remove(path);
      },
      [this, name, outcome] {
        if (*outcome) return;
        base::log_error(
            "some files of a removed job still use disk space; deletion is tried again: " +
            outcome->error().what);
        left_.insert(name);
        if (!retry_) retry_ = loop_.after(kRetryPause, [this] { try_again(); });
      });
}

void JobTrees::try_again() {
  retry_.reset();
  for (const std::string& name : std::exchange(left_, {})) take_from_disk(name);
}

void JobTrees::sweep() {
  unpacking_.run(
      [folder = jobs_folder_ / kUnpacking] {
        for (const std::string& name : entry_names_in(folder)) remove_quietly(folder / name);
      },
      [] {});
  for (const std::string& name : entry_names_in(jobs_folder_ / kRemoved)) take_from_disk(name);
}

}  // namespace muster::engine
