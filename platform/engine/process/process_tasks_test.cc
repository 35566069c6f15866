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

TEST(JobsOfShims, AreNamedByTheirCommandLines) {
  const base::TestFolder proc;
  const auto run = [&](const std::string& pid, const std::string& line) {
    std::filesystem::create_directory(proc / pid);
    ASSERT_TRUE(base::write_file(proc / pid / "cmdline", line));
  };
  const auto words = [](const std::string& program, const std::string& argument) {
    return program + '\0' + argument + '\0';
  };
  run("10", words("/usr/lib/muster/muster-shim", "/state/jobs/3k2x5m9q7w1z/1/main"));
  run("11", words("muster-shim", "/state/jobs/aaaaaaaaaaaa/2/worker-0"));
  run("12", words("muster-shim", "/elsewhere/aaaaaaaaaaaa/2/worker-1"));
  run("13", words("muster-shim", "--inner"));
  run("14", words("muster-shim", "/state/jobs/not-an-id/1/main"));
  run("15", words("tail", "/state/jobs/bbbbbbbbbbbb/1/main"));
  run("16", "");
  run("self", words("muster-shim", "/state/jobs/cccccccccccc/1/main"));

  EXPECT_EQ(jobs_of_shims(proc.path()), (std::vector<std::string>{"3k2x5m9q7w1z", "aaaaaaaaaaaa"}));
}

TEST(UnknownJobs, AreTheFoldersOfJobsWithoutARecord) {
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
