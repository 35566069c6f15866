// Plans of other kinds than single tasks and plain MPI jobs; plan_test.cc has those.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/fake_random.h"
#include "launch/test_plan.h"

namespace muster::launch {
namespace {

using job::Job;
using job::Kind;
using job::Sandbox;
using job::TaskRole;
using job::Volume;

GangPlan plan_on_one_node(const job::JobSpec& spec, const job::ImageStandIns& images = {},
                          const std::string& programs = "") {
  Job job{.id = "j1", .spec = spec, .attempt = 1};
  job.tasks = job::tasks_of(spec);
  for (job::Task& task : job.tasks) task.node = "n1";
  base::FakeRandom random;
  auto plan =
      plan_gang(job, make_seed(random),
                {.user = "ada",
                 .programs = programs,
                 .generated_folder = [](std::string_view) { return std::string("/generated"); },
                 .images = images});
  EXPECT_TRUE(plan);
  return *std::move(plan);
}

/// The port in "host:port".
std::string port_in_list(const std::string& list, const std::string& host) {
  const size_t at = list.find("'" + host + ":");
  EXPECT_NE(at, std::string::npos) << host << " is not in " << list;
  const size_t port = at + host.size() + 2;
  return list.substr(port, list.find('\'', port) - port);
}

// --- TensorFlow clusters

job::JobSpec grpc_spec() {
  return {.name = "tf",
          .kind = Kind::kGrpc,
          .command = {"train"},
          .workers = 2,
          .parameter_servers = 1,
          .parameter_server = {.command = {"serve"}, .environment = {{"ONLY", "ps"}}},
          .folder = "/"};
}

TEST(PlanGrpc, StartsParameterServersThenWorkersThenTheChief) {
  const GangPlan plan = plan_on_one_node(grpc_spec());

  EXPECT_EQ(names(plan.first), (std::vector<std::string>{"ps-0", "worker-0", "worker-1"}));
  EXPECT_EQ(names(plan.then), std::vector<std::string>{"chief"});
}

TEST(PlanGrpc, EveryTaskRunsItsRolesCommandAndNeedsNoKeys) {
  const GangPlan plan = plan_on_one_node(grpc_spec());

  EXPECT_EQ(plan.first[0].argv, std::vector<std::string>{"serve"});
  EXPECT_EQ(plan.first[1].argv, std::vector<std::string>{"train"});
  EXPECT_EQ(plan.then[0].argv, std::vector<std::string>{"train"});
  EXPECT_EQ(plan.first[0].environment.at("ONLY"), "ps");
  EXPECT_FALSE(plan.then[0].environment.contains("ONLY"));
  for (const TaskPlan& task : plan.first) {
    EXPECT_FALSE(task.ssh);
    for (const PlannedFile& file : task.files) EXPECT_TRUE(file.path.starts_with("bash/"));
  }
}

TEST(PlanGrpc, GivesEachTaskItsPlaceInTheSameCluster) {
  const GangPlan plan = plan_on_one_node(grpc_spec());

  const auto& chief = plan.then[0].environment;
  for (const TaskPlan& task : plan.first) {
    EXPECT_EQ(task.environment.at("WORKER_HOSTS"), chief.at("WORKER_HOSTS"));
  }
  EXPECT_NE(chief.at("TF_CONFIG").find(R"("task":{"type":"chief","index":0})"), std::string::npos);
  EXPECT_NE(plan.first[2].environment.at("TF_CONFIG").find(R"("task":{"type":"worker","index":1})"),
            std::string::npos);
  EXPECT_EQ(plan.first[2].environment.at("INDEX"), "2");
  EXPECT_EQ(plan.first[0].environment.at("TYPE"), "ps");
}

TEST(PlanGrpc, GivesEveryTaskItsOwnPort) {
  const auto environment = plan_on_one_node(grpc_spec()).then[0].environment;

  const std::set<std::string> ports{port_in_list(environment.at("WORKER_HOSTS"), "tf-chief"),
                                    port_in_list(environment.at("WORKER_HOSTS"), "tf-worker-0"),
                                    port_in_list(environment.at("WORKER_HOSTS"), "tf-worker-1"),
                                    port_in_list(environment.at("PS_HOSTS"), "tf-ps-0")};
  EXPECT_EQ(ports.size(), 4U);
}

job::JobSpec with_evaluator() {
  job::JobSpec spec = grpc_spec();
  spec.evaluators = 1;
  spec.evaluator = {.command = {"evaluate"}};
  return spec;
}

TEST(PlanGrpc, StartsAnEvaluatorBeforeTheChief) {
  const GangPlan plan = plan_on_one_node(with_evaluator());

  EXPECT_EQ(names(plan.first),
            (std::vector<std::string>{"ps-0", "worker-0", "worker-1", "evaluator-0"}));
  EXPECT_EQ(plan.first[3].argv, std::vector<std::string>{"evaluate"});
}

TEST(PlanGrpc, AnEvaluatorDoesNotChangeTheCluster) {
  const TaskPlan with = plan_on_one_node(with_evaluator()).first[3];
  const TaskPlan chief = plan_on_one_node(grpc_spec()).then[0];

  const auto cluster = [](const TaskPlan& task) {
    const std::string& config = task.environment.at("TF_CONFIG");
    return config.substr(0, config.find(R"("task")"));
  };
  EXPECT_EQ(cluster(with), cluster(chief));
  EXPECT_TRUE(
      with.environment.at("TF_CONFIG").ends_with(R"("task":{"type":"evaluator","index":0}})"));
  EXPECT_EQ(with.environment.at("TYPE"), "evaluator");
  EXPECT_EQ(with.environment.at("PS_HOSTS"), chief.environment.at("PS_HOSTS"));
  EXPECT_EQ(with.serves, std::vector<ServedPort>());  // no task connects to it
}

TEST(PlanGrpc, UsesAddressesIfNamesAreNotResolved) {
  job::JobSpec spec = grpc_spec();
  spec.sandbox = Sandbox::kNone;
  const GangPlan plan = plan_on_one_node(spec);

  EXPECT_TRUE(plan.then[0].environment.at("MASTER").starts_with("['" + plan.then[0].address + ":"));
}

TEST(PlanGrpc, KeepsTheUsersOwnTensorFlowConfiguration) {
  job::JobSpec spec = grpc_spec();
  spec.environment["TF_CONFIG"] = "{}";

  EXPECT_EQ(plan_on_one_node(spec).then[0].environment.at("TF_CONFIG"), "{}");
}

// --- ports that programs bind

using Serves = std::vector<ServedPort>;

TEST(PlanServedPorts, AreThoseOfEveryTaskOfACluster) {
  const GangPlan plan = plan_on_one_node(grpc_spec());

  for (const TaskPlan& task : {plan.first[0], plan.first[1], plan.first[2], plan.then[0]}) {
    ASSERT_EQ(task.serves.size(), 1U) << task.task;
    EXPECT_EQ(task.serves[0].address, "") << task.task;
    EXPECT_NE(task.environment.at("TF_CONFIG")
                  .find(task.hostname + ":" + std::to_string(task.serves[0].port)),
              std::string::npos)
        << task.task;
  }
}

TEST(PlanServedPorts, OfATorchJobAreTheMastersStoreOnly) {
  const GangPlan plan = plan_on_one_node(
      {.name = "ddp", .kind = Kind::kTorch, .command = {"train"}, .workers = 1, .folder = "/"});

  ASSERT_EQ(plan.then[0].serves.size(), 1U);
  EXPECT_EQ(std::to_string(plan.then[0].serves[0].port),
            plan.then[0].environment.at("MASTER_PORT"));
  EXPECT_EQ(plan.first[0].serves, Serves());
}

TEST(PlanServedPorts, OfAnMpiJobAreThePortOfRankZero) {
  const GangPlan plan = plan_on_one_node({.name = "dist",
                                          .kind = Kind::kMpi,
                                          .command = {"mpirun"},
                                          .workers = 2,
                                          .leader_slots = 1,
                                          .folder = "/"});

  ASSERT_EQ(plan.first[0].serves.size(), 1U);
  const ServedPort& port = plan.first[0].serves[0];
  EXPECT_EQ(port.address + ":" + std::to_string(port.port),
            plan.then[0].environment.at("MUSTER_RENDEZVOUS"));
  EXPECT_EQ(plan.first[1].serves, Serves());
  EXPECT_EQ(plan.then[0].serves, Serves());
}

TEST(PlanServedPorts, OfASingleTaskAreEmpty) {
  EXPECT_EQ(plan_on_one_node({.name = "one", .command = {"true"}, .folder = "/"}).then[0].serves,
            Serves());
}

// --- torch.distributed

job::JobSpec torch_spec(const std::string& program) {
  return {.name = "ddp",
          .kind = Kind::kTorch,
          .command = {program, "train.py"},
          .workers = 3,
          .slots_per_worker = 2,
          .folder = "/"};
}

TEST(PlanTorch, TheMasterIsRankZeroAndTheWorkersFollow) {
  const GangPlan plan = plan_on_one_node(torch_spec("python3"));

  ASSERT_EQ(names(plan.first), (std::vector<std::string>{"worker-0", "worker-1", "worker-2"}));
  ASSERT_EQ(names(plan.then), std::vector<std::string>{"master"});
  EXPECT_EQ(plan.then[0].environment.at("RANK"), "0");
  EXPECT_EQ(plan.first[1].environment.at("RANK"), "2");
  for (const TaskPlan& task : {plan.first[0], plan.first[1], plan.then[0]}) {
    EXPECT_EQ(task.argv, (std::vector<std::string>{"python3", "train.py"}));
    EXPECT_EQ(task.environment.at("WORLD_SIZE"), "4");
    EXPECT_EQ(task.environment.at("MASTER_ADDR"), "ddp-master");
    EXPECT_EQ(task.environment.at("MASTER_PORT"), plan.then[0].environment.at("MASTER_PORT"));
  }
}

TEST(PlanTorch, GivesTorchrunTheRendezvousOfTheAttempt) {
  const GangPlan plan = plan_on_one_node(torch_spec("torchrun"));

  for (const TaskPlan& task : {plan.first[0], plan.then[0]}) {
    EXPECT_EQ(task.environment.at("PET_RDZV_ENDPOINT"),
              "ddp-master:" + std::to_string(plan.then[0].serves[0].port));
    EXPECT_EQ(task.environment.at("PET_RDZV_ID"), "j1-1");
    EXPECT_EQ(task.environment.at("PET_NNODES"), "4");
    EXPECT_EQ(task.environment.at("PET_NPROC_PER_NODE"), "2");
    EXPECT_EQ(task.environment.at("PET_LOCAL_ADDR"), task.hostname);
    EXPECT_FALSE(task.environment.contains("PET_MAX_RESTARTS"));
  }
  EXPECT_TRUE(plan.then[0].environment.at("PET_RDZV_CONF").starts_with("is_host=1,"));
  EXPECT_TRUE(plan.first[0].environment.at("PET_RDZV_CONF").starts_with("is_host=0,"));
}

TEST(PlanTorch, GivesTorchrunOfAnElasticJobTheRangeOfTasks) {
  job::JobSpec spec = torch_spec("torchrun");
  spec.scheduling.min_workers = 1;
  EXPECT_EQ(plan_on_one_node(spec).then[0].environment.at("PET_NNODES"), "2:4");

  // A job that restarts with its present workers gets only their number.
  spec.scheduling.resize = job::Resize::kRestart;
  EXPECT_EQ(plan_on_one_node(spec).then[0].environment.at("PET_NNODES"), "4");
}

TEST(PlanTorch, KeepsTheRanksTrafficOnTheMachineIfAllTasksAreThere) {
  EXPECT_EQ(plan_on_one_node(torch_spec("python3")).then[0].environment.at("GLOO_SOCKET_IFNAME"),
            "lo");
}

TEST(PlanTorch, UsersVariablesTakePrecedence) {
  job::JobSpec spec = torch_spec("torchrun");
  spec.environment = {{"PET_MAX_RESTARTS", "3"}, {"PET_NPROC_PER_NODE", "gpu"}};

  for (const auto& [name, value] : spec.environment) {
    EXPECT_EQ(plan_on_one_node(spec).first[0].environment.at(name), value);
  }
}

// --- MPI, beyond the plain case

job::JobSpec mpi_spec_with_worker_command() {
  return {.name = "dist",
          .kind = Kind::kMpi,
          .command = {"mpirun", "train"},
          .workers = 2,
          .worker_command = {"sleep", "infinity"},
          .leader_slots = 3,
          .folder = "/"};
}

TEST(PlanMpi, ListsALauncherWithRanksLast) {
  const TaskPlan launcher = plan_on_one_node(mpi_spec_with_worker_command()).then[0];

  EXPECT_EQ(find_file(launcher, "hostfile")->content,
            "dist-worker-0 slots=1\ndist-worker-1 slots=1\ndist-launcher-0 slots=3\n");
  EXPECT_EQ(find_file(launcher, "hostfile.intel")->content,
            "dist-worker-0:1\ndist-worker-1:1\ndist-launcher-0:3\n");
  EXPECT_EQ(launcher.also_at, (std::map<std::string, std::string>{
                                  {"hostfile", "/etc/mpi/hostfile"},
                                  {"discover_hosts.sh", "/etc/mpi/discover_hosts.sh"}}));
  EXPECT_EQ(find_file(launcher, "discover_hosts.sh")->mode, 0700U);
}

TEST(PlanMpi, ALauncherWithRanksAnswersSshUnderASecondName) {
  const TaskPlan launcher = plan_on_one_node(mpi_spec_with_worker_command()).then[0];

  EXPECT_TRUE(launcher.ssh);
  EXPECT_EQ(launcher.hostname, "dist-launcher");
  EXPECT_EQ(launcher.hosts.back(),
            (std::pair<std::string, std::string>{"dist-launcher-0", launcher.address}));
  EXPECT_NE(find_file(launcher, "ssh/config")
                ->content.find("Host dist-launcher-0\n  HostName " + launcher.address + "\n"),
            std::string::npos);
  EXPECT_EQ(launcher.environment.at("MUSTER_WORKERS"), "2");
}

TEST(PlanMpi, WorkersRunTheirCommandAndAnswerSsh) {
  const TaskPlan worker = plan_on_one_node(mpi_spec_with_worker_command()).first[0];

  EXPECT_EQ(worker.argv, mpi_spec_with_worker_command().worker_command);
  EXPECT_TRUE(worker.ssh);
}

TEST(PlanMpi, SetsTheNumberOfWorkersAsRunaiDoes) {
  const GangPlan plan = plan_on_one_node(mpi_spec_with_worker_command());

  EXPECT_EQ(plan.then[0].environment.at("RUNAI_MPI_NUM_WORKERS"), "2");
  EXPECT_EQ(plan.first[0].environment.at("RUNAI_MPI_NUM_WORKERS"), "2");
}

TEST(PlanMpi, HorovodrunFindsAnSshThatResolvesTheWorkers) {
  job::JobSpec spec = mpi_spec_with_worker_command();
  spec.environment["PATH"] = "/usr/bin";
  EXPECT_EQ(plan_on_one_node(spec).then[0].environment.at("PATH"), "/usr/bin");

  spec.command = {"sh", "-c", "exec /opt/conda/bin/horovodrun -np 2 ./train"};
  const GangPlan plan = plan_on_one_node(spec);

  EXPECT_EQ(plan.then[0].environment.at("PATH"), "/generated/bin:/usr/bin");
  EXPECT_NE(find_file(plan.then[0], "bin/ssh"), nullptr);
  EXPECT_EQ(plan.first[0].environment.at("PATH"), "/usr/bin");
}

TEST(PlanMpi, SearchesMustersFolderLastForPrograms) {
  job::JobSpec spec = mpi_spec_with_worker_command();
  spec.environment["PATH"] = "/usr/bin";
  EXPECT_EQ(plan_on_one_node(spec, {}, "/opt/muster/bin").then[0].environment.at("PATH"),
            "/usr/bin:/opt/muster/bin");

  spec.environment["PATH"] = "/opt/muster/bin:/usr/bin";
  EXPECT_EQ(plan_on_one_node(spec, {}, "/opt/muster/bin").first[0].environment.at("PATH"),
            "/opt/muster/bin:/usr/bin");
}

TEST(PlanMpi, WithoutASandboxTheHostfileHasNoSecondPath) {
  job::JobSpec spec = mpi_spec_with_worker_command();
  spec.sandbox = Sandbox::kNone;

  EXPECT_TRUE(plan_on_one_node(spec).then[0].also_at.empty());
}

// --- images and volumes

TEST(PlanImage, StandInGivesItsCommandItsFolderAndItsVariablesBelowTheJobs) {
  const job::JobSpec spec{.name = "one",
                          .image = "pytorch/pytorch:2.0",
                          .environment = {{"B", "job"}, {"TF_CONFIG", "mine"}},
                          .folder = "/home/ada"};
  const TaskPlan task =
      plan_on_one_node(spec, {{"pytorch/pytorch",
                               {.command = {"python3"},
                                .folder = "/opt/torch",
                                .environment = {{"PATH", "/opt/torch/bin"}, {"B", "image"}}}}})
          .then[0];

  EXPECT_EQ(task.argv, std::vector<std::string>{"python3"});
  EXPECT_EQ(task.folder, "/opt/torch");
  EXPECT_EQ(task.image, "pytorch/pytorch:2.0");
  EXPECT_EQ(task.environment.at("PATH"), "/opt/torch/bin");
  EXPECT_EQ(task.environment.at("B"), "job");
}

TEST(PlanVolumes, EveryTaskGetsTheJobsVolumesAndTheirProject) {
  job::JobSpec spec = grpc_spec();
  spec.project = "team-a";
  spec.volumes = {{.kind = Volume::Kind::kStorage, .source = "storage", .target = "/storage"}};

  const GangPlan plan = plan_on_one_node(spec);

  for (const TaskPlan& task : {plan.first[0], plan.then[0]}) {
    EXPECT_EQ(task.volumes, spec.volumes);
    EXPECT_EQ(task.project, "team-a");
  }
}

TEST(PlanEveryKind, UsersVariablesTakePrecedenceOverTheContracts) {
  job::JobSpec spec = grpc_spec();
  spec.environment = {{"JOB_NAME", "mine"}, {"INDEX", "7"}, {"WORKER_HOSTS", "none"}};

  const auto environment = plan_on_one_node(spec).then[0].environment;

  for (const auto& [name, value] : spec.environment) EXPECT_EQ(environment.at(name), value);
  EXPECT_EQ(environment.at("RUNAI_JOB_NAME"), "tf");
}

}  // namespace
}  // namespace muster::launch
