#include <gtest/gtest.h>

#include "base/test_faults.h"
#include "job/capability.h"
#include "job/checker.h"
#include "job/test_specs.h"
#include "job/validate.h"

namespace muster::job {
namespace {

using base::Texts;

Texts container_faults(const SpecChange& change) {
  JobSpec spec{.name = "a",
               .kind = Kind::kMpi,
               .image = "horovod/horovod",
               .command = {"mpirun"},
               .workers = 2,
               .folder = "/"};
  change(spec);
  return base::texts_of(validate(spec));
}

struct WrongContainer {
  SpecChange change;
  std::string text;
};

void expect_container_faults(const std::vector<WrongContainer>& wrongs) {
  for (const WrongContainer& wrong : wrongs)
    EXPECT_EQ(container_faults(wrong.change), Texts{wrong.text});
}

TEST(ValidateContainer, TakesAllThatCanBeSaid) {
  EXPECT_EQ(container_faults([](JobSpec& spec) {
              spec.user = "ada:video";
              spec.registry = {.server = "r.example.com:5000", .username = "ada", .secret = "KEY"};
              spec.container = {.pull = PullPolicy::kNever,
                                .writable_root = true,
                                .new_privileges = true,
                                .capabilities = {"SYS_PTRACE", "IPC_LOCK"},
                                .shm_bytes = int64_t{1} << 30};
              spec.launch = LaunchBy::kAgent;
              spec.replaces_entrypoint = false;
              spec.leader = {.image = "lead",
                             .user = "0",
                             .registry = {.server = {}, .username = "$oauthtoken", .secret = "K2"}};
            }),
            Texts{});
}

TEST(ValidateContainer, AUserIsANameOrANumberAndPerhapsAGroup) {
  for (const char* user : {"root", "0", "1000", "1000:1000", "ada:video", "4294967294", "a.b-c_d",
                           "_apt", "1000:video"}) {
    EXPECT_EQ(container_faults([&](JobSpec& spec) { spec.user = user; }), Texts{}) << user;
  }
  for (const std::string& user :
       {std::string(":"), std::string("a:"), std::string(":a"), std::string("a:b:c"),
        std::string("-1"), std::string("4294967295"), std::string("99999999999"),
        std::string("a b"), std::string("a/b"), std::string(65, 'a'), std::string("\xC3\xA4")}) {
    EXPECT_EQ(container_faults([&](JobSpec& spec) { spec.user = user; }),
              Texts{"user " + in_quotes(user) +
                    " is neither USER nor USER:GROUP, each a name or a number of the image"});
  }
}

TEST(ValidateContainer, ALoginHasAUserAndASecretBoth) {
  expect_container_faults({
      {[](JobSpec& spec) { spec.registry.username = "ada"; },
       "registry.secret is missing; say which secret of the project holds the password"},
      {[](JobSpec& spec) { spec.registry.secret = "KEY"; },
       "registry.username is missing; say who logs in to the registry"},
      {[](JobSpec& spec) { spec.registry = {.server = {}, .username = "a", .secret = "A-B"}; },
       "registry.secret 'A-B' is not the name of a secret; use letters, digits and '_'"},
      {[](JobSpec& spec) { spec.registry = {.server = {}, .username = "a\n", .secret = "K"}; },
       "registry.username 'a\n' is not a user's name of a registry"},
      {[](JobSpec& spec) {
         spec.registry = {.server = "https://r.example.com", .username = "a", .secret = "K"};
       },
       "registry.server 'https://r.example.com' is not the name of a registry, as in "
       "registry.example.com:5000"},
  });
  EXPECT_EQ(container_faults([](JobSpec& spec) { spec.registry.server = "docker.io"; }),
            (Texts{"registry.username is missing; say who logs in to the registry",
                   "registry.secret is missing; say which secret of the project holds the "
                   "password"}));
}

TEST(ValidateContainer, WhatIsOfAnImageNeedsOne) {
  EXPECT_EQ(container_faults([](JobSpec& spec) {
              spec.image = "";
              spec.user = "ada";
              spec.registry = {.server = {}, .username = "ada", .secret = "KEY"};
              spec.container = {.pull = PullPolicy::kAlways,
                                .writable_root = true,
                                .new_privileges = true,
                                .capabilities = {"KILL"},
                                .shm_bytes = 1 << 20};
              spec.replaces_entrypoint = false;
              spec.leader.user = "root";
            }),
            (Texts{"user 'ada' is of an image, and the job names none",
                   "registry a login is of an image, and the job names none",
                   "leader.user 'root' is of an image, and the leader itself names none",
                   "container.pull is of tasks that run in an image, and the job names none",
                   "container.writable_root is of tasks that run in an image, and the job names "
                   "none",
                   "container.new_privileges is of tasks that run in an image, and the job names "
                   "none",
                   "container.capabilities is of tasks that run in an image, and the job names "
                   "none",
                   "container.shm is of tasks that run in an image, and the job names none",
                   "replaces_entrypoint is of tasks that run in an image, and the job names "
                   "none"}));
}

TEST(ValidateContainer, WhatIsOfTheImageOfAParameterServerOrEvaluatorNeedsThatOne) {
  EXPECT_EQ(container_faults([](JobSpec& spec) {
              spec.kind = Kind::kGrpc;
              spec.parameter_server.user = "root";
              spec.evaluator.registry = {.server = {}, .username = "ada", .secret = "KEY"};
            }),
            (Texts{"parameter_server.user 'root' is of an image, and the parameter_server itself "
                   "names none",
                   "evaluator.registry a login is of an image, and the evaluator itself names "
                   "none"}));
}

TEST(ValidateContainer, OneImageOfARoleIsEnoughForContainers) {
  EXPECT_EQ(container_faults([](JobSpec& spec) {
              spec.image = "";
              spec.leader.image = "lead";
              spec.container.writable_root = true;
            }),
            Texts{});
}

TEST(ValidateContainer, CapabilitiesAreThoseOfLinux) {
  expect_container_faults({
      {[](JobSpec& spec) { spec.container.capabilities = {"SYS_PTRAC"}; },
       "container.capabilities[0] 'SYS_PTRAC' is no capability of Linux; did you mean "
       "'SYS_PTRACE'?"},
      {[](JobSpec& spec) { spec.container.capabilities = {"KILL", "CAP_KILL"}; },
       "container.capabilities[1] 'CAP_KILL' is no capability of Linux; did you mean 'KILL'?"},
      {[](JobSpec& spec) { spec.container.capabilities = {"everything"}; },
       "container.capabilities[0] 'everything' is no capability of Linux, as SYS_PTRACE is one"},
      {[](JobSpec& spec) { spec.container.capabilities = {"KILL", "CHOWN", "KILL"}; },
       "container.capabilities[2] 'KILL' is named already"},
      {[](JobSpec& spec) { spec.container.capabilities = Texts(42, "KILL"); },
       "container.capabilities are more than Linux has"},
  });
  for (const std::string& name : capabilities()) {
    EXPECT_EQ(container_faults([&](JobSpec& spec) { spec.container.capabilities = {name}; }),
              Texts{});
  }
}

TEST(ValidateContainer, ShmHasASizeThatAMachineMayHave) {
  for (const int64_t size : {int64_t{65'536}, int64_t{16} << 40}) {
    EXPECT_EQ(container_faults([&](JobSpec& spec) { spec.container.shm_bytes = size; }), Texts{});
  }
  expect_container_faults({
      {[](JobSpec& spec) { spec.container.shm_bytes = 65'535; },
       "container.shm 65535 bytes are out of range; give 64Ki to 16Ti"},
      {[](JobSpec& spec) { spec.container.shm_bytes = -1; },
       "container.shm -1 bytes are out of range; give 64Ki to 16Ti"},
  });
}

TEST(ValidateContainer, OnlyAnMpiJobIsLaunchedOneWayOrTheOther) {
  for (const Kind kind : {Kind::kSingle, Kind::kTorch, Kind::kGrpc}) {
    EXPECT_EQ(container_faults([&](JobSpec& spec) {
                spec.kind = kind;
                spec.workers = 0;
                spec.launch = LaunchBy::kSsh;
              }),
              Texts{"launch only an mpi job has a launcher that starts ranks; leave it out"});
  }
  EXPECT_EQ(container_faults([](JobSpec& spec) { spec.launch = LaunchBy::kSsh; }), Texts{});
}

TEST(Capability, IsTakenWithOrWithoutItsPrefixAndInAnyCase) {
  EXPECT_EQ(capabilities_of({"SYS_PTRACE", "CAP_SYS_PTRACE", "cap_kill", "net_raw"}),
            (Texts{"SYS_PTRACE", "SYS_PTRACE", "KILL", "NET_RAW"}));
}

}  // namespace
}  // namespace muster::job
