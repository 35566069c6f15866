// The copies of sent files that jobs have: JOBS/JOB/trees/N for the N-th volume of the job,
// unpacked once, on a thread of its own, before the first task of it starts.
//
// A copy is written beside the jobs' folders and renamed when it is whole, so that neither a crash
// nor a full disk leaves a half one in its place.
//
// On the loop's thread, which it must not outlive.
#pragma once

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
  /// Writes a tree of a project into an empty folder; on another thread.
  using Unpack = std::function<base::Result<void>(
      const std::string& project, const std::string& tree, const std::filesystem::path& folder)>;
  using Done = std::function<void(base::Result<void>)>;

  JobTrees(base::EventLoop& loop, std::filesystem::path jobs_folder, Unpack unpack);

  /// Whether nothing has to be unpacked any more.
  bool are_here(const std::string& job_id, const std::vector<job::Volume>& volumes) const;

  /// Unpacks those that are not here; calls `done` later, and never when this is gone.
  void unpack(const std::string& job_id, const std::string& project,
              const std::vector<job::Volume>& volumes, Done done);

  /// Removes a job's folder with all that tasks may have written in it: at once for whoever looks,
  /// on disk later. Whatever is still being unpacked for it goes, too.
  base::Result<void> remove(const std::string& job_id);

  /// What an earlier server left half done: its drafts, and what it had set aside to remove. To be
  /// called once, when no other is at work here any more.
  void sweep();

  /// How much room its folder takes, looked up on the thread that removes.
  void measure(const std::string& job_id, std::function<void(int64_t bytes)> done);

 private:
  std::filesystem::path folder_of(const std::string& job_id, size_t volume) const;
  void take_from_disk(const std::string& name);
  void try_again();

  base::EventLoop& loop_;
  std::filesystem::path jobs_folder_;
  Unpack unpack_;
  std::set<std::string> left_;  ///< what could not be taken from the disk
  base::EventLoop::Interest retry_;
  base::Background unpacking_;
  /// Of its own: no job waits until another's millions of files are gone.
  base::Background removing_;
};

}  // namespace muster::engine
