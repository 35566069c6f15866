#include "launch/scripts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/text.h"

namespace muster::launch {
namespace {

/// The output of a real shell that runs `prelude` and then `script`.
std::string run(const std::string& prelude, const std::string& script) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      ::popen((prelude + " sh -c " + base::shell_quoted(script)).c_str(), "r"), ::pclose);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), pipe.get()));
  return text;
}

TEST(SessionScript, GivesTheCommandItsEnvironmentAndFolderWithAnyBytes) {
  const std::string script =
      session_script({{"A", "it's\ntwo lines"}, {"B", "$(touch /tmp/never) `x`"}}, "/usr");

  EXPECT_EQ(run("SSH_ORIGINAL_COMMAND='echo \"$A\"; echo \"$B\"; pwd'", script),
            "it's\ntwo lines\n$(touch /tmp/never) `x`\n/usr\n");
}

TEST(SessionScript, LeavesOutVariablesAtWhichAShellWouldEnd) {
  const std::string script = session_script({{"FOO.BAR", "1"},
                                             {"1ST", "1"},
                                             {"", "1"},
                                             {"A", "a"},
                                             {"UID", "5"},
                                             {"EUID", "5"},
                                             {"PPID", "5"},
                                             {"BASHOPTS", "x"},
                                             {"SHELLOPTS", "x"},
                                             {"BASH_VERSINFO", "5"},
                                             {"OPTIND", "x y"},
                                             {"HISTCMD", "x y"}},
                                            "/usr");

  EXPECT_EQ(script.find("export "), script.rfind("export ")) << script;
  EXPECT_EQ(run("SSH_ORIGINAL_COMMAND='echo \"$A\"; pwd'", script), "a\n/usr\n");
}

TEST(SessionScript, MarksTheTaskAsReached) {
  std::string pattern = testing::TempDir() + "sessionXXXXXX";
  const std::string folder = ::mkdtemp(pattern.data());
  EXPECT_EQ(run("mkdir " + folder + "/ranks; SSH_ORIGINAL_COMMAND='cd " + folder +
                    "; ls ranks; cat ranks/-1'",
                session_script({{"MUSTER_GENERATED", folder}}, "/usr")),
            "-1\n1\n");
  EXPECT_EQ(run("rm -r " + folder + ";", "true"), "");
}

TEST(SessionScript, DoesNotRunTheCommandIfItsFolderIsMissing) {
  EXPECT_EQ(
      run("SSH_ORIGINAL_COMMAND='echo ran'", "exec 2>/dev/null\n" + session_script({}, "/no/such")),
      "");
}

TEST(RankScript, UsesTheDevicesOfItsOwnTaskNotTheLaunchers) {
  std::string pattern = testing::TempDir() + "rankXXXXXX";
  const std::string folder = ::mkdtemp(pattern.data());
  EXPECT_EQ(run("mkdir " + folder + "/ranks; echo " +
                    base::shell_quoted(export_lines({{"CUDA_VISIBLE_DEVICES", "2"}})) + " > " +
                    folder + "/devices; CUDA_VISIBLE_DEVICES=0,1 OMPI_COMM_WORLD_RANK=0 " +
                    "OMPI_COMM_WORLD_SIZE=1 MUSTER_GENERATED=" + folder,
                "set -- sh -c 'echo $CUDA_VISIBLE_DEVICES'\n" + rank_script()),
            "2\n");
  EXPECT_EQ(run("rm -r " + folder + ";", "true"), "");
}

TEST(RankScript, CreatesAFileForItsRankAndRunsTheProgram) {
  std::string pattern = testing::TempDir() + "rankXXXXXX";
  const std::string folder = ::mkdtemp(pattern.data());
  EXPECT_EQ(run("mkdir " + folder + "/ranks; cd " + folder +
                    "; OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 MUSTER_GENERATED=" + folder,
                "set -- sh -c 'echo $MUSTER_RANK of $MUSTER_WORLD_SIZE; cat ranks/*; ls ranks'\n" +
                    rank_script()),
            "3 of 4\n4\n3\n");
  EXPECT_EQ(run("rm -r " + folder + ";", "true"), "");
}

}  // namespace
namespace {

const PlannedFile* file_of(const TaskPlan& plan, const std::string& path) {
  const auto found = std::find_if(plan.files.begin(), plan.files.end(),
                                  [&](const PlannedFile& file) { return file.path == path; });
  return found == plan.files.end() ? nullptr : &*found;
}

TEST(ShellFiles, ExistInEveryTask) {
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

TEST(ShellFiles, CallMustersRemoteShellRshIfTasksAnswerIt) {
  TaskPlan plan;

  add_shell_files({.remote_shell = "/a b/muster-rsh"}, "/generated", plan);

  ASSERT_NE(file_of(plan, "bin/rsh"), nullptr);
  EXPECT_EQ(file_of(plan, "bin/rsh")->content, "#!/bin/sh\nexec '/a b/muster-rsh' \"$@\"\n");
  EXPECT_EQ(file_of(plan, "bin/ssh"), nullptr);
}

}  // namespace
}  // namespace muster::launch
