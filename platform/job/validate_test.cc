#include "job/validate.h"

#include <gtest/gtest.h>

#include "job/test_specs.h"

namespace muster::job {
namespace {

std::vector<std::string> fields_of(const std::vector<Fault>& faults) {
  std::vector<std::string> fields;
  for (const Fault& fault : faults) fields.push_back(fault.field);
  return fields;
}

TEST(Validate, AcceptsACompleteSpec) {
  EXPECT_TRUE(validate(valid_mpi_spec(2)).empty());
}

TEST(Validate, ReportsEveryFaultAtOnceByField) {
  JobSpec spec = valid_mpi_spec(2);
  spec.name = "Not_A_Label";
  spec.command = {};
  spec.workers = 0;
  spec.environment = {{"1BAD", "x"}};
  spec.folder = "relative";

  EXPECT_EQ(fields_of(validate(spec)),
            (std::vector<std::string>{"name", "command", "workers", "environment", "folder"}));
}

TEST(Validate, ASingleJobHasNoWorkers) {
  JobSpec spec = valid_mpi_spec(2);
  spec.kind = Kind::kSingle;

  EXPECT_EQ(fields_of(validate(spec)), std::vector<std::string>{"workers"});
}

TEST(Validate, RefusesBytesThatExecCannotPass) {
  JobSpec spec = valid_mpi_spec(2);
  spec.command.emplace_back("a\0b", 3);
  spec.environment["A"] = std::string("\0", 1);

  EXPECT_EQ(fields_of(validate(spec)), (std::vector<std::string>{"command[2]", "environment.A"}));
}

TEST(Validate, RefusesMoreTextThanAServerKeeps) {
  constexpr size_t kMuch = 100 << 10;
  JobSpec spec = valid_mpi_spec(2);
  spec.command.insert(spec.command.end(), 2, std::string(kMuch, 'x'));
  EXPECT_TRUE(validate(spec).empty());
  spec.environment["MUCH"] = std::string(kMuch, 'x');

  EXPECT_EQ(fields_of(validate(spec)), std::vector<std::string>{"command"});
}

// execve(2) fails with E2BIG.
TEST(Validate, RefusesArgumentsAndVariablesThatLinuxPassesToNoProgram) {
  constexpr size_t kMost = 131'071;
  JobSpec spec = valid_mpi_spec(2);
  spec.arguments = {std::string(kMost, 'x')};
  EXPECT_EQ(validate(spec), std::vector<Fault>{});
  spec.arguments.clear();
  spec.environment["A"] = std::string(kMost - 2, 'x');
  EXPECT_EQ(validate(spec), std::vector<Fault>{});

  spec.environment["A"] += 'x';
  EXPECT_EQ(validate(spec), (std::vector<Fault>{{.field = "environment.A",
                                                 .what = "is 131072 bytes long with its name; a "
                                                         "variable has at most 131071: put the "
                                                         "value in a file"}}));
  spec.environment.clear();
  spec.worker_command = {"serve", std::string(kMost + 1, 'x')};
  EXPECT_EQ(validate(spec), (std::vector<Fault>{{.field = "worker_command[1]",
                                                 .what = "is 131072 bytes long; an argument of a "
                                                         "program has at most 131071: put the "
                                                         "rest in a file"}}));
}

TEST(JobName, IsADnsLabelThatLeavesRoomForTheTask) {
  for (const char* name : {"a", "dist", "resnet-50", "0", "a-1"}) EXPECT_TRUE(is_job_name(name));
  for (const char* name : {"", "-a", "a-", "A", "a_b", "a.b", "../a", "a b"}) {
    EXPECT_FALSE(is_job_name(name)) << name;
  }
  EXPECT_TRUE(is_job_name(std::string(48, 'x')));
  EXPECT_FALSE(is_job_name(std::string(49, 'x')));
}

}  // namespace
namespace {

JobSpec labelless_spec() {
  return {.name = "a", .command = {"b"}, .folder = "/c"};
}

std::vector<Fault> label_faults(std::map<std::string, std::string> labels,
                                std::map<std::string, std::string> annotations = {}) {
  JobSpec spec = labelless_spec();
  spec.labels = std::move(labels);
  spec.annotations = std::move(annotations);
  return validate(spec);
}

TEST(ValidateLabels, AcceptsTagsAndNamesOfEveryKind) {
  EXPECT_EQ(label_faults({{"nightly", ""},
                          {"team.example/owner", "ada"},
                          {"my first tag", ""},
                          {"Zoë 漢字 🚀", "très bien"},
                          {std::string(128, 'k'), std::string(256, 'v')}}),
            std::vector<Fault>{});
}

TEST(ValidateLabels, ReportsInvalidLabels) {
  const std::string no_name =
      " is not a valid name; use 1 to 128 bytes of text without control characters, and no blank "
      "at its ends";
  const std::string no_value =
      "its value is not text of at most 256 bytes without control characters";
  const struct {
    std::string key, value, field, what;
  } cases[] = {
      {"", "", "labels", "''" + no_name},
      {" a", "", "labels", "' a'" + no_name},
      {"a ", "", "labels", "'a '" + no_name},
      {"a\nb", "", "labels", "'a\nb'" + no_name},
      {"a\xC2\x85"
       "b",
       "", "labels",
       "'a\xC2\x85"
       "b'" +
           no_name},
      {std::string(129, 'k'), "", "labels", "'" + std::string(60, 'k') + "...'" + no_name},
      {"\xFF", "", "labels", "'\xEF\xBF\xBD'" + no_name},
      {"a=b", "", "labels", "'a=b' contains '=', which separates name and value"},
      {"a", "\x1B[31m", "labels.a", no_value},
      {"a", "\xC3", "labels.a", no_value},
      {"a", std::string(257, 'v'), "labels.a", no_value},
  };
  for (const auto& [key, value, field, what] : cases) {
    EXPECT_EQ(label_faults({{key, value}}), (std::vector<Fault>{{.field = field, .what = what}}));
  }
}

TEST(ValidateLabels, AcceptsSixtyFour) {
  std::map<std::string, std::string> labels;
  for (int i = 0; i < 64; ++i) labels["tag-" + std::to_string(i)] = "";
  EXPECT_EQ(label_faults(labels), std::vector<Fault>{});

  labels["one-more"] = "";

  EXPECT_EQ(label_faults(labels),
            (std::vector<Fault>{{.field = "labels", .what = "are 65; give at most 64"}}));
}

TEST(ValidateLabels, KeepsAnyBytesInAnnotationsUpToALimit) {
  EXPECT_EQ(label_faults({}, {{"gradient/workspace=x", "a\nb\xFF"},
                              {"b", std::string((64 << 10) - 30, 'x')}}),
            std::vector<Fault>{});
  EXPECT_EQ(label_faults({}, {{"a", std::string(64 << 10, 'x')}}),
            (std::vector<Fault>{{.field = "annotations",
                                 .what = "are 65537 bytes together; at most 65536 are kept"}}));
  EXPECT_EQ(label_faults({}, {{"a\tb", "x"}})[0].field, "annotations");
}

TEST(Labels, OfARequestFollowTheRulesOfASpec) {
  EXPECT_TRUE(is_name_template("train-{n}"));
  EXPECT_FALSE(is_name_template("train"));
  EXPECT_FALSE(is_name_template("{n}-{n}"));
  EXPECT_FALSE(is_name_template("Train-{n}"));
  EXPECT_TRUE(is_label_name("nightly"));
  EXPECT_FALSE(is_label_name("a=b"));
  EXPECT_FALSE(is_label_name(""));
  EXPECT_TRUE(is_label_value(""));
  EXPECT_FALSE(is_label_value("a\tb"));
}

}  // namespace
namespace {

JobSpec single() {
  return {.name = "a", .command = {"train"}, .folder = "/c"};
}

JobSpec mpi() {
  return {.name = "a", .kind = Kind::kMpi, .command = {"mpirun"}, .workers = 2, .folder = "/c"};
}

JobSpec grpc() {
  return {.name = "a",
          .kind = Kind::kGrpc,
          .command = {"train"},
          .workers = 1,
          .parameter_servers = 1,
          .folder = "/c"};
}

JobSpec torch() {
  return {.name = "a", .kind = Kind::kTorch, .command = {"torchrun"}, .workers = 3, .folder = "/c"};
}

TEST(ValidateRoles, AcceptsEachKindWithAllItsRoles) {
  const JobSpec all[] = {
      single(),
      changed(single(),
              [](JobSpec& spec) {
                spec.image = "nvcr.io/nvidia/pytorch:24.01-py3";
                spec.command = {};
                spec.arguments = {"--epochs", "2", ""};
              }),
      mpi(),
      changed(mpi(),
              [](JobSpec& spec) {
                spec.worker_command = {"sleep", "infinity"};
                spec.leader_slots = 8;
                spec.leader = {.image = "horovod/horovod",
                               .resources = {.gpus = 8},
                               .environment = {{"NCCL_DEBUG", "INFO"}}};
              }),
      grpc(),
      changed(grpc(),
              [](JobSpec& spec) {
                spec.workers = 0;
                spec.command = {};
                spec.leader = {.command = {"chief"}};
                spec.parameter_server = {.image = "tf", .resources = {.cpu_milli = 500}};
              }),
      changed(grpc(), [](JobSpec& spec) { spec.workers = spec.parameter_servers = 500; }),
      changed(grpc(),
              [](JobSpec& spec) {
                spec.evaluators = 1;
                spec.evaluator = {.image = "tf",
                                  .command = {"python3", "evaluate.py"},
                                  .resources = {.gpus = 1},
                                  .environment = {{"ROLE", "evaluator"}}};
              }),
      torch(),
      changed(torch(),
              [](JobSpec& spec) {
                spec.workers = 0;
                spec.leader = {.arguments = {"--node_rank=0"}};
              }),
  };
  for (const JobSpec& spec : all) EXPECT_EQ(validate(spec), std::vector<Fault>{});
}

struct WrongRole {
  JobSpec spec;
  SpecChange change;
  std::string field;
  std::string what;
};

void expect_role_faults(const std::vector<WrongRole>& wrongs) {
  for (const WrongRole& wrong : wrongs) {
    EXPECT_EQ(validate(changed(wrong.spec, wrong.change)),
              (std::vector<Fault>{{.field = wrong.field, .what = wrong.what}}));
  }
}

TEST(ValidateRoles, ReportsInvalidNumbersOfTasks) {
  expect_role_faults({
      {single(), [](JobSpec& spec) { spec.workers = 1; }, "workers",
       "a single job has no workers; leave it out or use kind mpi"},
      {mpi(), [](JobSpec& spec) { spec.workers = 0; }, "workers",
       "0 is out of range; give 1 to 1000"},
      {grpc(), [](JobSpec& spec) { spec.workers = -1; }, "workers",
       "-1 is out of range; give 0 to 1000"},
      {torch(), [](JobSpec& spec) { spec.workers = 1001; }, "workers",
       "1001 is out of range; give 0 to 1000"},
      {grpc(), [](JobSpec& spec) { spec.parameter_servers = -1; }, "parameter_servers",
       "-1 is out of range; give 0 to 1000"},
      {grpc(), [](JobSpec& spec) { spec.workers = 501, spec.parameter_servers = 500; },
       "parameter_servers", "are 1001 tasks together with the workers; the maximum is 1000"},
      {grpc(), [](JobSpec& spec) { spec.evaluators = 2; }, "evaluators",
       "2 is out of range; give 0 to 1"},
      {grpc(), [](JobSpec& spec) { spec.evaluators = -1; }, "evaluators",
       "-1 is out of range; give 0 to 1"},
      {mpi(), [](JobSpec& spec) { spec.leader_slots = 1025; }, "leader_slots",
       "1025 is out of range; give 0 to 1024"},
  });
}

TEST(ValidateRoles, ReportsRolesThatTheKindDoesNotHave) {
  const std::string no_servers = "only a grpc job has parameter servers; leave it out";
  const std::string no_server = "only a grpc job has parameter servers; leave it out";
  expect_role_faults({
      {single(), [](JobSpec& spec) { spec.leader.resources.gpus = 1; }, "leader",
       "a single job has only one task; set this on the job itself"},
      {torch(), [](JobSpec& spec) { spec.allow_launcher_only = true; }, "allow_launcher_only",
       "only an mpi job has a launcher; leave it out"},
      {single(), [](JobSpec& spec) { spec.leader_slots = 1; }, "leader_slots",
       "only an mpi job has slots; leave it out"},
      {torch(), [](JobSpec& spec) { spec.leader_slots = 1; }, "leader_slots",
       "only an mpi job has slots; leave it out"},
      {grpc(), [](JobSpec& spec) { spec.worker_command = {"sleep"}; }, "worker_command",
       "is only for the workers of an mpi job; set 'command'"},
      {mpi(), [](JobSpec& spec) { spec.parameter_servers = 1; }, "parameter_servers", no_servers},
      {torch(), [](JobSpec& spec) { spec.parameter_servers = 1; }, "parameter_servers", no_servers},
      {mpi(), [](JobSpec& spec) { spec.parameter_server.image = "x"; }, "parameter_server",
       no_server},
      {torch(), [](JobSpec& spec) { spec.evaluators = 1; }, "evaluators",
       "only a grpc job has an evaluator; leave it out"},
      {single(), [](JobSpec& spec) { spec.evaluator.command = {"x"}; }, "evaluator",
       "only a grpc job has an evaluator; leave it out"},
      {mpi(), [](JobSpec& spec) { spec.leader.command = {"mpirun"}; }, "leader.command",
       "the launcher runs the job's command; set 'command'"},
      {mpi(), [](JobSpec& spec) { spec.leader.arguments = {"-v"}; }, "leader.arguments",
       "the launcher gets the job's arguments; set 'arguments'"},
  });
}

TEST(ValidateRoles, ReportsARoleWithNothingToRun) {
  const std::string empty = "is empty; give a command, as in: -- python3 train.py";
  const auto without_command = [](JobSpec& spec) { spec.command = {}; };
  expect_role_faults({
      {single(), without_command, "command", empty},
      {mpi(), without_command, "command", empty},
      {grpc(), without_command, "command", empty},
      {torch(), [](JobSpec& spec) { spec.command = {""}; }, "command", empty},
      {grpc(),
       [](JobSpec& spec) {
         spec.command = {};
         spec.workers = 0;
         spec.parameter_server.image = "tf";
       },
       "leader.command", empty},
      {grpc(),
       [](JobSpec& spec) {
         spec.command = {};
         spec.workers = 0;
         spec.leader.command = {"chief"};
       },
       "parameter_server.command", empty},
      {grpc(),
       [](JobSpec& spec) {
         spec.command = {};
         spec.workers = spec.parameter_servers = 0;
         spec.evaluators = 1;
         spec.leader.command = {"chief"};
       },
       "evaluator.command", empty},
      {mpi(), [](JobSpec& spec) { spec.worker_command = {""}; }, "worker_command",
       "names no program to run"},
      {torch(), [](JobSpec& spec) { spec.leader.command = {"", "x"}; }, "leader.command",
       "names no program to run"},
  });
}

TEST(ValidateRoles, RefusesInvalidImageNames) {
  const auto what = [](const std::string& image) {
    return in_quotes(image) +
           " is not the name of an image; use at most 512 letters, digits and signs, as in "
           "nvcr.io/nvidia/pytorch:24.01-py3";
  };
  for (const std::string& image : {std::string("a b"), std::string("a\n"), std::string("--rm"),
                                   std::string("\xFF"), std::string(513, 'x')}) {
    EXPECT_EQ(validate(changed(single(), [&](JobSpec& spec) { spec.image = image; })),
              (std::vector<Fault>{{.field = "image", .what = what(image)}}));
  }
  EXPECT_EQ(validate(changed(grpc(), [](JobSpec& spec) { spec.parameter_server.image = "a b"; })),
            (std::vector<Fault>{{.field = "parameter_server.image", .what = what("a b")}}));
}

TEST(ValidateRoles, ExplainsWhyAWordIsNotAnImageName) {
  EXPECT_EQ(validate(changed(mpi(), [](JobSpec& spec) { spec.leader.image = "Horovod:0.18"; })),
            (std::vector<Fault>{{.field = "leader.image",
                                 .what = "'Horovod:0.18' is not the name of an image: it has "
                                         "capital letters; only a tag may have them"}}));
}

TEST(ValidateRoles, NamesTheRoleInTheFieldOfAFault) {
  const std::string nul(1, '\0');
  JobSpec spec = grpc();
  spec.arguments = {nul};
  spec.leader = {.command = {"c", nul},
                 .arguments = {nul},
                 .resources = {.gpus = -1},
                 .environment = {{"1BAD", ""}}};
  spec.parameter_server = {.resources = {.gpus = 1, .gpu_share_milli = 500},
                           .environment = {{"A", nul}}};
  spec.evaluator = {.image = "a b",
                    .arguments = {nul},
                    .resources = {.cpu_milli = -1},
                    .environment = {{"A", nul}}};

  std::vector<std::string> fields;
  for (const Fault& fault : validate(spec)) fields.push_back(fault.field);

  EXPECT_EQ(fields, (std::vector<std::string>{
                        "arguments[0]", "leader.command[1]", "leader.arguments[0]",
                        "evaluator.image", "evaluator.arguments[0]", "leader.resources.gpus",
                        "parameter_server.resources.gpu_share", "evaluator.resources.cpus",
                        "leader.environment", "parameter_server.environment.A",
                        "evaluator.environment.A"}));
}

TEST(ValidateRoles, CountsTheTextOfEveryRole) {
  const std::string much(100 << 10, 'x');
  const SpecChange changes[] = {
      [&](JobSpec& spec) { spec.arguments = {much, much, much}; },
      [&](JobSpec& spec) { spec.leader.command = {much, much, much}; },
      [&](JobSpec& spec) { spec.leader.arguments = {much, much, much}; },
      [&](JobSpec& spec) { spec.leader.environment = {{"A", much}, {"B", much}, {"C", much}}; },
      [&](JobSpec& spec) { spec.parameter_server.command = {much, much, much}; },
      [&](JobSpec& spec) { spec.evaluator.command = {much, much, much}; },
  };
  for (const SpecChange& change : changes) {
    const auto faults = validate(changed(grpc(), change));
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].field, "command");
    EXPECT_NE(faults[0].what.find("at most 262144 are allowed"), std::string::npos);
  }
}

}  // namespace
namespace {

using std::chrono::milliseconds;

TEST(ValidateScheduling, AcceptsEachFieldAtBothEndsOfItsRange) {
  JobSpec spec = valid_mpi_spec(4);
  spec.resources = {.gpu_share_milli = 1, .cpu_milli = 1};
  spec.scheduling = {.purpose = Purpose::kInference,
                     .priority = 0,
                     .preemptible = true,
                     .min_workers = 1,
                     .resize = Resize::kLive,
                     .node_pools = {"a100", "default"},
                     .gpu_models = {"NVIDIA A100-SXM4-80GB"},
                     .packing = Packing::kSpread,
                     .required_topology = "topology.kubernetes.io/zone",
                     .preferred_topology = "rack",
                     .time_limit = milliseconds(1),
                     .retries = 1000,
                     .retry_rules = {{.exit_code = 1, .action = RetryRule::Action::kFail},
                                     {.log_pattern = "Xid \\d+"}}};
  EXPECT_EQ(validate(spec), std::vector<Fault>{});

  spec.resources.gpu_share_milli = 999;
  spec.scheduling.priority = 1000;
  spec.scheduling.min_workers = 4;
  spec.scheduling.resize = Resize::kRestart;
  EXPECT_EQ(validate(spec), std::vector<Fault>{});
}

TEST(ValidateScheduling, AcceptsAMasterOrChiefWithoutWorkersAsTheMinimum) {
  for (const Kind kind : {Kind::kTorch, Kind::kGrpc}) {
    JobSpec spec = valid_mpi_spec(4);
    spec.kind = kind;
    spec.scheduling.min_workers = 0;
    EXPECT_EQ(validate(spec), std::vector<Fault>{}) << to_string(kind);
  }
}

TEST(ValidateScheduling, AcceptsALiveResizeOfAGrpcJobWithParameterServers) {
  JobSpec spec = valid_mpi_spec(4);
  spec.kind = Kind::kGrpc;
  spec.parameter_servers = 1;
  spec.scheduling = {.min_workers = 1, .resize = Resize::kLive};
  EXPECT_EQ(validate(spec), std::vector<Fault>{});
}

struct WrongScheduling {
  SpecChange change;
  std::string field;
  std::string what;
};

TEST(ValidateScheduling, NamesTheFieldAndItsFault) {
  const WrongScheduling wrongs[] = {
      {[](JobSpec& spec) { spec.resources.gpus = -1; }, "resources.gpus",
       "-1 is out of range; give 0 to 1024"},
      {[](JobSpec& spec) { spec.resources.gpu_share_milli = 1000; }, "resources.gpu_share",
       "1 is out of range; give 0.001 to 0.999"},
      {[](JobSpec& spec) { spec.resources.gpu_share_milli = -500; }, "resources.gpu_share",
       "-0.5 is out of range; give 0.001 to 0.999"},
      {[](JobSpec& spec) { spec.resources.gpu_memory_bytes = -1; }, "resources.gpu_memory",
       "is negative"},
      {[](JobSpec& spec) { spec.resources = {.gpus = 1, .gpu_share_milli = 500}; },
       "resources.gpu_share", "is a part of one GPU, and cannot be used with whole GPUs"},
      {[](JobSpec& spec) { spec.resources = {.gpus = 1, .gpu_memory_bytes = 1}; },
       "resources.gpu_memory", "is a part of one GPU, and cannot be used with whole GPUs"},
      {[](JobSpec& spec) { spec.resources = {.gpu_share_milli = 1, .gpu_memory_bytes = 1}; },
       "resources.gpu_memory", "cannot be used with gpu_share; give only one"},
      {[](JobSpec& spec) { spec.resources.cpu_milli = -1500; }, "resources.cpus",
       "-1.5 is out of range; give 0 to 65536"},
      {[](JobSpec& spec) { spec.resources.memory_bytes = -1; }, "resources.memory", "is negative"},
      {[](JobSpec& spec) { spec.resources.memory_bytes = INT64_MAX; }, "resources.memory",
       "8388607.9Ti is out of range; give 0 to 1024Ti"},
      {[](JobSpec& spec) { spec.resources.gpu_memory_bytes = int64_t{1} << 51; },
       "resources.gpu_memory", "2048Ti is out of range; give 0 to 1024Ti"},
      {[](JobSpec& spec) { spec.scheduling.priority = -1; }, "scheduling.priority",
       "-1 is out of range; give 0 to 1000"},
      {[](JobSpec& spec) { spec.scheduling.priority = 1001; }, "scheduling.priority",
       "1001 is out of range; give 0 to 1000"},
      {[](JobSpec& spec) {
         spec.scheduling.purpose = Purpose::kBuild;
         spec.scheduling.retries = 1;
       },
       "scheduling.retries",
       "an interactive job is never retried; leave it out, or leave out --interactive "
       "(purpose: build)"},
      {[](JobSpec& spec) { spec.scheduling.min_workers = 0; }, "scheduling.min_workers",
       "0 is out of range; give 1 to 4, the number of workers"},
      {[](JobSpec& spec) { spec.scheduling.min_workers = 5; }, "scheduling.min_workers",
       "5 is out of range; give 1 to 4, the number of workers"},
      {[](JobSpec& spec) {
         spec.kind = Kind::kSingle;
         spec.workers = 0;
         spec.scheduling.min_workers = 1;
       },
       "scheduling.min_workers", "a single job has no workers; leave it out"},
      {[](JobSpec& spec) {
         spec.kind = Kind::kTorch;
         spec.scheduling.min_workers = -1;
       },
       "scheduling.min_workers", "-1 is out of range; give 0 to 4, the number of workers"},
      {[](JobSpec& spec) {
         spec.kind = Kind::kGrpc;
         spec.scheduling.min_workers = 5;
       },
       "scheduling.min_workers", "5 is out of range; give 0 to 4, the number of workers"},
      {[](JobSpec& spec) {
         spec.workers = 0;
         spec.scheduling.min_workers = 1;
       },
       "workers", "0 is out of range; give 1 to 1000"},
      {[](JobSpec& spec) { spec.scheduling.resize = Resize::kLive; }, "scheduling.resize",
       "'live' is for elastic jobs, and this job has a fixed number of workers; also give "
       "min_workers (--min-workers)"},
      {[](JobSpec& spec) {
         spec.kind = Kind::kSingle;
         spec.workers = 0;
         spec.scheduling.resize = Resize::kRestart;
       },
       "scheduling.resize",
       "'restart' is for elastic jobs, and a single job has no workers; leave it out"},
      {[](JobSpec& spec) {
         spec.kind = Kind::kGrpc;
         spec.scheduling = {.min_workers = 1, .resize = Resize::kLive};
       },
       "scheduling.resize",
       "without parameter servers each worker of a grpc job waits for all others, so the job "
       "cannot continue when workers change; give parameter_servers, or 'restart'"},
      {[](JobSpec& spec) { spec.scheduling.node_pools = {"a", ""}; }, "scheduling.node_pools[1]",
       "'' is not a node pool name"},
      {[](JobSpec& spec) { spec.scheduling.gpu_models = {"A\n"}; }, "scheduling.gpu_models[0]",
       "'A\n' is not a GPU model name"},
      {[](JobSpec& spec) { spec.scheduling.gpu_models.assign(101, "A"); }, "scheduling.gpu_models",
       "has more than 100 entries"},
      {[](JobSpec& spec) { spec.scheduling.required_topology = " "; },
       "scheduling.required_topology", "' ' is not a topology level such as rack"},
      {[](JobSpec& spec) { spec.scheduling.preferred_topology = "\xFF"; },
       "scheduling.preferred_topology", "'\xFF' is not a topology level such as rack"},
      {[](JobSpec& spec) { spec.scheduling.time_limit = milliseconds(0); }, "scheduling.time_limit",
       "give a time between 1ms and 365d"},
      {[](JobSpec& spec) { spec.scheduling.retries = 1001; }, "scheduling.retries",
       "1001 is out of range; give 0 to 1000"},
      {[](JobSpec& spec) { spec.scheduling.retry_rules = {{}}; }, "scheduling.retry_rules[0]",
       "matches no failure; give an exit_code, a log_pattern or both"},
      {[](JobSpec& spec) { spec.scheduling.retry_rules = {{.exit_code = 256}}; },
       "scheduling.retry_rules[0].exit_code", "256 is out of range; give 1 to 255"},
      {[](JobSpec& spec) { spec.scheduling.retry_rules = {{.exit_code = 7, .last_exit_code = 6}}; },
       "scheduling.retry_rules[0].last_exit_code", "6 is out of range; give 7 to 255"},
      {[](JobSpec& spec) { spec.success = Success::kAll; }, "success",
       "only grpc and torch jobs have tasks of their own program"},
      {[](JobSpec& spec) { spec.chief_is_worker = true; }, "chief_is_worker",
       "only a grpc job has a chief; leave it out"},
      {[](JobSpec& spec) {
         spec.scheduling.retry_rules = {{.exit_code = 1}, {.log_pattern = std::string(201, 'a')}};
       },
       "scheduling.retry_rules[1].log_pattern", "is longer than 200 bytes"},
      {[](JobSpec& spec) { spec.scheduling.retry_rules.assign(101, {.exit_code = 1}); },
       "scheduling.retry_rules", "has more than 100 rules"},
  };
  for (const WrongScheduling& wrong : wrongs) {
    JobSpec spec = valid_mpi_spec(4);
    wrong.change(spec);
    EXPECT_EQ(validate(spec), (std::vector<Fault>{{.field = wrong.field, .what = wrong.what}}))
        << wrong.field;
  }
}

TEST(ValidateScheduling, ASingletonIsTextOfAHundredCharacters) {
  JobSpec spec = valid_mpi_spec(4);
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\u00fc";
  for (const std::string& valid : {std::string("\u00fc"), umlauts}) {
    spec.scheduling.singleton = valid;
    EXPECT_TRUE(validate(spec).empty()) << valid;
  }
  for (const std::string& wrong :
       {std::string(" a"), std::string("a\nb"), std::string("\xff"), umlauts + "a"}) {
    spec.scheduling.singleton = wrong;
    EXPECT_EQ(fields_of(validate(spec)), std::vector<std::string>{"scheduling.singleton"}) << wrong;
  }
}

TEST(ValidateScheduling, RefusesAnInvalidPattern) {
  JobSpec spec = valid_mpi_spec(4);
  spec.scheduling.retry_rules = {{.log_pattern = "(CUDA"}};

  const auto faults = validate(spec);

  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].field, "scheduling.retry_rules[0].log_pattern");
  EXPECT_EQ(faults[0].what.find("'(CUDA' is not a pattern: "), 0U) << faults[0].what;
}

TEST(ValidateScheduling, BoundsThePatternsOfAllRulesTogether) {
  JobSpec spec = valid_mpi_spec(4);
  spec.scheduling.retry_rules.assign(10, {.log_pattern = "x.{99}"});
  spec.scheduling.retry_rules.resize(100, {.log_pattern = "out of memory"});
  EXPECT_EQ(validate(spec), std::vector<Fault>{});

  spec.scheduling.retry_rules[99].log_pattern = "x*";

  EXPECT_EQ(validate(spec), (std::vector<Fault>{{.field = "scheduling.retry_rules",
                                                 .what = "have patterns of 1002 parts when their "
                                                         "counts are written out, more than 1000; "
                                                         "use plain words, or * or + instead of "
                                                         "counts"}}));
}

}  // namespace
}  // namespace muster::job
