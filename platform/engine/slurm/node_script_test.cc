// The script is run by a real shell, with an srun that a test looks at.
#include "engine/slurm/node_script.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/test_folder.h"

namespace muster::engine::slurm {
namespace {

NodeBrief some_brief() {
  NodeBrief brief{.caller = {{"job1", 2}},
                  .hosts = {"head", "10.0.0.1"},
                  .port = 4711,
                  .sharing = Sharing::kAuto,
                  .folder = "/shared/jobs",
                  .mark = ".shared-x",
                  .nonce = "abc",
                  .linger = std::chrono::seconds(5)};
  brief.key.fill(7);
  return brief;
}

class NodeScript : public testing::Test {
 protected:
  NodeScript() {
    // srun: notes its arguments, runs the program behind them, ends with its code.
    const std::string srun =
        "#!/bin/sh\nn=$(mktemp -d -p " + (folder_ / "steps").string() +
        ")\necho \"$*\" > $n/arguments\nwhile [ $# -gt 0 ] && [ \"$1\" != /bin/sh ]; do shift; "
        "done\nHERE=$n exec \"$@\"\n";
    std::filesystem::create_directories(folder_ / "steps");
    EXPECT_TRUE(base::write_file(folder_ / "srun", srun, 0755));
  }

  void make_node(const std::string& does) {
    EXPECT_TRUE(
        base::write_file(folder_ / "muster-node", "#!/bin/sh\ncat > $HERE/input\n" + does, 0755));
  }

  int run(const std::vector<Component>& components, int guests, const std::string& out = "") {
    const std::string script =
        node_script(some_brief(), components, guests, folder_.path().string(), out);
    EXPECT_TRUE(base::write_file(folder_ / "script", script, 0700));
    const auto child =
        base::spawn({.argv = {"/bin/sh", (folder_ / "script").string()},
                     .environment = {"PATH=" + folder_.path().string() + ":/usr/bin:/bin"}});
    EXPECT_TRUE(child);
    const auto status = base::wait_for(*child);
    return status ? WEXITSTATUS(*status) : -1;
  }

  std::vector<std::string> all(const std::string& name) const {
    std::vector<std::string> texts;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "steps")) {
      const auto text = base::read_file(entry.path() / name);
      texts.push_back(text ? *text : "");
    }
    std::sort(texts.begin(), texts.end());
    return texts;
  }

  base::TestFolder folder_;
};

TEST_F(NodeScript, GivesTheBriefToTheMusterNodesOfEveryStepAndToNobodyElse) {
  make_node("");
  EXPECT_EQ(
      run({{.tasks = 1, .gpu_type = {}}, {.tasks = 3, .cpus_per_task = 2, .gpu_type = {}}}, 2), 0);

  const auto inputs = all("input");
  ASSERT_EQ(inputs.size(), 3U);
  for (const std::string& input : inputs) {
    const auto brief = decode_node_brief(input);
    ASSERT_TRUE(brief) << input;
    EXPECT_EQ(*brief, some_brief());
  }
  std::string arguments;
  for (const std::string& step : all("arguments")) arguments += step;
  EXPECT_NE(arguments.find("--ntasks=1 --het-group=0"), std::string::npos) << arguments;
  EXPECT_NE(arguments.find("--ntasks=3 --cpus-per-task=2 --het-group=1"), std::string::npos);
  EXPECT_NE(arguments.find("--overlap --nodes=1 --relative=0 --ntasks=2"), std::string::npos);
  EXPECT_NE(arguments.find("--component 2"), std::string::npos);
  EXPECT_EQ(arguments.find("0707"), std::string::npos) << "the key is an argument";
}

TEST_F(NodeScript, EndsWithTheCodeOfTheStepThatFailed) {
  make_node("[ \"$2\" = 0 ] && exit 5; exit 0");
  EXPECT_EQ(run({{.tasks = 1, .gpu_type = {}}, {.tasks = 1, .gpu_type = {}}}, 0), 5);
}

TEST_F(NodeScript, SaysWhereWhatItRunsIsMissing) {
  EXPECT_EQ(run({{.tasks = 1, .gpu_type = {}}}, 0, folder_.path().string()), 127);

  const auto said = base::read_file(folder_ / kScriptOutput);
  ASSERT_TRUE(said);
  EXPECT_NE(said->find(folder_.path().string() + "/muster-node is not on "), std::string::npos)
      << *said;
}

TEST_F(NodeScript, AnElasticComponentRunsOnTheNodesThatCame) {
  const std::string script =
      node_script(some_brief(), {{.tasks = 4, .least_tasks = 2, .gpu_type = {}}}, 0, "/opt", "");
  EXPECT_EQ(script.find("--ntasks=4"), std::string::npos);
}

TEST(ScriptEnvironment, HasWhatProgramsOfSlurmNeedAndNothingElse) {
  const auto environment =
      script_environment({"HOME=/root", "SLURM_CONF=/etc/x.conf", "AWS_SECRET_ACCESS_KEY=abc"});
  EXPECT_EQ(environment,
            (std::map<std::string, std::string>{{"HOME", "/root"},
                                                {"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                                {"SLURM_CONF", "/etc/x.conf"}}));
}

}  // namespace
}  // namespace muster::engine::slurm
