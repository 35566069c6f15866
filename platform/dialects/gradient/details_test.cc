// `gradient experiments details`, row for row.
#include <gtest/gtest.h>

#include "dialects/gradient/views.h"

namespace muster::dialects::gradient {

namespace {

using Annotations = std::map<std::string, std::string>;

/// One that was created and not started yet.
job::Job created(job::Kind kind, const Annotations& said) {
  job::Job job;
  job.id = "esro6mbmiulvbl";
  job.spec.name = "dsfads-2";
  job.spec.project = "prq70zy79";
  job.spec.kind = kind;
  job.spec.held = job.suspended = true;
  for (const auto& [flag, value] : said) job.spec.annotations["gradient/" + flag] = value;
  return job;
}

TEST(ExperimentDetails, OfOneMachine) {
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

TEST(ExperimentDetails, OfAJobThatWasSubmittedOtherwiseSayWhatItsSpecSays) {
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
  EXPECT_EQ(row(job, "Worker Count"), "2");  // the chief is one of them
  EXPECT_EQ(row(job, "Worker Machine Type"), "None");
  EXPECT_EQ(row(job, "Working Directory"), "/run-here");
  EXPECT_EQ(row(job, "Experiment Env"), "{'A': '1', 'TOKEN': 'secret:hub'}");
}

TEST(ExperimentDetails, OfMpiSayWhatTheLauncherRunsAndWhatTheWorkersDo) {
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

TEST(ExperimentDetails, SayHowRanksWereStartedOnceItIsKnown) {
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

}  // namespace muster::dialects::gradient
