#include "engine/slurm/submission.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/test_faults.h"
#include "base/test_folder.h"
#include "engine/slurm/slurm_programs.h"
#include "job/validate.h"

namespace muster::engine::slurm {
namespace {

constexpr int64_t kGiga = int64_t{1} << 30;

TaskRequest task(const std::string& name, job::Resources needs = {}) {
  return {.task = name, .resources = needs};
}

AllocationRequest request_for(std::vector<TaskRequest> tasks) {
  return {.job = "train", .project = "vision", .tasks = std::move(tasks)};
}

std::vector<std::pair<int, int>> places(const AllocationRequest& request) {
  std::vector<std::pair<int, int>> found;
  for (const Seat& seat : seats_for(request)) found.emplace_back(seat.component, seat.index);
  return found;
}

using Places = std::vector<std::pair<int, int>>;

TEST(Seats, TasksWithEqualResourcesAreOneComponent) {
  EXPECT_EQ(places(request_for({task("a"), task("b")})), (Places{{0, 0}, {0, 1}}));
}

TEST(Seats, ALauncherWithItsOwnResourcesIsTheFirstComponent) {
  const job::Resources launcher{.cpu_milli = 500};
  const job::Resources worker{.gpus = 4};
  EXPECT_EQ(
      places(request_for({task("launcher", launcher), task("w0", worker), task("w1", worker)})),
      (Places{{0, 0}, {1, 0}, {1, 1}}));
}

TEST(Seats, ATaskWithoutClaimsBesideOthersIsAGuest) {
  const job::Resources worker{.gpus = 4};
  const AllocationRequest gang =
      request_for({task("launcher"), task("w0", worker), task("w1", worker)});

  EXPECT_EQ(places(gang), (Places{{1, 0}, {0, 0}, {0, 1}}));
  EXPECT_EQ(guests_of(gang), 1);
  EXPECT_EQ(submission_for(gang, {})->components.size(), 1U);
}

TEST(Seats, ALauncherWithoutRanksIsAGuestEvenWithoutClaims) {
  AllocationRequest gang = request_for({task("launcher"), task("w0"), task("w1")});
  gang.tasks.front().only_launches = true;

  EXPECT_EQ(places(gang), (Places{{1, 0}, {0, 0}, {0, 1}}));
  EXPECT_EQ(submission_for(gang, {})->components.front().tasks, 2);
}

TEST(Seats, ALoneLauncherIsNoGuest) {
  AllocationRequest gang = request_for({task("launcher")});
  gang.tasks.front().only_launches = true;

  EXPECT_EQ(guests_of(gang), 0);
}

TEST(Seats, ALauncherThatOnlyLaunchesIsAGuestEvenWithoutClaims) {
  AllocationRequest gang = request_for({task("launcher"), task("w0"), task("w1")});
  gang.tasks[0].only_launches = true;
  EXPECT_EQ(places(gang), (Places{{1, 0}, {0, 0}, {0, 1}}));
}

TEST(Submissions, ANodeIsRequestedWithTheResourcesOfItsTasks) {
  const job::Resources needs{.gpus = 2, .cpu_milli = 1'500, .memory_bytes = 4 * kGiga};
  SlurmEngineOptions options;
  options.tasks_per_node = 2;
  AllocationRequest gang = request_for({task("a", needs), task("b", needs), task("c", needs)});
  gang.gpu_models = {"a100"};

  const auto submission = submission_for(gang, options);

  ASSERT_TRUE(submission);
  EXPECT_EQ(submission->components, (std::vector<Component>{{.tasks = 3,
                                                             .tasks_per_node = 2,
                                                             .cpus_per_task = 2,
                                                             .memory_bytes_per_node = 8 * kGiga,
                                                             .gpus_per_node = 4,
                                                             .gpu_type = "a100"}}));
}

TEST(Submissions, ANodeIsNotRequestedForMissingTasks) {
  SlurmEngineOptions options;
  options.tasks_per_node = 8;
  const auto submission = submission_for(request_for({task("a", {.gpus = 1})}), options);
  EXPECT_EQ(submission->components[0].tasks_per_node, 1);
  EXPECT_EQ(submission->components[0].gpus_per_node, 1);
}

TEST(Submissions, AnElasticGangNamesItsMinimum) {
  AllocationRequest gang = request_for({task("a"), task("b"), task("c")});
  gang.tasks[2].may_be_missing = true;
  EXPECT_EQ(submission_for(gang, {})->components[0].least_tasks, 2);
}

struct AccountCase {
  const char* project;
  const char* of_job;
  const char* expected;
};

TEST(Submissions, TheAccountComesFromTheJobTheProjectOrTheDefault) {
  SlurmEngineOptions options;
  options.accounts = {{"vision", "v42"}};
  options.default_account = "muster-%p-x";
  for (const AccountCase& each :
       {AccountCase{"vision", "", "v42"}, AccountCase{"vision", "own", "own"},
        AccountCase{"audio", "", "muster-audio-x"}}) {
    AllocationRequest gang = request_for({task("a")});
    gang.project = each.project;
    gang.slurm.account = each.of_job;
    EXPECT_EQ(submission_for(gang, options)->account, each.expected) << each.project;
  }
}

TEST(Submissions, SlurmSettingsOfTheJobTakePrecedence) {
  SlurmEngineOptions options;
  options.qos = "normal";
  AllocationRequest gang = request_for({task("a")});
  gang.node_pools = {"main", "long"};
  gang.avoided_nodes = {"n3"};
  auto submission = submission_for(gang, options);
  EXPECT_EQ(submission->partition, "main,long");
  EXPECT_EQ(submission->qos, "normal");
  EXPECT_EQ(submission->excluded_nodes, std::vector<std::string>{"n3"});

  gang.slurm.partition = "gpu";
  gang.slurm.qos = "high";
  submission = submission_for(gang, options);
  EXPECT_EQ(submission->partition, "gpu");
  EXPECT_EQ(submission->qos, "high");
}

TEST(Submissions, TheTimeLimitIncludesTheGraceAndSlurmsOwnWork) {
  AllocationRequest gang = request_for({task("a")});
  EXPECT_FALSE(submission_for(gang, {})->time_limit);
  gang.time_limit = std::chrono::minutes(10);
  gang.grace = std::chrono::seconds(30);
  EXPECT_EQ(submission_for(gang, {})->time_limit, std::chrono::minutes(12));
}

TEST(Submissions, ReportsAllImpossibleRequestsAtOnce) {
  AllocationRequest gang =
      request_for({task("a", {.gpu_share_milli = 500}), task("b", {.gpu_memory_bytes = kGiga}),
                   task("c", {.gpus = 1})});
  gang.gpu_models = {"a100", "h100"};

  const auto submission = submission_for(gang, {});

  ASSERT_FALSE(submission);
  EXPECT_EQ(submission.error().code, base::ErrorCode::kRefused);
  EXPECT_EQ(submission.error().faults.size(), 3U);
}

// A name that is a list, a number or an option is rejected.
TEST(Submissions, APoolAndAModelOfGpusAreOneNameEach) {
  for (const std::string& bad :
       {std::string("a,b"), std::string("a100:8"), std::string("a b"), std::string("-p"),
        std::string("a\n#SBATCH --uid=0"), std::string("a\"b"), std::string("a\\b"),
        std::string("a(b)"), std::string("a;b"), std::string("$(id)")}) {
    AllocationRequest gang = request_for({task("a", {.gpus = 1})});
    gang.node_pools = {"main", bad};
    gang.gpu_models = {bad};

    const auto submission = submission_for(gang, {});

    ASSERT_FALSE(submission) << bad;
    ASSERT_EQ(submission.error().faults.size(), 2U) << bad;
    EXPECT_EQ(submission.error().faults[0].field, "node pools");
    EXPECT_EQ(submission.error().faults[1].field, "gpu models");
  }
}

// The submission contains the name and the project unchanged, because they were validated before.
TEST(Submissions, RejectsNamesWithSpecialCharacters) {
  for (const char* bad : {"a b", "a\n#SBATCH --uid=0", "a\"b", "-p", "a,b", "%p", "$(id)", "a;b"}) {
    job::JobSpec spec{.name = bad, .project = bad, .command = {"true"}, .folder = "/"};
    std::vector<std::string> fields;
    for (const base::Fault& fault : job::validate(spec)) fields.push_back(fault.field);
    EXPECT_EQ(fields, (std::vector<std::string>{"name", "project"})) << bad;
  }
}

TEST(Submissions, TheShapeIdentifiesTheRequest) {
  AllocationRequest gang = request_for({task("a")});
  const std::string shape = shape_of(*submission_for(gang, {}));
  EXPECT_EQ(shape_of(*submission_for(gang, {})), shape);
  gang.avoided_nodes = {"n1"};
  EXPECT_NE(shape_of(*submission_for(gang, {})), shape);
}

TEST(Comments, IdentifyTheirOwner) {
  const std::string comment = comment_for("0123456789abcdef", {"job1", 3});
  EXPECT_EQ(comment, "muster:0123456789abcdef:job1:3");
  EXPECT_TRUE(is_comment_of("0123456789abcdef", comment));
  EXPECT_FALSE(is_comment_of("0123456789abcde", comment));
  EXPECT_FALSE(is_comment_of("fedcba9876543210", comment));
}

}  // namespace

// A real shell runs the script, with an srun that records its calls.
namespace {

node::NodeBrief some_brief() {
  node::NodeBrief brief{.caller = {{"job1", 2}},
                        .hosts = {"head", "10.0.0.1"},
                        .port = 4711,
                        .sharing = node::Sharing::kAuto,
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
    // The fake srun records its arguments, runs the program, and exits with its code.
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

TEST_F(NodeScript, GivesTheBriefOnlyToTheMusterNodesOfEachStep) {
  make_node("");
  EXPECT_EQ(
      run({{.tasks = 1, .gpu_type = {}}, {.tasks = 3, .cpus_per_task = 2, .gpu_type = {}}}, 2), 0);

  const auto inputs = all("input");
  ASSERT_EQ(inputs.size(), 3U);
  for (const std::string& input : inputs) {
    const auto brief = node::decode_node_brief(input);
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

TEST_F(NodeScript, NamesTheNodeWithoutMusterNode) {
  EXPECT_EQ(run({{.tasks = 1, .gpu_type = {}}}, 0, folder_.path().string()), 127);

  const auto output = base::read_file(folder_ / kScriptOutput);
  ASSERT_TRUE(output);
  EXPECT_NE(output->find(folder_.path().string() + "/muster-node is not on "), std::string::npos)
      << *output;
}

TEST_F(NodeScript, AnElasticComponentRunsOnTheAllocatedNodes) {
  const std::string script =
      node_script(some_brief(), {{.tasks = 4, .least_tasks = 2, .gpu_type = {}}}, 0, "/opt", "");
  EXPECT_EQ(script.find("--ntasks=4"), std::string::npos);
}

TEST(ScriptEnvironment, ContainsOnlyVariablesForSlurmsPrograms) {
  const auto environment =
      script_environment({"HOME=/root", "SLURM_CONF=/etc/x.conf", "AWS_SECRET_ACCESS_KEY=abc"});
  EXPECT_EQ(environment,
            (std::map<std::string, std::string>{{"HOME", "/root"},
                                                {"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                                {"SLURM_CONF", "/etc/x.conf"}}));
}

}  // namespace
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

TEST(BatchScript, OptionsFollowTheFirstLine) {
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

TEST(BatchScript, ContainsTheWholeRequest) {
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

TEST(BatchScript, AnElasticJobRequestsARangeOfNodes) {
  Submission submission = small();
  submission.components = {{.tasks = 8, .least_tasks = 3, .tasks_per_node = 2, .gpu_type = {}}};
  const std::string text = text_of(submission);
  EXPECT_TRUE(has_line(text, "#SBATCH --nodes=2-4")) << text;
  EXPECT_EQ(text.find("--ntasks="), std::string::npos) << text;
}

TEST(BatchScript, EachPartOfAHeterogeneousJobRepeatsThePlace) {
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

TEST(BatchScript, AValueCannotBecomeAnOption) {
  Submission submission = small();
  submission.name = R"(a" --uid=0 \" 'b' #c $HOME)";
  EXPECT_TRUE(
      has_line(text_of(submission), R"(#SBATCH --job-name="a\" --uid=0 \\\" 'b' #c $HOME")"));
}

TEST(BatchScript, RefusesAValueWithALineBreak) {
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
            (Texts{"name contains a line break or another control character",
                   "comment contains a line break or another control character",
                   "partition contains a line break or another control character",
                   "excluded_nodes contains a line break or another control character",
                   "options 'rm -rf' is not an option of sbatch: it does not begin with '-'",
                   "options contains a line break or another control character",
                   "components[0].gpu_type contains a line break or another control character",
                   "script does not begin with a line such as #!/bin/sh",
                   "folder contains a line break or another control character",
                   "output contains a backslash, which Slurm does not accept in such a path",
                   "environment 'A B' is not the name of a variable",
                   "environment C contains a NUL byte"}));
}

TEST(BatchScript, RefusesInvalidSizes) {
  Submission submission = small();
  submission.components = {{.tasks = 0, .tasks_per_node = 0, .cpus_per_task = -1, .gpu_type = {}},
                           {.tasks = 1, .least_tasks = 2, .gpu_type = {}}};
  EXPECT_EQ(base::faults_of(batch_script(submission)),
            (Texts{"components[0].tasks is 0, and is at least 1",
                   "components[0].tasks_per_node is 0, and is at least 1",
                   "components[0].cpus_per_task is -1, and is at least 0",
                   "components[1].least_tasks is not between 0 and the number of tasks"}));
  submission.components.clear();
  EXPECT_EQ(base::faults_of(batch_script(submission)), Texts{"components are missing"});
}

const Texts kOwn{
    "PATH=/bin",      "TZ=Europe/Berlin",           "SLURM_CONF=/etc/s.conf", "SLURM_JWT=token",
    "SLURM_JOB_ID=4", "SBATCH_PARTITION=x",         "SQUEUE_FORMAT=%i",       "SLURM_CLUSTERS=b",
    "SINFO_ALL=1",    "SLURM_TIME_FORMAT=relative", "LC_ALL=de_DE.UTF-8",     "SECRET=s"};

TEST(EnvironmentForAsking, KeepsTheClusterAndDropsVariablesThatChangeTheOutput) {
  EXPECT_EQ(environment_for_asking(kOwn),
            (Texts{"PATH=/bin", "SLURM_CONF=/etc/s.conf", "SLURM_JWT=token", "SECRET=s", "TZ=UTC0",
                   "LC_ALL=C", "SLURM_TIME_FORMAT=%Y-%m-%dT%H:%M:%S"}));
}

TEST(EnvironmentForSubmitting, AScriptGetsOnlyItsOwnVariablesAndTheCluster) {
  EXPECT_EQ(environment_for_submitting(kOwn, {{"HOME", "/home/a"}, {"PATH", "/usr/bin"}}),
            (Texts{"HOME=/home/a", "PATH=/usr/bin", "SLURM_CONF=/etc/s.conf", "SLURM_JWT=token"}));
}

}  // namespace
}  // namespace muster::engine::slurm
