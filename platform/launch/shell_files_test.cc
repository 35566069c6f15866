#include "launch/shell_files.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::launch {
namespace {

const PlannedFile* file_of(const TaskPlan& plan, const std::string& path) {
  const auto found = std::find_if(plan.files.begin(), plan.files.end(),
                                  [&](const PlannedFile& file) { return file.path == path; });
  return found == plan.files.end() ? nullptr : &*found;
}

TEST(ShellFiles, AreThereForEveryTask) {
  TaskPlan plan;

  add_shell_files({}, "/generated", plan);

  EXPECT_EQ(plan.folders, std::vector<std::string>{"bash"});
  ASSERT_NE(file_of(plan, kShellStart), nullptr);
  EXPECT_EQ(file_of(plan, kShellStart)->mode, 0700U);
  ASSERT_NE(file_of(plan, kTypedCommands), nullptr);
  EXPECT_EQ(file_of(plan, kTypedCommands)->mode, 0600U);
  EXPECT_EQ(file_of(plan, "bin/ssh"), nullptr);
}

TEST(ShellFiles, NameTheTasksThatAnswerSsh) {
  TaskPlan plan;

  add_shell_files({.ssh_hosts = {"dist-worker-0", "dist-worker-1"}}, "/generated", plan);

  const PlannedFile* const config = file_of(plan, "bash/ssh_config");
  ASSERT_NE(config, nullptr);
  EXPECT_EQ(config->content,
            "Host dist-worker-0 dist-worker-1\n  Include \"/generated/ssh/config\"\n"
            "Host *\n  Include ~/.ssh/config\n  Include /etc/ssh/ssh_config\n");
  for (const char* name : {"bin/ssh", "bin/scp", "bin/sftp"}) {
    ASSERT_NE(file_of(plan, name), nullptr) << name;
    EXPECT_EQ(file_of(plan, name)->mode, 0700U);
  }
}

TEST(ShellFiles, CallMustersOwnRemoteShellRshWhereThatIsWhatTasksAnswer) {
  TaskPlan plan;

  add_shell_files({.remote_shell = "/a b/muster-rsh"}, "/generated", plan);

  ASSERT_NE(file_of(plan, "bin/rsh"), nullptr);
  EXPECT_EQ(file_of(plan, "bin/rsh")->content, "#!/bin/sh\nexec '/a b/muster-rsh' \"$@\"\n");
  EXPECT_EQ(file_of(plan, "bin/ssh"), nullptr);
}

}  // namespace
}  // namespace muster::launch
