#include "engine/process/process_tasks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <variant>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {
namespace {

TEST(ProcessTasks, ATaskWithNothingButAnExitRecordHasEnded) {
  const base::TestFolder jobs;
  base::EventLoop loop;
  ProcessTasks tasks(loop, jobs.path());
  const GangId gang{.job_id = "j1", .attempt = 1};
  const TaskFolder folder = tasks.folder_of(gang, "main");
  ASSERT_TRUE(base::make_private_folder(folder.path));
  ASSERT_TRUE(base::write_new_file(folder.lock(), ""));
  ExitFile record;
  ASSERT_TRUE(record.reserve(folder.exit()));
  EXPECT_EQ(tasks.adopt(gang, "main"), AdoptionResult::kNothing) << "the record is blank";

  record.write({.status = {.code = 3}, .ended = base::Time(std::chrono::seconds(5))});
  std::optional<TaskEnded> end;
  tasks.set_listener([&](const TaskReport& report) {
    end = std::get<TaskEnded>(report.what);
    loop.stop();
  });
  ASSERT_EQ(tasks.adopt(gang, "main"), AdoptionResult::kEnded);
  loop.run();

  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, job::ExitStatus{.code = 3});
}

TEST(UnknownJobs, AreTheFoldersOfJobsThatNobodyKnows) {
  const base::TestFolder jobs;
  for (const char* folder : {"3k2x5m9q7w1z", "aaaaaaaaaaaa", "bbbbbbbbbbbb", "trees", "storage",
                             "project-homes", ".removed", "UPPERCASE012"}) {
    std::filesystem::create_directory(jobs / folder);
  }
  const auto is_known = [](const std::string& id) { return id == "aaaaaaaaaaaa"; };

  EXPECT_EQ(unknown_jobs_in(jobs.path(), is_known),
            (std::vector<std::string>{"3k2x5m9q7w1z", "bbbbbbbbbbbb"}));
}

}  // namespace
}  // namespace muster::engine
