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
#include <string>
#include <vector>

#include "base/background.h"
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

 private:
  std::filesystem::path folder_of(const std::string& job_id, size_t volume) const;
  void sweep();

  std::filesystem::path jobs_folder_;
  Unpack unpack_;
  bool swept_ = false;
  base::Background unpacking_;
  /// Of its own: no job waits until another's millions of files are gone.
  base::Background removing_;
};

}  // namespace muster::engine
