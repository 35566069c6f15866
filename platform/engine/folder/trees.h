// The trees of files that jobs bring: JOBS/JOB/trees/N for volume N of the job. A tree is unpacked
// once, on a thread of its own, before the job's first task starts. It is written beside the jobs'
// folders and renamed when it is complete, so that neither a crash nor a full disk leaves a partial
// tree.
//
// Also removes and measures the folders of jobs.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "job/spec.h"

namespace muster::engine {

class JobTrees {
 public:
  /// Writes a project's tree into an empty folder, on another thread.
  using Unpack = std::function<base::Result<void>(
      const std::string& project, const std::string& tree, const std::filesystem::path& folder)>;
  using Done = std::function<void(base::Result<void>)>;

  /// Removes a tree; called on another thread.
  using Remove = std::function<base::Result<void>(const std::filesystem::path& path)>;

  /// `remove` may be empty: what tasks leave belongs to this process's account.
  JobTrees(base::EventLoop& loop, std::filesystem::path jobs_folder, Unpack unpack,
           Remove remove = nullptr);

  /// Whether all trees of the job have been unpacked.
  bool are_here(const std::string& job_id, const std::vector<job::Volume>& volumes) const;

  /// Unpacks the missing trees. Calls `done` later, and never after this is destroyed.
  void unpack(const std::string& job_id, const std::string& project,
              const std::vector<job::Volume>& volumes, Done done);

  /// Removes a job's folder with everything that its tasks have written in it. The folder
  /// disappears at once; its files are deleted later. A tree that is still being unpacked is
  /// removed, too.
  base::Result<void> remove(const std::string& job_id);

  /// Deletes the leftovers of an earlier server: partial trees, and folders that it was removing.
  /// Call it once, when no other server uses the folder.
  void sweep();

  /// Measures how much disk space the job's folder uses, on the thread that removes.
  void measure(const std::string& job_id, std::function<void(int64_t bytes)> done);

 private:
  std::filesystem::path folder_of(const std::string& job_id, size_t volume) const;
  void take_from_disk(const std::string& name);
  void try_again();

  base::EventLoop& loop_;
  std::filesystem::path jobs_folder_;
  Unpack unpack_;
  Remove remove_;
  std::set<std::string> left_;  ///< folders that could not be deleted
  base::EventLoop::Interest retry_;
  base::Background unpacking_;
  /// A thread of its own: no job waits until another job's millions of files are deleted.
  base::Background removing_;
};

}  // namespace muster::engine
