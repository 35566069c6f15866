#include "api/cluster_wire.h"

#include <gtest/gtest.h>

#include "api/test_values.h"
#include "base/test_faults.h"

namespace muster::api {
namespace {

using job::Project;
using job::ProjectStatus;

TEST(ProjectWire, ReadsBackEveryField) {
  for (const ProjectStatus& project :
       {full_project(), ProjectStatus{.project = {.name = "default"}}}) {
    const auto read = project_from_json(project_to_json(project));
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, project);
  }
}

TEST(ProjectWire, HasTheDocumentedShape) {
  ProjectStatus project{.project = {.name = "team-a", .created = time_at(0)}, .running = 1};
  project.project.quota.deserved.gpu_milli = 2'500;

  EXPECT_EQ(project_to_json(project),
            R"({"name":"team-a","parent":"",)"
            R"("quota":{"deserved":{"gpus":2.5,"cpus":null,"memory_bytes":null},)"
            R"("limit":{"gpus":null,"cpus":null,"memory_bytes":null},"weight":1},)"
            R"("pools":{},"priority":100,"reclaim_min_runtime_ms":0,"preempt_min_runtime_ms":0,)"
            R"("takes_the_rest":false,"sequence":0,"created":"1970-01-01T00:00:00.000000000Z",)"
            R"("status":{"deserved":{"gpus":null,"cpus":null,"memory_bytes":null},)"
            R"("allocated":{"gpus":0,"cpus":0,"memory_bytes":0},)"
            R"("allocated_non_preemptible":{"gpus":0,"cpus":0,"memory_bytes":0},)"
            R"("requested":{"gpus":0,"cpus":0,"memory_bytes":0},)"
            R"("fair_share":{"gpus":null,"cpus":null,"memory_bytes":null},)"
            R"("running":1,"waiting":0}})");
}

TEST(ProjectsWire, ReadsBackUnchanged) {
  const std::vector<ProjectStatus> projects{full_project(), {.project = {.name = "b"}}};

  EXPECT_EQ(*projects_from_json(projects_to_json(projects)), projects);
  EXPECT_EQ(projects_to_json({}), R"({"projects":[]})");
}

TEST(ReadProject, ANewProjectHasDefaultsForAbsentFields) {
  EXPECT_EQ(*read_project(R"({"name":"team-a"})", {}), Project{.name = "team-a"});
  EXPECT_EQ(faults_of(read_project("{}", {})), std::vector<std::string>{"name is missing"});
}

TEST(ReadProject, ReportsFaultsOfValuesBesideFaultsOfForm) {
  const auto read =
      read_project(R"({"name":"Bad","nosuch":1,"quota":{"deserved":{"gpus":-1},"weight":-3}})", {});

  ASSERT_FALSE(read);
  std::vector<std::string> fields;
  for (const base::Fault& fault : read.error().faults) fields.push_back(fault.field);
  EXPECT_EQ(fields,
            (std::vector<std::string>{"nosuch", "name", "quota.deserved.gpus", "quota.weight"}));
}

TEST(ReadProject, AnUnreadLimitCausesNoFaultOfTheQuota) {
  Project known{.name = "team-a"};
  known.quota.limit.gpu_milli = 4'000;

  EXPECT_EQ(
      faults_of(read_project(R"({"quota":{"limit":{"gpus":1e30},"deserved":{"gpus":6}}})", known)),
      std::vector<std::string>{"quota.limit.gpus is out of range; give 0 to 1000000"});
}

TEST(ReadProject, AbsentFieldsOfAnExistingProjectDoNotChange) {
  const Project known = full_project().project;

  EXPECT_EQ(*read_project("{}", known), known);
  EXPECT_EQ(*read_project(project_to_json(full_project()), known), known);

  Project expected = known;
  expected.quota.limit.gpu_milli = 4'000;
  expected.quota.deserved.cpu_milli.reset();
  expected.pools.erase("a100");
  expected.pools["b"].weight = 0;
  expected.priority = 1;
  EXPECT_EQ(*read_project(R"({"quota":{"limit":{"gpus":4},"deserved":{"cpus":null}},)"
                          R"("pools":{"a100":null,"b":{"weight":0}},"priority":1})",
                          known),
            expected);
}

TEST(ReadProject, ReportsEveryFaultByItsPath) {
  EXPECT_EQ(faults_of(read_project(R"({"name":"other","priority":"high","wieght":1,
                                       "quota":{"deserved":{"gpus":0.0001},"weight":"x"},
                                       "pools":{"a":{"limit":{"memory_bytes":1.5}},"b":3}})",
                                   {.name = "team-a"})),
            (std::vector<std::string>{
                "quota.deserved.gpus has more than three decimals",
                "quota.weight must be a number, not text",
                "pools.a.limit.memory_bytes must be a whole number, not a number with a fraction",
                "pools.b must be an object, not a whole number",
                "priority must be a whole number, not text", "wieght is not a field",
                "name cannot be changed; this is project 'team-a'"}));
}

TEST(ProjectChange, OmitsUnchangedFields) {
  EXPECT_EQ(project_change_to_json({}, {}), "{}");
  EXPECT_EQ(project_change_to_json("team-a", {}), R"({"name":"team-a"})");

  ProjectChange change;
  change.quota.limit.gpu_milli = std::optional<int64_t>();
  change.quota.deserved.cpu_milli = 500;
  EXPECT_EQ(project_change_to_json({}, change),
            R"({"quota":{"deserved":{"cpus":0.5},"limit":{"gpus":null}}})");
}

