// Command lines of cp and port-forward, as typed commands.
#include <gtest/gtest.h>

#include "cli/files/files.h"
#include "cli/sessions/sessions.h"
#include "cli/test_call.h"

namespace muster::cli {

namespace {

TEST(Copy, TaskFlagAppliesToEachPlaceThatNamesNoTask) {
  const auto command = parsed_by<files::CopyCommand>(
      ada(), {"cp", "--task", "worker-0", "dist:a", "dist/worker-1:b", "here", "--project", "p"});

  EXPECT_EQ(command.from,
            (std::vector<files::CopyPlace>{{"dist", "worker-0", "a"}, {"dist", "worker-1", "b"}}));
  EXPECT_EQ(command.to, files::CopyPlace{.path = "here"});
  EXPECT_EQ(command.project, "p");
}

TEST(Copy, CopiesFromHereToAJobOrFromJobsToHere) {
  const std::vector<std::pair<Words, std::string>> cases{
      {{"cp", "a", "job:"}, ""},
      {{"cp", "a", "b", "job:"}, ""},
      {{"cp", "one:a", "two:b", "."}, ""},
      {{"cp"}, "give a source and a destination"},
      {{"cp", "job:a"}, "give a source and a destination"},
      {{"cp", "a", "b"}, "neither side is in a job; write JOB:PATH for a path in a job"},
      {{"cp", "job:a", "job:b"}, "cannot copy from job to job"},
      {{"cp", "a", "job:b", "."}, "copy them with two commands"},
      {{"cp", "a", "job:b", "job:"}, "copy them with two commands"},
      {{"cp", "job:a", ""}, "a file name is empty"},
  };
  for (const auto& [words, refusal] : cases) {
    const std::string text = refusal_by(ada(), words);
    EXPECT_NE(text.find(refusal.empty() ? "accepted" : refusal), std::string::npos) << text;
  }
}

TEST(PortForward, TakesAnyNumberOfPorts) {
  const auto command = parsed_by<sessions::PortForwardCommand>(
      ada(), {"port-forward", "dist", "8888", ":80", "--task", "worker-1", "--address", "::1"});

  EXPECT_EQ(command.name, "dist");
  EXPECT_EQ(command.task, "worker-1");
  EXPECT_EQ(command.address, "::1");
  EXPECT_EQ(command.ports, (std::vector<sessions::ForwardedPort>{{8888, 8888}, {0, 80}}));
  EXPECT_EQ(parsed_by<sessions::PortForwardCommand>(ada(), {"port-forward", "dist", "1"}).address,
            "127.0.0.1");
}

TEST(PortForward, ReportsEveryInvalidPort) {
  const std::string text = refusal_by(ada(), {"port-forward", "dist", "http", "80", "0"});

  EXPECT_NE(text.find("'http' is neither PORT nor LOCAL:REMOTE"), std::string::npos) << text;
  EXPECT_NE(text.find("'0' is neither PORT nor LOCAL:REMOTE"), std::string::npos) << text;
  EXPECT_NE(refusal_by(ada(), {"port-forward", "dist"}).find("a port is missing"),
            std::string::npos);
}

}  // namespace

}  // namespace muster::cli
