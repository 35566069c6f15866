#include "dialects/gradient/views.h"

#include <gtest/gtest.h>

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

TEST(GradientViews, ListExperimentsByTheNamesTheirUsersGaveThem) {
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

TEST(GradientViews, CallPoolsOfNodesClusters) {
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

TEST(GradientViews, ShowWhatMachineTypesClaim) {
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

}  // namespace muster::dialects::gradient
