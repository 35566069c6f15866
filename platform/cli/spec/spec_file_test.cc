#include "cli/spec/spec_file.h"

#include <gtest/gtest.h>

#include "config/yaml.h"

namespace muster::cli::spec {

namespace {

job::JobSpec defaults() {
  job::JobSpec spec;
  spec.folder = "/home/ada";
  spec.environment = {{"PATH", "/usr/bin"}, {"LANG", "C"}};
  return spec;
}

Result<job::JobSpec> parse_job_file(const std::string& text) {
  return parse_spec_file(text, "job.yaml", defaults());
}

std::string refusal_of_file(const std::string& text) {
  const auto spec = parse_job_file(text);
  return spec ? "accepted" : spec.error().to_string();
}

TEST(SpecFile, ReadsEveryKey) {
  const auto spec = parse_job_file(R"(name: dist
project: vision
kind: mpi
workers: 2
slots_per_worker: 4
command: [mpirun, -np, 8, ./train]
resources: {gpus: 1, cpus: 4, memory: 16G}
environment:
  OMP_NUM_THREADS: 4
  LANG: de_DE.UTF-8
  EMPTY: ""
folder: work
sandbox: none
start_timeout: 45s
grace: 1m
)");

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->name, "dist");
  EXPECT_EQ(spec->project, "vision");
  EXPECT_EQ(spec->kind, job::Kind::kMpi);
  EXPECT_EQ(spec->workers, 2);
  EXPECT_EQ(spec->slots_per_worker, 4);
  EXPECT_EQ(spec->command, (std::vector<std::string>{"mpirun", "-np", "8", "./train"}));
  EXPECT_EQ(spec->resources,
            (job::Resources{.gpus = 1, .cpu_milli = 4000, .memory_bytes = 16LL << 30}));
  EXPECT_EQ(
      spec->environment,
      (std::map<std::string, std::string>{
          {"EMPTY", ""}, {"LANG", "de_DE.UTF-8"}, {"OMP_NUM_THREADS", "4"}, {"PATH", "/usr/bin"}}));
  EXPECT_EQ(spec->folder, "/home/ada/work");
  EXPECT_EQ(spec->sandbox, job::Sandbox::kNone);
  EXPECT_EQ(spec->start_timeout, std::chrono::seconds(45));
  EXPECT_EQ(spec->grace, std::chrono::minutes(1));
}

TEST(SpecFile, ATextAsCommandIsRunByTheShell) {
  const auto spec = parse_job_file("name: one\ncommand: |\n  cd data && ./train\n");

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->command, (std::vector<std::string>{"sh", "-c", "cd data && ./train\n"}));
  EXPECT_EQ(spec->folder, "/home/ada");
}

TEST(SpecFile, WhatLooksLikeABooleanStaysAsItWasWritten) {
  const auto spec = parse_job_file("name: one\ncommand: [echo, yes, 007, 1e3]\n");

  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->command, (std::vector<std::string>{"echo", "yes", "007", "1e3"}));
}

TEST(SpecFile, FiveFaultsAreReportedAtOnceEachWithLineAndField) {
  const auto spec = parse_job_file(R"(name: Dist
kind: mpi
wrokers: 2
workers: -1
command: [mpirun, ./train]
resources:
  gpus: many
grace: 10 parsecs
)");

  ASSERT_FALSE(spec);
  const std::vector<base::Fault>& faults = spec.error().faults;
  ASSERT_EQ(faults.size(), 5U) << spec.error().to_string();
  const std::vector<std::pair<int, std::string>> places{
      {1, "name"}, {3, "wrokers"}, {4, "workers"}, {7, "resources.gpus"}, {8, "grace"}};
  for (size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(faults[i].line, places[i].first);
    EXPECT_EQ(faults[i].field, places[i].second);
  }
  EXPECT_EQ(spec.error().what, "'job.yaml' has 5 faults");
  EXPECT_NE(faults[1].what.find("did you mean 'workers'?"), std::string::npos);
  EXPECT_EQ(faults[2].what, "-1 is out of range; give 1 to 1000");
}

struct BadFile {
  std::string text;
  std::string says;
};

TEST(SpecFile, SaysWhatIsWrongAndWhere) {
  const std::string good = "name: one\ncommand: [ls]\n";
  const BadFile files[] = {
      {good + "name: two\n", "line 3: name: is given twice"},
      {good + "environment:\n  A: 1\n  A: 2\n", "line 5: environment.A: is given twice"},
      {good + "environment:\n  A:\n", "line 4: environment.A: has no value"},
      {good + "environment:\n  1A: x\n", "line 3: environment: '1A' is not a variable name"},
      {good + "environment: [A]\n", "line 3: environment: must be a map, not a list"},
      {good + "kind: mpj\n",
       "line 3: kind: 'mpj' is none of single, mpi, grpc, torch; did you mean 'mpi'?"},
      {good + "kind: mpi\n", "line 3: workers: is missing"},
      {good + "workers: 2\n", "line 3: workers: a single job has no workers"},
      {good + "resources: {gpus: 1, memroy: 2}\n", "resources.memroy: unknown key; did you mean"},
      {good + "grace: [10s]\n", "line 3: grace: must be a single value, not a list"},
      {"name: one\ncommand:\n  - ls\n  - [-l]\n", "line 4: command[1]: must be a single value"},
      {"name: one\n", "line 1: command: is missing"},
      {"command: [ls]\n", "line 1: name: is missing"},
      {"", "must be a map, not nothing"},
      {"- name: one\n", "must be a map, not a list"},
      {good + "folder: [\n", "line 4: "},
      {good + "\tgrace: 1s\n", "line 3: "},
      {good + "---\nname: two\n", "line 3: a second document begins"},
      {",`\x0f", "line 1: "},  // yaml-cpp finds documents without end in it
      {good + "folder: *nowhere\n", "line 3: "},
  };
  for (const BadFile& file : files) {
    EXPECT_NE(refusal_of_file(file.text).find(file.says), std::string::npos)
        << file.text << "\n"
        << refusal_of_file(file.text) << "\n  should say: " << file.says;
  }
}

TEST(SpecFile, AFaultyKindHidesNoOtherFaultAndInventsNone) {
  EXPECT_EQ(refusal_of_file("name: one\nkind: x\nworkers: 2\ncommand: [ls]\n"),
            "'job.yaml' has 1 fault\n  line 2: kind: 'x' is none of single, mpi, grpc, torch");
}

std::string repeated(const std::string& text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

TEST(Yaml, BoundsWhatAliasesAndNestingCanCost) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string number = std::to_string(i);
    const std::string before = repeated("*a" + std::to_string(i - 1) + ", ", 10);
    bomb.append("a").append(number).append(": &a").append(number).append(" [").append(before);
    bomb += "]\n";
  }
  const std::string cases[] = {
      bomb,
      "a: &a [*a, *a]\n",
      repeated("[", 200) + repeated("]", 200),
      repeated("[", 100'000),
      std::string(config::kMaxYamlBytes + 1, ' '),
  };
  for (const std::string& text : cases)
    EXPECT_FALSE(config::parse_yaml(text)) << text.substr(0, 40);
}

TEST(Yaml, KeepsLinesAndDoubledKeys) {
  const auto value = config::parse_yaml("# comment\na: 1\na: [2,\n  3]\n");

  ASSERT_TRUE(value);
  ASSERT_EQ(value->map.size(), 2U);
  EXPECT_EQ(value->map[1].key, "a");
  EXPECT_EQ(value->map[1].line, 3);
  EXPECT_EQ(value->map[1].value.list[1].line, 4);
}

}  // namespace

}  // namespace muster::cli::spec
