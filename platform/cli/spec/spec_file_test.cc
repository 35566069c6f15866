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

TEST(SpecFile, ACommandAsTextIsRunByTheShell) {
  const auto spec = parse_job_file("name: one\ncommand: |\n  cd data && ./train\n");

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->command, (std::vector<std::string>{"sh", "-c", "cd data && ./train\n"}));
  EXPECT_EQ(spec->folder, "/home/ada");
}

TEST(SpecFile, AWordThatLooksLikeABooleanIsNotChanged) {
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
  std::string fault;
};

TEST(SpecFile, ReportsFaultsWithTheirPlaces) {
  const std::string good = "name: one\ncommand: [ls]\n";
  const BadFile files[] = {
      {good + "name: two\n", "line 3: name: is given twice"},
      {good + "environment:\n  A: 1\n  A: 2\n", "line 5: environment.A: is given twice"},
      {good + "environment:\n  A:\n", "line 4: environment.A: has no value"},
      {good + "environment:\n  1A: x\n", "line 3: environment: '1A' is not a variable name"},
      {good + "environment: [A]\n", "line 3: environment: must be a map, not a list"},
      {good + "kind: mpj\n",
       "line 3: kind: 'mpj' is invalid: expected one of single, mpi, grpc, torch; did you mean "
       "'mpi'?"},
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
      {good + "\tgrace: 1s\n", "line 3: is indented with a tab"},
      {good + "resources:\n\tgpus: 1\n", "line 4: is indented with a tab"},
      {good + "---\nname: two\n", "line 3: a second document begins"},
      {",`\x0f", "line 1: "},  // yaml-cpp finds endless documents in it
      {good + "folder: *nowhere\n", "line 3: "},
  };
  for (const BadFile& file : files) {
    EXPECT_NE(refusal_of_file(file.text).find(file.fault), std::string::npos)
        << file.text << "\n"
        << refusal_of_file(file.text) << "\n  should say: " << file.fault;
  }
}

TEST(SpecFile, AnInvalidKindHidesNoOtherFaultAndCausesNone) {
  EXPECT_EQ(refusal_of_file("name: one\nkind: x\nworkers: 2\ncommand: [ls]\n"),
            "'job.yaml' has 1 fault\n"
            "  line 2: kind: 'x' is invalid: expected one of single, mpi, grpc, torch");
}

