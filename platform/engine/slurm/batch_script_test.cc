#include "engine/slurm/batch_script.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/test_faults.h"
#include "engine/slurm/slurm_environment.h"

namespace muster::engine::slurm {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

Submission small() {
  Submission submission;
  submission.name = "digits";
  submission.comment = "muster:0123456789abcdef:job-1:1";
  submission.script = "#!/bin/sh\nexec true\n";
  submission.components = {{.tasks = 2, .gpu_type = {}}};
  return submission;
}

std::string text_of(const Submission& submission) {
  const auto script = batch_script(submission);
  EXPECT_TRUE(script) << script.error().to_string();
  return script ? *script : std::string();
}

bool has_line(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

TEST(BatchScript, OptionsStandBetweenTheFirstLineAndTheRest) {
  EXPECT_EQ(text_of(small()),
            "#!/bin/sh\n"
            "#SBATCH --chdir=\"/\"\n"
            "#SBATCH --output=\"/dev/null\"\n"
            "#SBATCH --open-mode=append\n"
            "#SBATCH --export=ALL\n"
            "#SBATCH --job-name=\"digits\"\n"
            "#SBATCH --comment=\"muster:0123456789abcdef:job-1:1\"\n"
            "#SBATCH --requeue\n"
            "#SBATCH --nodes=2\n"
            "#SBATCH --ntasks=2\n"
            "#SBATCH --ntasks-per-node=1\n"
            "exec true\n");
}

TEST(BatchScript, SaysAllThatIsAskedFor) {
  Submission submission = small();
  submission.partition = "gpu,long";
  submission.account = "team";
  submission.qos = "high";
  submission.reservation = "course";
  submission.constraint = "a100&nvlink";
  submission.excluded_nodes = {"n1", "n7"};
  submission.time_limit = 90min;
  submission.options = {"--nice=100"};
  submission.folder = "/srv/jobs";
  submission.output = "/srv/50%/slurm.out";
  submission.components = {{.tasks = 3,
                            .tasks_per_node = 2,
                            .cpus_per_task = 4,
                            .memory_bytes_per_node = (int64_t{1} << 30) + 1,
                            .gpus_per_node = 8,
                            .gpu_type = "a100"}};
  const std::string text = text_of(submission);
  for (const char* line :
       {"#SBATCH --partition=\"gpu,long\"", "#SBATCH --account=\"team\"", "#SBATCH --qos=\"high\"",
        "#SBATCH --reservation=\"course\"", "#SBATCH --constraint=\"a100&nvlink\"",
        "#SBATCH --exclude=\"n1,n7\"", "#SBATCH --time=90", "#SBATCH --nice=100",
        "#SBATCH --chdir=\"/srv/jobs\"", "#SBATCH --output=\"/srv/50%%/slurm.out\"",
        "#SBATCH --nodes=2", "#SBATCH --ntasks=3", "#SBATCH --ntasks-per-node=2",
        "#SBATCH --cpus-per-task=4", "#SBATCH --mem=1025M", "#SBATCH --gpus-per-node=\"a100:8\""}) {
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
  }
}

TEST(BatchScript, FewerNodesWillDoForAnElasticJob) {
  Submission submission = small();
  submission.components = {{.tasks = 8, .least_tasks = 3, .tasks_per_node = 2, .gpu_type = {}}};
  const std::string text = text_of(submission);
  EXPECT_TRUE(has_line(text, "#SBATCH --nodes=2-4")) << text;
  EXPECT_EQ(text.find("--ntasks="), std::string::npos) << text;
}

TEST(BatchScript, EachPartOfAHeterogeneousJobSaysWhereAgain) {
  Submission submission = small();
  submission.partition = "gpu";
  submission.components = {{.tasks = 1, .gpu_type = {}},
                           {.tasks = 2, .gpus_per_node = 4, .gpu_type = {}}};
  const std::string text = text_of(submission);
  const size_t parting = text.find("#SBATCH hetjob\n");
  ASSERT_NE(parting, std::string::npos) << text;
  const std::string leader = text.substr(0, parting);
  const std::string other = text.substr(parting);
  for (const std::string& part : {leader, other}) {
    EXPECT_TRUE(has_line(part, "#SBATCH --partition=\"gpu\"")) << part;
  }
  EXPECT_EQ(leader.find("--gpus-per-node"), std::string::npos);
  EXPECT_TRUE(has_line(other, "#SBATCH --gpus-per-node=\"4\""));
  EXPECT_EQ(other.find("--output"), std::string::npos);
}

TEST(BatchScript, AValueBecomesNeitherAnOptionNorTwo) {
  Submission submission = small();
  submission.name = R"(a" --uid=0 \" 'b' #c $HOME)";
  EXPECT_TRUE(
      has_line(text_of(submission), R"(#SBATCH --job-name="a\" --uid=0 \\\" 'b' #c $HOME")"));
}

TEST(BatchScript, AValueThatWouldBecomeALineIsRefused) {
  Submission submission = small();
  submission.name = "a\n#SBATCH --uid=0";
  submission.comment = "b\rc";
  submission.partition = "p\nq";
  submission.excluded_nodes = {"n1", "n2\n"};
  submission.options = {"rm -rf", "--nice=1\nrm"};
  submission.components.front().gpu_type = "a\tb";
  submission.folder = "/a\n";
  submission.output = "/a\\b";
  submission.environment = {{"A B", "x"}, {"C", std::string("\0", 1)}};
  submission.script = "exec true\n";
  EXPECT_EQ(base::faults_of(batch_script(submission)),
            (Texts{"name holds a line break or another control character",
                   "comment holds a line break or another control character",
                   "partition holds a line break or another control character",
                   "excluded_nodes holds a line break or another control character",
                   "options 'rm -rf' does not begin as an option of sbatch does",
                   "options holds a line break or another control character",
                   "components[0].gpu_type holds a line break or another control character",
                   "script does not begin with a line as #!/bin/sh is",
                   "folder holds a line break or another control character",
                   "output holds a backslash, which Slurm does not take in such a path",
                   "environment 'A B' is no name of a variable", "environment C holds a NUL"}));
}

TEST(BatchScript, SizesThatAreNoneAreRefused) {
  Submission submission = small();
  submission.components = {{.tasks = 0, .tasks_per_node = 0, .cpus_per_task = -1, .gpu_type = {}},
                           {.tasks = 1, .least_tasks = 2, .gpu_type = {}}};
  EXPECT_EQ(base::faults_of(batch_script(submission)),
            (Texts{"components[0].tasks is 0, and is at least 1",
                   "components[0].tasks_per_node is 0, and is at least 1",
                   "components[0].cpus_per_task is -1, and is at least 0",
                   "components[1].least_tasks is not between 0 and the number of tasks"}));
  submission.components.clear();
  EXPECT_EQ(base::faults_of(batch_script(submission)), Texts{"components are none"});
}

const Texts kOwn{
    "PATH=/bin",      "TZ=Europe/Berlin",           "SLURM_CONF=/etc/s.conf", "SLURM_JWT=token",
    "SLURM_JOB_ID=4", "SBATCH_PARTITION=x",         "SQUEUE_FORMAT=%i",       "SLURM_CLUSTERS=b",
    "SINFO_ALL=1",    "SLURM_TIME_FORMAT=relative", "LC_ALL=de_DE.UTF-8",     "SECRET=s"};

TEST(EnvironmentForAsking, KeepsWhereTheClusterIsAndDropsWhatChangesAnswers) {
  EXPECT_EQ(environment_for_asking(kOwn),
            (Texts{"PATH=/bin", "SLURM_CONF=/etc/s.conf", "SLURM_JWT=token", "SECRET=s", "TZ=UTC0",
                   "LC_ALL=C", "SLURM_TIME_FORMAT=%Y-%m-%dT%H:%M:%S"}));
}

TEST(EnvironmentForSubmitting, AScriptHasNothingOfTheServersButWhereTheClusterIs) {
  EXPECT_EQ(environment_for_submitting(kOwn, {{"HOME", "/home/a"}, {"PATH", "/usr/bin"}}),
            (Texts{"HOME=/home/a", "PATH=/usr/bin", "SLURM_CONF=/etc/s.conf", "SLURM_JWT=token"}));
}

}  // namespace
}  // namespace muster::engine::slurm
