#include "launch/scripts.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

#include "base/text.h"

namespace muster::launch {
namespace {

/// What a real shell prints when it runs `script` with `prelude` before it.
std::string run(const std::string& prelude, const std::string& script) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      ::popen((prelude + " sh -c " + base::shell_quoted(script)).c_str(), "r"), ::pclose);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), pipe.get()));
  return text;
}

TEST(SessionScript, GivesTheCommandItsEnvironmentAndFolderWhateverTheyHold) {
  const std::string script =
      session_script({{"A", "it's\ntwo lines"}, {"B", "$(touch /tmp/never) `x`"}}, "/usr");

  EXPECT_EQ(run("SSH_ORIGINAL_COMMAND='echo \"$A\"; echo \"$B\"; pwd'", script),
            "it's\ntwo lines\n$(touch /tmp/never) `x`\n/usr\n");
}

TEST(SessionScript, SignsTheTaskInAsReached) {
  std::string pattern = testing::TempDir() + "sessionXXXXXX";
  const std::string folder = ::mkdtemp(pattern.data());
  EXPECT_EQ(run("mkdir " + folder + "/ranks; SSH_ORIGINAL_COMMAND='cd " + folder +
                    "; ls ranks; cat ranks/-1'",
                session_script({{"MUSTER_GENERATED", folder}}, "/usr")),
            "-1\n1\n");
  EXPECT_EQ(run("rm -r " + folder + ";", "true"), "");
}

TEST(SessionScript, DoesNotRunTheCommandInAnotherFolderWhenItsOwnIsMissing) {
  EXPECT_EQ(
      run("SSH_ORIGINAL_COMMAND='echo ran'", "exec 2>/dev/null\n" + session_script({}, "/no/such")),
      "");
}

TEST(RankScript, SeesTheDevicesOfItsOwnTaskWhateverTheLauncherHandedOn) {
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

TEST(RankScript, LeavesAFileForItsRankAndRunsTheProgram) {
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
}  // namespace muster::launch
