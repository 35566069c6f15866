// The commands of Gradient's own pages, pasted into a shell as printed there.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "dialects/gradient/test_experiment.h"

namespace muster::dialects::gradient {

namespace {

using Kind = job::Volume::Kind;

constexpr std::string_view kImage = "horovod/horovod:0.18.1-tf1.14.0-torch1.2.0-mxnet1.5.0-py3.6";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

/// The command on a page, as stored in tests/documents.
std::string printed_in(const std::string& page) {
  std::ifstream file(std::filesystem::path(MUSTER_SOURCE) / "tests/documents" / page);
  std::ostringstream read;
  read << file.rdbuf();
  const std::string text = read.str();
  const size_t begin = text.find("gradient experiments create multinode");
  EXPECT_NE(begin, std::string::npos) << page;
  if (begin == std::string::npos) return "";
  const size_t end = std::min(text.find("\n```", begin), text.find("\n\n", begin));
  return text.substr(begin, end - begin) + "\n";
}

const std::string kMpi = printed_in("gradient-mpi.md");
const std::string kVpc = printed_in("gradient-mpi-aws-vpc.md");
const std::string kHorovod = printed_in("gradient-horovod.md");

// Multi-node training with gRPC.
constexpr const char* kGrpc =
    R"(gradient experiments run multinode \
  --name mnist \
  --projectId pr64wlx9c \
  --experimentEnv '{"EPOCHS_EVAL":5,"TRAIN_EPOCHS":10,"MAX_STEPS":1000,"EVAL_SECS":10}' \
  --experimentType GRPC \
  --workerContainer tensorflow/tensorflow:1.13.1-gpu-py3 \
  --workerMachineType K80 \
  --workerCommand 'pip install -r requirements.txt && python mnist.py' \
  --workerCount 2 \
  --parameterServerContainer tensorflow/tensorflow:1.13.1-gpu-py3 \
  --parameterServerMachineType K80 \
  --parameterServerCommand 'pip install -r requirements.txt && python mnist.py' \
  --parameterServerCount 1 \
  --workspace https://github.com/Paperspace/mnist-sample.git)";

std::string mended(const std::string& text) {
  std::string_view line = "--experimentType MPI\n";
  if (text.find(line) == std::string::npos) line = "--experimentType MPI \n";
  return replaced(text, line, "--experimentType MPI \\\n");
}

/// The volumes that every experiment has.
std::vector<job::Volume> usual_volumes() {
  return {{.kind = Kind::kTree, .source = "", .target = "/home/paperspace"},
          {.kind = Kind::kStorage, .source = "storage", .target = "/storage"},
          {.kind = Kind::kArtifacts, .source = "", .target = "/artifacts"}};
}

job::JobSpec mpi_spec(const std::string& name, const Words& command) {
  job::JobSpec spec{.name = name,
                    .kind = job::Kind::kMpi,
                    .image = std::string(kImage),
                    .container = {.writable_root = true},
                    .command = command,
                    .workers = 2,
                    .slots_per_worker = 1,
                    .resources = {.gpus = 1},
                    .leader = {.image = std::string(kImage), .resources = {.gpus = 1}},
                    .leader_slots = 1,
                    .volumes = usual_volumes(),
                    .held = true};
  spec.environment = {{"HOME", "/home/paperspace"}};
  spec.folder = "/home/paperspace";
  return spec;
}

TEST(GradientDocuments, AllMissingOptionsOfTheCommandWithoutItsBackslashAreReported) {
  for (const std::string& text : {kMpi, kVpc}) {
    const Words words = pasted(text);
    ASSERT_EQ(words.back(), "MPI");

    const ReadExperiment result = read(words);

    EXPECT_EQ(result.fault_text(),
              "--workerContainer: is missing\n--workerMachineType: is missing\n"
              "--workerCount: is missing\n--masterContainer: is missing\n"
              "--masterMachineType: is missing\n--masterCommand: is missing\n"
              "--masterCount: is missing\n");
    EXPECT_EQ(result.experiment.missing, 7);
  }
}

TEST(GradientDocuments, TheMpiPageWithItsBackslashIsAccepted) {
  const Experiment experiment = accepted(pasted(mended(kMpi)));

  job::JobSpec expected = mpi_spec("mpi-test", {"mpirun",     "--allow-run-as-root",
                                                "-np",        "1",
                                                "--hostfile", "/generated/hostfile",
                                                "-bind-to",   "none",
                                                "-map-by",    "slot",
                                                "-x",         "NCCL_DEBUG=INFO",
                                                "-mca",       "pml",
                                                "ob1",        "-mca",
                                                "btl",        "^openib",
                                                "python",     "examples/keras_mnist.py"});
  expected.annotations = experiment.spec.annotations;
  EXPECT_EQ(experiment.spec, expected);
  EXPECT_EQ(experiment.spec.annotations,
            (std::map<std::string, std::string>{
                {"gradient/experimentType", "MPI"},
                {"gradient/masterCommand",
                 "mpirun --allow-run-as-root -np 1 --hostfile /generated/hostfile  -bind-to none "
                 "-map-by slot  -x NCCL_DEBUG=INFO -mca pml ob1 -mca btl ^openib python "
                 "examples/keras_mnist.py"},
                {"gradient/masterContainer", std::string(kImage)},
                {"gradient/masterCount", "1"},
                {"gradient/masterMachineType", "p2.xlarge"},
                {"gradient/name", "mpi-test"},
                {"gradient/workerCommand", "sleep infinity"},
                {"gradient/workerContainer", std::string(kImage)},
                {"gradient/workerCount", "2"},
                {"gradient/workerMachineType", "p2.xlarge"},
                {"gradient/workspace", "https://github.com/horovod/horovod.git"}}));
  EXPECT_EQ(experiment.api_key, "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXX");
  EXPECT_EQ(experiment.notes, Words{"--vpc has no effect"});
  ASSERT_TRUE(experiment.workspace);
  EXPECT_EQ(experiment.workspace->source.where, "https://github.com/horovod/horovod.git");
  EXPECT_FALSE(experiment.starts);
}

TEST(GradientDocuments, TheVpcPageEndsWithAFlagWithoutItsValue) {
  const ReadExperiment result = read(pasted(mended(kVpc)));

  EXPECT_EQ(result.fault_text(), "--workspaceUrl: needs a value\n");
}

TEST(GradientDocuments, TheVpcPageWithItsValueIsAccepted) {
  const Experiment experiment = accepted(
      pasted(replaced(mended(kVpc), "--workspaceUrl \\", "--workspaceUrl https://h/r.git")));

  EXPECT_EQ(experiment.spec.command.back(), "examples/");
  ASSERT_TRUE(experiment.workspace);
  EXPECT_EQ(experiment.workspace->source.where, "https://h/r.git");
  EXPECT_EQ(experiment.spec.annotations.at("gradient/workspace"), "https://h/r.git");
}

TEST(GradientDocuments, TheHorovodPageIsAccepted) {
  const Experiment experiment = accepted(pasted(kHorovod));

  job::JobSpec expected = mpi_spec(
      "distributed-horovod",
      {"mpirun", "--allow-run-as-root", "--hostfile", "/generated/hostfile", "-bind-to", "none",
       "-map-by", "slot", "-mca", "pml", "ob1", "-mca", "btl", "^openib", "python", "main.py"});
  expected.project = "xxxxxxx";
  expected.annotations = experiment.spec.annotations;
  EXPECT_EQ(experiment.spec, expected);
  ASSERT_TRUE(experiment.workspace);
  EXPECT_EQ(experiment.workspace->source.where,
            "https://github.com/Paperspace/horovod-distributed-example.git");
  EXPECT_EQ(
      experiment.notes,
      Words{"--clusterId has no effect: the current server decides where the experiment runs"});
}

TEST(GradientDocuments, TheGrpcPageIsAccepted) {
  const Experiment experiment = accepted(pasted(kGrpc));

  const Words command{"sh", "-c", "pip install -r requirements.txt && python mnist.py"};
  job::JobSpec expected{.name = "mnist",
                        .project = "pr64wlx9c",
                        .kind = job::Kind::kGrpc,
                        .image = "tensorflow/tensorflow:1.13.1-gpu-py3",
                        .container = {.writable_root = true},
                        .command = command,
                        .workers = 1,
                        .resources = {.gpus = 1},
                        .leader = {.resources = {.gpus = 1}},
                        .parameter_servers = 1,
                        .parameter_server = {.image = "tensorflow/tensorflow:1.13.1-gpu-py3",
                                             .command = command,
                                             .resources = {.gpus = 1}},
                        .volumes = usual_volumes(),
                        .annotations = experiment.spec.annotations};
  expected.environment = {{"EPOCHS_EVAL", "5"},
                          {"TRAIN_EPOCHS", "10"},
                          {"MAX_STEPS", "1000"},
                          {"EVAL_SECS", "10"},
                          {"HOME", "/home/paperspace"}};
  expected.folder = "/home/paperspace";
  EXPECT_EQ(experiment.spec, expected);
  EXPECT_TRUE(experiment.starts);
  EXPECT_TRUE(experiment.follows);
}

}  // namespace

}  // namespace muster::dialects::gradient