std::string repeated(const std::string& text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

TEST(Yaml, LimitsTheCostOfAliasesAndNesting) {
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

TEST(Yaml, KeepsLinesAndRepeatedKeys) {
  const auto value = config::parse_yaml("# comment\na: 1\na: [2,\n  3]\n");

  ASSERT_TRUE(value);
  ASSERT_EQ(value->map.size(), 2U);
  EXPECT_EQ(value->map[1].key, "a");
  EXPECT_EQ(value->map[1].line, 3);
  EXPECT_EQ(value->map[1].value.list[1].line, 4);
}

}  // namespace

// The keys of a job file on resources, scheduling and placement.

namespace {

Result<job::JobSpec> parse_scheduling(const std::string& text) {
  job::JobSpec defaults;
  defaults.folder = "/home/ada";
  return parse_spec_file("name: one\ncommand: [ls]\n" + text, "job.yaml", defaults);
}

std::string scheduling_refusal(const std::string& text) {
  const auto spec = parse_scheduling(text);
  return spec ? "accepted" : spec.error().to_string();
}

TEST(SpecFileScheduling, ReadsEveryKey) {
  const auto spec = parse_scheduling(R"(kind: mpi
workers: 8
scheduling:
  purpose: inference
  priority: 60
  preemptible: false
  min_workers: 2
  resize: live
  node_pools: [a100, default]
  gpu_models: NVIDIA A100
  packing: spread
  required_topology: rack
  preferred_topology: block
  time_limit: 12h
  retries: 3
  retry_rules:
    - {exit_code: 42, action: fail}
    - log_pattern: "CUDA error: \\w+"
      action: avoid-node
)");

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(
      spec->scheduling,
      (job::Scheduling{.purpose = job::Purpose::kInference,
                       .priority = 60,
                       .preemptible = false,
                       .min_workers = 2,
                       .resize = job::Resize::kLive,
                       .node_pools = {"a100", "default"},
                       .gpu_models = {"NVIDIA A100"},
                       .packing = job::Packing::kSpread,
                       .required_topology = "rack",
                       .preferred_topology = "block",
                       .time_limit = std::chrono::hours(12),
                       .retries = 3,
                       .retry_rules = {{.exit_code = 42, .action = job::RetryRule::Action::kFail},
                                       {.log_pattern = "CUDA error: \\w+",
                                        .action = job::RetryRule::Action::kAvoidNode}}}));
}

TEST(SpecFileScheduling, ReadsFractionsOfGpusAndCpus) {
  EXPECT_EQ(parse_scheduling("resources: {gpu_share: 0.5, cpus: 0.5}\n")->resources,
            (job::Resources{.gpu_share_milli = 500, .cpu_milli = 500}));
  EXPECT_EQ(parse_scheduling("resources: {gpu_memory: 8G, cpus: 500m}\n")->resources,
            (job::Resources{.gpu_memory_bytes = 8LL << 30, .cpu_milli = 500}));
}

struct BadScheduling {
  std::string text;
  std::string fault;
};

TEST(SpecFileScheduling, ReportsFaultsWithTheirPlaces) {
  const BadScheduling files[] = {
      {"resources: {gpu_share: 1}\n", "line 3: resources.gpu_share: 1 is out of range"},
      {"resources: {gpu_share: 0}\n", "line 3: resources.gpu_share: 0 is out of range"},
      {"resources:\n  gpus: 1\n  gpu_share: 0.5\n", "line 5: resources.gpu_share: is a part of"},
      {"resources: {cpus: 0.0001}\n", "line 3: resources.cpus: '0.0001' is not a number of CPUs"},
      {"resources: {gpus: 0.5}\n",
       "line 3: resources.gpus: '0.5' is not a whole number; a part of one GPU is gpu_share: 0.5"},
      {"scheduling: high\n", "line 3: scheduling: must be a map, not a single value"},
      {"retries: -1\n", "line 3: retries: unknown key here; write it under 'scheduling'"},
      {"gpus: 2\n", "line 3: gpus: unknown key here; write it under 'resources'"},
      {"scheduling:\n  priorty: 1\n", "line 4: scheduling.priorty: unknown key; did you mean"},
      {"scheduling:\n  priority: -1\n", "line 4: scheduling.priority: -1 is out of range"},
      {"scheduling:\n  priority: 1001\n", "line 4: scheduling.priority: 1001 is out of range"},
      {"scheduling:\n  purpose: trian\n",
       "line 4: scheduling.purpose: 'trian' is invalid: expected one of train, build, inference; "
       "did you mean"},
      {"scheduling:\n  preemptible: maybe\n",
       "line 4: scheduling.preemptible: 'maybe' is neither true nor false"},
      {"scheduling:\n  min_workers: 1\n", "line 4: scheduling.min_workers: a single job has no"},
      {"scheduling:\n  resize: lively\n",
       "line 4: scheduling.resize: 'lively' is invalid: expected one of auto, live, restart; did "
       "you mean"},
      {"scheduling:\n  resize: live\n", "line 4: scheduling.resize: 'live' is for elastic jobs"},
      {"scheduling:\n  node_pools:\n    - a\n    - \"\"\n",
       "line 6: scheduling.node_pools[1]: '' is not a node pool name"},
      {"scheduling:\n  gpu_models: {a: b}\n",
       "line 4: scheduling.gpu_models: must be a list, not a map"},
      {"scheduling:\n  packing: tight\n",
       "line 4: scheduling.packing: 'tight' is invalid: expected one of auto, pack, spread"},
      {"scheduling:\n  time_limit: 0s\n", "line 4: scheduling.time_limit: give a time between"},
      {"scheduling:\n  retry_rules: fail\n",
       "line 4: scheduling.retry_rules: must be a list, not a single value"},
      {"scheduling:\n  retry_rules:\n    - exit_code: 1\n",
       "line 5: scheduling.retry_rules[0].action: is missing"},
      {"scheduling:\n  retry_rules:\n    - action: fail\n",
       "line 5: scheduling.retry_rules[0]: matches no failure"},
      {"scheduling:\n  retry_rules:\n    - action: fail\n      log_pattern: (\n",
       "line 6: scheduling.retry_rules[0].log_pattern: '(' is not a pattern"},
      {"scheduling:\n  retry_rules:\n    - action: stop\n      exit_code: 1\n",
       "line 5: scheduling.retry_rules[0].action: 'stop' is invalid: expected one of retry, fail, "
       "avoid-node"},
  };
  for (const BadScheduling& file : files) {
    EXPECT_NE(scheduling_refusal(file.text).find(file.fault), std::string::npos)
        << file.text << "\n"
        << scheduling_refusal(file.text) << "\n  should say: " << file.fault;
  }
}

TEST(SpecFileScheduling, AnInvalidValueCausesNoOtherFault) {
  EXPECT_EQ(scheduling_refusal("scheduling:\n  retry_rules:\n    - {exit_code: x, action: fail}\n"),
            "'job.yaml' has 1 fault\n"
            "  line 5: scheduling.retry_rules[0].exit_code: 'x' is not a whole number");
  EXPECT_EQ(scheduling_refusal("kind: mpi\nworkers: x\nscheduling: {min_workers: 4}\n"),
            "'job.yaml' has 1 fault\n  line 4: workers: 'x' is not a whole number");
  EXPECT_EQ(
      scheduling_refusal("kind: mpi\nworkers: 4\nscheduling: {min_workers: x, resize: live}\n"),
      "'job.yaml' has 1 fault\n  line 5: scheduling.min_workers: 'x' is not a whole number");
  EXPECT_EQ(scheduling_refusal("kind: grcp\nevaluators: 1\n"),
            "'job.yaml' has 1 fault\n"
            "  line 3: kind: 'grcp' is invalid: expected one of single, mpi, grpc, "
            "torch; did you mean 'grpc'?");
}

}  // namespace

namespace {

using job::SecretUse;

Result<job::JobSpec> parse_secrets(const std::string& secrets) {
  job::JobSpec defaults;
  defaults.folder = "/home/ada";
  defaults.environment = {{"LANG", "C"}};
  return parse_spec_file("name: one\ncommand: [ls]\n" + secrets, "job.yaml", defaults);
}

/// The faults, each with its line.
std::vector<std::string> faults_of_secrets(const std::string& secrets) {
  const auto spec = parse_secrets(secrets);
  if (spec) return {"accepted"};
  std::vector<std::string> texts;
  for (const base::Fault& fault : spec.error().faults) {
    texts.push_back(std::to_string(fault.line) + " " + fault.field + " " + fault.what);
  }
  return texts;
}

TEST(SecretsOfAJobFile, AreNamesOrMaps) {
  const auto spec = parse_secrets(
      "secrets:\n"
      "  - API_KEY\n"
      "  - {name: CA, file: tls/ca.pem}\n"
      "  - name: LOGIN\n"
      "    variable: USER_NAME\n"
      "    file: login\n"
      "  - {name: ALONE}\n");

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->secrets,
            (std::vector<SecretUse>{{.name = "API_KEY", .variable = "API_KEY"},
                                    {.name = "CA", .file = "tls/ca.pem"},
                                    {.name = "LOGIN", .variable = "USER_NAME", .file = "login"},
                                    {.name = "ALONE", .variable = "ALONE"}}));
}

TEST(SecretsOfAJobFile, ReportEachFaultOnceWithItsLine) {
  EXPECT_EQ(faults_of_secrets("secrets:\n"
                              "  - 1KEY\n"
                              "  - {name: CA, path: ca.pem}\n"
                              "  - {file: ca.pem}\n"
                              "  - {name: [A]}\n"
                              "  - [B]\n"
                              "  - {name: C, file: ../c}\n"
                              "  - {name: D, variable: {}}\n"
                              "  - LANG\n"
                              "  - {name: E, variable: \"\"}\n"),
            (std::vector<std::string>{
                "4 secrets[0].name '1KEY' is not the name of a secret; use letters, digits and "
                "'_'",
                "5 secrets[1].path unknown key", "6 secrets[2].name is missing",
                "7 secrets[3].name must be a single value, not a list",
                "8 secrets[4] must be a map, not a list",
                "9 secrets[5].file '../c' is not a path below /generated/secrets; use at most "
                "100 characters, as in tls/ca.pem",
                "10 secrets[6].variable must be a single value, not a map",
                "11 secrets[7].variable 'LANG' is also in the environment of the job",
                "12 secrets[8] has no destination; give it a variable or a file"}));
}

TEST(SecretsOfAJobFile, MustBeAList) {
  EXPECT_EQ(faults_of_secrets("secrets: API_KEY\n"),
            std::vector<std::string>{"3 secrets must be a list, not a single value"});
  EXPECT_EQ(faults_of_secrets("secrets: {API_KEY: x}\n"),
            std::vector<std::string>{"3 secrets must be a list, not a map"});
}

}  // namespace

}  // namespace muster::cli::spec
