#include "dialects/gradient/views.h"

#include <gtest/gtest.h>

#include <functional>

namespace muster::dialects::gradient {

namespace {

job::Job job_called(const std::string& name) {
  job::Job job;
  job.id = "id-" + name;
  job.spec.name = name;
  job.phase = job::Phase::kRunning;
  job.submitted = base::FakeClock().now();
  return job;
}

TEST(GradientViews, ListExperimentsByTheNamesThatUsersGaveThem) {
  job::Job mine = job_called("my-test-2");
  mine.spec.annotations["gradient/name"] = "My test!";
  job::Job nameless = job_called("experiment-1");
  nameless.spec.annotations["gradient/name"] = "";

  EXPECT_EQ(experiment_table({mine, nameless, job_called("dist")}).to_string(),
            "+--------------+-----------------+---------+\n"
            "| Name         | ID              | Status  |\n"
            "+--------------+-----------------+---------+\n"
            "| My test!     | id-my-test-2    | running |\n"
            "| experiment-1 | id-experiment-1 | running |\n"
            "| dist         | id-dist         | running |\n"
            "+--------------+-----------------+---------+\n");
}

TEST(GradientViews, ListTheTasksOfAnExperimentAsItsJobs) {
  job::Job job = job_called("dist");
  job.spec.kind = job::Kind::kMpi;
  job.spec.workers = 1;
  job.spec.annotations = {{"gradient/masterMachineType", "C3"},
                          {"gradient/workerMachineType", "p2.xlarge"}};
  job.tasks = job::tasks_of(job.spec);

  EXPECT_EQ(
      job_table({job}).to_string(),
      "+------------------+---------------+---------+---------+--------------+---------------------"
      "-----+\n"
      "| ID               | Name          | Project | Cluster | Machine Type | Created             "
      "     |\n"
      "+------------------+---------------+---------+---------+--------------+---------------------"
      "-----+\n"
      "| id-dist/launcher | dist launcher | default | None    | C3           | 2023-11-14T22:13:20."
      "000Z |\n"
      "| id-dist/worker-0 | dist worker-0 | default | None    | p2.xlarge    | 2023-11-14T22:13:20."
      "000Z |\n"
      "+------------------+---------------+---------+---------+--------------+---------------------"
      "-----+\n");
}

TEST(GradientViews, ShowProjects) {
  job::ProjectStatus status;
  status.project.name = "vision";
  status.project.created = base::FakeClock().now() + std::chrono::milliseconds(250);

  EXPECT_EQ(project_table({status}).to_string(),
            "+--------+--------+------------+----------------------------+\n"
            "| ID     | Name   | Repository | Created                    |\n"
            "+--------+--------+------------+----------------------------+\n"
            "| vision | vision | None       | 2023-11-14 22:13:20.250000 |\n"
            "+--------+--------+------------+----------------------------+\n");
  EXPECT_EQ(project_details(status.project).to_string(),
            "+-----------------+--------+\n"
            "| Name            | vision |\n"
            "+-----------------+--------+\n"
            "| ID              | vision |\n"
            "| Repository name | None   |\n"
            "| Repository url  | None   |\n"
            "| Tags            |        |\n"
            "+-----------------+--------+\n");
}

TEST(GradientViews, CallNodePoolsClusters) {
  const std::vector<std::string> pools =
      pools_of({{.name = "a", .pool = "gpu"}, {.name = "b", .pool = "cpu"}, {.pool = "gpu"}});
  EXPECT_EQ(pools, (std::vector<std::string>{"cpu", "gpu"}));
  EXPECT_EQ(cluster_table(pools).to_string(),
            "+-----+------+--------+\n"
            "| ID  | Name | Type   |\n"
            "+-----+------+--------+\n"
            "| cpu | cpu  | muster |\n"
            "| gpu | gpu  | muster |\n"
            "+-----+------+--------+\n");
}

TEST(GradientViews, ShowTheResourcesOfMachineTypes) {
  const job::MachineTypes types{
      {"C3", {}},
      {"V100",
       {.resources = {.gpus = 1, .cpu_milli = 8000, .memory_bytes = 32212254720},
        .gpu_model = "Tesla V100"}}};

  EXPECT_EQ(machine_type_table(types, {"cpu", "gpu"}).to_string(),
            "+------+------+-----------+-------------+-----------+------------+----------+\n"
            "| Name | Kind | CPU Count | RAM [Bytes] | GPU Count | GPU Model  | Clusters |\n"
            "+------+------+-----------+-------------+-----------+------------+----------+\n"
            "| C3   | cpu  | None      | None        | 0         | N/A        | cpu, gpu |\n"
            "| V100 | gpu  | 8         | 32212254720 | 1         | Tesla V100 | cpu, gpu |\n"
            "+------+------+-----------+-------------+-----------+------------+----------+\n");
}

}  // namespace

namespace {

using job::Phase;
using job::TaskPhase;

/// A job with a launcher and a worker.
job::Job mpi_job(Phase phase) {
  job::Job job;
  job.spec.kind = job::Kind::kMpi;
  job.spec.workers = 1;
  job.phase = phase;
  job.tasks = job::tasks_of(job.spec);
  return job;
}

struct Case {
  const char* expected;
  Phase phase;
  std::function<void(job::Job&)> change;
};

void nothing(job::Job&) {}

void start(job::Job& job) {
  job.attempt = 1;
  job.started = base::FakeClock().now();
}

const Case kCases[] = {
    {"created", Phase::kQueued, [](job::Job& job) { job.spec.held = job.suspended = true; }},
    // The experiment was started, and waits for resources.
    {"pending", Phase::kQueued, [](job::Job& job) { job.spec.held = true; }},
    {"pending", Phase::kQueued, nothing},
    // The experiment ran, and was suspended afterwards.
    {"pending", Phase::kQueued,
     [](job::Job& job) {
       job.spec.held = job.suspended = true;
       job.attempt = 1;
     }},
    {"provisioning", Phase::kStarting, nothing},
    {"network setup", Phase::kStarting,
     [](job::Job& job) { job.tasks[1].phase = TaskPhase::kRunning; }},
    {"network teardown", Phase::kStarting, [](job::Job& job) { job.stop_requested = true; }},
    {"running", Phase::kRunning, start},
    {"network teardown", Phase::kRunning,
     [](job::Job& job) { job.tasks[0].phase = TaskPhase::kEnded; }},
    // The end of a worker does not end the experiment.
    {"running", Phase::kRunning, [](job::Job& job) { job.tasks[1].phase = TaskPhase::kEnded; }},
    {"network teardown", Phase::kRunning,
     [](job::Job& job) { job.eviction = job::SuspendedByUser{}; }},
    {"stopped", Phase::kSucceeded, start},
    {"stopped", Phase::kStopped, start},
    {"canceled", Phase::kStopped, nothing},
    {"failed", Phase::kFailed, start},
    {"error", Phase::kFailed, nothing},
};

TEST(State, FollowsTheLifeOfAJob) {
  for (const Case& one : kCases) {
    job::Job job = mpi_job(one.phase);
    one.change(job);
    EXPECT_EQ(state_of(job), one.expected) << job::to_string(one.phase);
  }
}

TEST(State, IsTheSameWithoutTasks) {
  EXPECT_EQ(state_of(job::Job{.phase = Phase::kRunning}), "running");
}

}  // namespace

// `gradient experiments details`, row for row.

namespace {

using Annotations = std::map<std::string, std::string>;

/// An experiment that was created but not started.
job::Job created(job::Kind kind, const Annotations& flags) {
  job::Job job;
  job.id = "esro6mbmiulvbl";
  job.spec.name = "dsfads-2";
  job.spec.project = "prq70zy79";
  job.spec.kind = kind;
  job.spec.held = job.suspended = true;
  for (const auto& [flag, value] : flags) job.spec.annotations["gradient/" + flag] = value;
  return job;
}

TEST(ExperimentDetails, DescribeAnExperimentOnOneMachine) {
  job::Job job = created(job::Kind::kSingle, {{"name", "dsfads"},
                                              {"experimentType", "single"},
                                              {"ports", "5000"},
                                              {"command", "python train.py && echo done"},
                                              {"container", "asd"},
                                              {"machineType", "C2"}});
  job.spec.folder = "/home/paperspace";
  job.spec.labels = {{"nightly", ""}, {"big", ""}, {"app", "vision"}};

  EXPECT_EQ(experiment_details(job).to_string(),
            "+---------------------+------------------------------+\n"
            "| Name                | dsfads                       |\n"
            "+---------------------+------------------------------+\n"
            "| ID                  | esro6mbmiulvbl               |\n"
            "| State               | created                      |\n"
            "| Ports               | 5000                         |\n"
            "| Project ID          | prq70zy79                    |\n"
            "| Worker Command      | python train.py && echo done |\n"
            "| Worker Container    | asd                          |\n"
            "| Worker Machine Type | C2                           |\n"
            "| Working Directory   | None                         |\n"
            "| Workspace URL       | None                         |\n"
            "| Model Type          | None                         |\n"
            "| Model Path          | None                         |\n"
            "| Tags                | big, nightly                 |\n"
            "+---------------------+------------------------------+\n");
}

TEST(ExperimentDetails, OfGrpc) {
  const job::Job job =
      created(job::Kind::kGrpc, {{"name", "multinode"},
                                 {"experimentType", "GRPC"},
                                 {"artifactDirectory", "/artdir"},
                                 {"clusterId", "2a"},
                                 {"experimentEnv", R"({"key": "val", "TOKEN": "secret:hub"})"},
                                 {"parameterServerCommand", "ls"},
                                 {"parameterServerContainer", "pscon"},
                                 {"parameterServerCount", "2"},
                                 {"parameterServerMachineType", "psmtype"},
                                 {"ports", "3456"},
                                 {"workerCommand", "wcom"},
                                 {"workerContainer", "wcon"},
                                 {"workerCount", "2"},
                                 {"workerMachineType", "mty"},
                                 {"workingDirectory", "/dir"},
                                 {"workspace", "wurl"}});

  EXPECT_EQ(experiment_details(job).to_string(),
            "+-------------------------------+---------------------------------------+\n"
            "| Name                          | multinode                             |\n"
            "+-------------------------------+---------------------------------------+\n"
            "| ID                            | esro6mbmiulvbl                        |\n"
            "| State                         | created                               |\n"
            "| Artifact directory            | /artdir                               |\n"
            "| Cluster ID                    | 2a                                    |\n"
            "| Experiment Env                | {'key': 'val', 'TOKEN': 'secret:hub'} |\n"
            "| Experiment Type               | GRPC multi node                       |\n"
            "| Model Type                    | None                                  |\n"
            "| Model Path                    | None                                  |\n"
            "| Parameter Server Command      | ls                                    |\n"
            "| Parameter Server Container    | pscon                                 |\n"
            "| Parameter Server Count        | 2                                     |\n"
            "| Parameter Server Machine Type | psmtype                               |\n"
            "| Ports                         | 3456                                  |\n"
            "| Project ID                    | prq70zy79                             |\n"
            "| Worker Command                | wcom                                  |\n"
            "| Worker Container              | wcon                                  |\n"
            "| Worker Count                  | 2                                     |\n"
            "| Worker Machine Type           | mty                                   |\n"
            "| Working Directory             | /dir                                  |\n"
            "| Workspace URL                 | wurl                                  |\n"
            "| Tags                          |                                       |\n"
            "+-------------------------------+---------------------------------------+\n");
}

TEST(ExperimentDetails, OfMpi) {
  const job::Job job = created(job::Kind::kMpi, {{"name", "multinode_mpi"},
                                                 {"experimentType", "MPI"},
                                                 {"masterCommand", "mpirun -np 2 ./train"},
                                                 {"masterContainer", "mcon"},
                                                 {"masterCount", "1"},
                                                 {"masterMachineType", "p2.xlarge"},
                                                 {"workerCommand", "sleep infinity"},
                                                 {"workerContainer", "wcon"},
                                                 {"workerCount", "2"},
                                                 {"workerMachineType", "p3.2xlarge"},
                                                 {"modelType", "Tensorflow"},
                                                 {"modelPath", "/models"}});

  EXPECT_EQ(experiment_details(job).to_string(),
            "+---------------------+----------------------+\n"
            "| Name                | multinode_mpi        |\n"
            "+---------------------+----------------------+\n"
            "| ID                  | esro6mbmiulvbl       |\n"
            "| State               | created              |\n"
            "| Artifact directory  | None                 |\n"
            "| Cluster ID          | None                 |\n"
            "| Experiment Env      | None                 |\n"
            "| Experiment Type     | MPI multi node       |\n"
            "| Model Type          | Tensorflow           |\n"
            "| Model Path          | /models              |\n"
            "| Master Command      | mpirun -np 2 ./train |\n"
            "| Master Container    | mcon                 |\n"
            "| Master Count        | 1                    |\n"
            "| Master Machine Type | p2.xlarge            |\n"
            "| Ports               | None                 |\n"
            "| Project ID          | prq70zy79            |\n"
            "| Worker Command      | sleep infinity       |\n"
            "| Worker Container    | wcon                 |\n"
            "| Worker Count        | 2                    |\n"
            "| Worker Machine Type | p3.2xlarge           |\n"
            "| Working Directory   | None                 |\n"
            "| Workspace URL       | None                 |\n"
            "| Tags                |                      |\n"
            "+---------------------+----------------------+\n");
}

/// The value of a row.
std::string row(const job::Job& job, const std::string& key) {
  const std::string text = experiment_details(job).to_string();
  const size_t line = text.find("| " + key + " ");
  const size_t begin = line == std::string::npos ? line : text.find("| ", line + 1);
  if (begin == std::string::npos) return "no row '" + key + "'";
  const std::string rest = text.substr(begin + 2, text.find('\n', begin) - begin - 3);
  return rest.substr(0, rest.find_last_not_of(' ') + 1);
}

TEST(ExperimentDetails, OfAJobSubmittedByOtherMeansComeFromItsSpec) {
  job::Job job = created(job::Kind::kGrpc, {});
  job.spec.command = {"python3", "my train.py"};
  job.spec.arguments = {"--epochs", "3"};
  job.spec.image = "tensorflow:2";
  job.spec.workers = 1;
  job.spec.parameter_servers = 2;
  job.spec.folder = "/run-here";
  job.spec.environment = {{"A", "1"}};
  job.spec.secrets = {{.name = "hub", .variable = "TOKEN"}, {.name = "key", .file = "key"}};

  EXPECT_EQ(row(job, "Name"), "dsfads-2");
  EXPECT_EQ(row(job, "Worker Command"), "python3 'my train.py' --epochs 3");
  EXPECT_EQ(row(job, "Parameter Server Command"), "python3 'my train.py' --epochs 3");
  EXPECT_EQ(row(job, "Parameter Server Count"), "2");
  EXPECT_EQ(row(job, "Parameter Server Container"), "tensorflow:2");
  EXPECT_EQ(row(job, "Worker Container"), "tensorflow:2");
  EXPECT_EQ(row(job, "Worker Count"), "2");  // the chief is one of the workers
  EXPECT_EQ(row(job, "Worker Machine Type"), "None");
  EXPECT_EQ(row(job, "Working Directory"), "/run-here");
  EXPECT_EQ(row(job, "Experiment Env"), "{'A': '1', 'TOKEN': 'secret:hub'}");
}

TEST(ExperimentDetails, OfMpiShowTheCommandsOfLauncherAndWorkers) {
  job::Job job = created(job::Kind::kMpi, {});
  job.spec.command = {"mpirun", "./train"};
  job.spec.image = "horovod";
  job.spec.leader.image = "mpi";
  job.spec.workers = 3;

  EXPECT_EQ(row(job, "Master Command"), "mpirun ./train");
  EXPECT_EQ(row(job, "Master Container"), "mpi");
  EXPECT_EQ(row(job, "Master Count"), "1");
  EXPECT_EQ(row(job, "Worker Command"), "None");
  EXPECT_EQ(row(job, "Worker Container"), "horovod");
  EXPECT_EQ(row(job, "Worker Count"), "3");
}

TEST(ExperimentDetails, ShowTheLaunchMethodOnceItIsKnown) {
  job::Job job;
  job.spec.kind = job::Kind::kMpi;
  EXPECT_EQ(experiment_details(job).to_string().find("Launch"), std::string::npos);
  job.launch = job::LaunchFacts{
      .by = job::LaunchBy::kAgent, .why = "the images have no sshd", .mpi = "Open MPI 4.1.4"};

  EXPECT_NE(experiment_details(job).to_string().find(
                "| Launch              | by agent: the images have no sshd; Open MPI 4.1.4 |"),
            std::string::npos)
      << experiment_details(job).to_string();
}

}  // namespace

namespace {

TEST(PythonLiteral, ShowsJsonAsAPythonDictionary) {
  EXPECT_EQ(python_literal(R"({"key":"val"})"), "{'key': 'val'}");
  EXPECT_EQ(python_literal(R"({"EPOCHS_EVAL":5,"TRAIN_EPOCHS":10})"),
            "{'EPOCHS_EVAL': 5, 'TRAIN_EPOCHS': 10}");
  EXPECT_EQ(python_literal(R"({"z":true,"a":false,"n":null,"f":0.5,"l":[1,"x",{}]})"),
            "{'z': True, 'a': False, 'n': None, 'f': 0.5, 'l': [1, 'x', {}]}");
  EXPECT_EQ(python_literal("{}"), "{}");
}

TEST(PythonLiteral, QuotesAsPythonDoes) {
  EXPECT_EQ(python_literal(R"(["it's"])"), R"(["it's"])");
  EXPECT_EQ(python_literal(R"(["it's \"so\""])"), R"(['it\'s "so"'])");
  EXPECT_EQ(python_literal(R"(["a\nb\tc\\d\u0001"])"), R"(['a\nb\tc\\d\x01'])");
  EXPECT_EQ(python_literal(R"(["Größe"])"), "['Größe']");
}

TEST(PythonLiteral, IsNothingForInvalidJson) {
  EXPECT_EQ(python_literal("{'key': 'val'}"), std::nullopt);
  EXPECT_EQ(python_literal(""), std::nullopt);
}

TEST(PythonLiteral, ShowsAMapOfTexts) {
  EXPECT_EQ(python_literal(std::map<std::string, std::string>{{"A", "1"}, {"B", "x'y"}}),
            R"({'A': '1', 'B': "x'y"})");
  EXPECT_EQ(python_literal(std::map<std::string, std::string>{}), "{}");
}

}  // namespace

}  // namespace muster::dialects::gradient
