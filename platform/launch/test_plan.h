// Helpers of the tests of plans: placed jobs, a site, and files by path.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/fake_random.h"
#include "launch/plan.h"

namespace muster::launch {

/// The words of a command line.
using Words = std::vector<std::string>;

inline const PlannedFile* find_file(const std::vector<PlannedFile>& files,
                                    const std::string& path) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const PlannedFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

inline const PlannedFile* find_file(const TaskPlan& task, const std::string& path) {
  return find_file(task.files, path);
}

inline std::vector<std::string> names(const std::vector<TaskPlan>& tasks) {
  std::vector<std::string> all;
  for (const TaskPlan& task : tasks) all.push_back(task.task);
  return all;
}

/// A job whose tasks are all placed on one node.
inline job::Job placed(job::JobSpec spec) {
  job::Job job{.id = "j1", .spec = std::move(spec), .attempt = 2};
  job.tasks = job::tasks_of(job.spec);
  for (job::Task& task : job.tasks) task.node = "n1";
  return job;
}

/// Every task sees its folder at /generated, and runs as ada.
inline Site plain_site() {
  Site site;
  site.user = "ada";
  site.generated_folder = [](std::string_view) { return std::string("/generated"); };
  return site;
}

inline GangSeed seed(uint64_t number = 1) {
  base::FakeRandom random(number);
  return make_seed(random);
}

}  // namespace muster::launch
