// The tasks of each kind of job, and what they run.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "job/checker.h"
#include "job/test_specs.h"
#include "job/validate.h"

namespace muster::job {
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
}  // namespace muster::job