TEST(ProjectChange, ChangesTheProjectAsRequested) {
  const Project known = full_project().project;
  ProjectChange change{.parent = "",
                       .quota = {.deserved = {.gpu_milli = 8'000,
                                              .cpu_milli = std::optional<int64_t>(),
                                              .memory_bytes = 4},
                                 .limit = {.gpu_milli = std::optional<int64_t>()},
                                 .weight = 2.5},
                       .pools = {{"b", QuotaChange{.weight = 3}},
                                 {"a100", std::nullopt},
                                 {"never was", std::nullopt}},
                       .priority = 5,
                       .reclaim_min_runtime = std::chrono::milliseconds(6),
                       .preempt_min_runtime = std::chrono::milliseconds(7),
                       .takes_the_rest = false};
  Project expected = known;
  expected.parent = "";
  expected.quota = {.deserved = {.gpu_milli = 8'000, .cpu_milli = {}, .memory_bytes = 4},
                    .limit = {},
                    .weight = 2.5};
  expected.pools.erase("a100");
  expected.pools["b"].weight = 3;
  expected.priority = 5;
  expected.reclaim_min_runtime = std::chrono::milliseconds(6);
  expected.preempt_min_runtime = std::chrono::milliseconds(7);
  expected.takes_the_rest = false;

  const auto read = read_project(project_change_to_json({}, change), known);

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, expected);
}

TEST(ProjectChange, ANumberOfGpusReplacesTheRest) {
  const Project known{.name = "default", .takes_the_rest = true};
  const auto takes_the_rest = [&](const std::string& body) {
    return read_project(body, known)->takes_the_rest;
  };
  EXPECT_FALSE(takes_the_rest(R"({"quota":{"deserved":{"gpus":0}}})"));
  EXPECT_FALSE(takes_the_rest(R"({"quota":{"deserved":{"gpus":null}}})"));
  EXPECT_TRUE(takes_the_rest(R"({"quota":{"deserved":{"gpus":0}},"takes_the_rest":true})"));
  EXPECT_TRUE(takes_the_rest(R"({"quota":{"limit":{"gpus":2}}})"));
  EXPECT_TRUE(takes_the_rest(R"({"quota":{"deserved":{"cpus":2},"weight":2}})"));
}

}  // namespace
namespace {

using job::Node;

TEST(NodeWire, ReadsBackEveryField) {
  const auto read = node_from_json(node_to_json(full_node()));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, full_node());
}

TEST(NodeWire, HasTheDocumentedShape) {
  const Node node{.name = "n1",
                  .pool = "default",
                  .state = "ready",
                  .cpu_milli = 8'000,
                  .cpu_milli_free = 7'500,
                  .memory_bytes = 4,
                  .memory_bytes_free = 3,
                  .devices = {{.index = 0, .model = "A100", .free_milli = 500, .jobs = {"dist"}}},
                  .jobs = {"dist"},
                  .topology = {{"rack", "r1"}}};

  EXPECT_EQ(node_to_json(node),
            R"({"name":"n1","pool":"default","state":"ready","cpus":8,"cpus_free":7.5,)"
            R"("memory_bytes":4,"memory_bytes_free":3,)"
            R"("devices":[{"index":0,"model":"A100","memory_bytes":0,"free":0.5,"jobs":["dist"]}],)"
            R"("jobs":["dist"],"topology":{"rack":"r1"},"labels":{}})");
}

TEST(NodesWire, ReadsBackUnchanged) {
  const std::vector<Node> nodes{full_node(), {.name = "n2", .state = "ready"}};

  EXPECT_EQ(*nodes_from_json(nodes_to_json(nodes)), nodes);
  EXPECT_EQ(nodes_to_json({}), R"({"nodes":[]})");
}

TEST(NodesWire, NamesTheFieldOfAFaultByItsFullPath) {
  const auto read =
      nodes_from_json(R"({"nodes":[{"state":"ready","devices":[{"index":0,"free":"half"}]}]})");

  ASSERT_FALSE(read);
  ASSERT_EQ(read.error().faults.size(), 2U);
  EXPECT_EQ(read.error().faults[0].field, "nodes[0].name");
  EXPECT_EQ(read.error().faults[1].field, "nodes[0].devices[0].free");
}

}  // namespace
namespace {

using job::MachineTypes;

TEST(MachineWire, ReadsBackUnchanged) {
  const MachineTypes own{{"dgx",
                          {.resources = {.gpus = 8,
                                         .gpu_share_milli = 250,
                                         .gpu_memory_bytes = int64_t{8} << 30,
                                         .cpu_milli = 15'500,
                                         .memory_bytes = int64_t{64} << 30},
                           .gpu_model = "NVIDIA \"H200\""}}};
  for (const MachineTypes& types : {own, job::usual_machine_types(), MachineTypes()}) {
    const auto read = machine_types_from_json(machine_types_to_json(types));
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, types);
  }
}

TEST(MachineWire, HasTheDocumentedShape) {
  EXPECT_EQ(
      machine_types_to_json({{"V100", {.resources = {.gpus = 1}, .gpu_model = "Tesla V100"}}}),
      R"({"machine_types":[{"name":"V100","gpu_model":"Tesla V100","gpus":1,"gpu_share":0,)"
      R"("gpu_memory_bytes":0,"cpus":0,"memory_bytes":0}]})");
}

TEST(MachineWire, ReportsFaults) {
  EXPECT_EQ(faults_of(machine_types_from_json("{}")),
            std::vector<std::string>{"machine_types is missing"});
  EXPECT_EQ(faults_of(machine_types_from_json(R"({"machine_types":[{"gpus":"8"}]})")),
            (std::vector<std::string>{"machine_types[0].name is missing",
                                      "machine_types[0].gpus must be a whole number, not text"}));
}

}  // namespace
}  // namespace muster::api
