#include <gtest/gtest.h>

#include "base/test_faults.h"
#include "job/validate.h"

namespace muster::job {
namespace {

using base::Texts;

Texts secret_faults(std::vector<SecretUse> secrets) {
  const JobSpec spec{.name = "one",
                     .command = {"true"},
                     .environment = {{"HERE", "1"}},
                     .secrets = std::move(secrets),
                     .folder = "/"};
  return base::texts_of(validate(spec));
}

TEST(ValidateSecrets, TakesVariablesAndFilesAndBoth) {
  EXPECT_EQ(secret_faults({{.name = "KEY", .variable = "KEY"},
                           {.name = "KEY", .variable = "SAME_IN_ANOTHER"},
                           {.name = "ca_2", .file = "ca.pem"},
                           {.name = "_x", .variable = "X", .file = "tls/.a/b-c_d"},
                           {.name = "KEY", .file = std::string(100, 'f')}}),
            Texts{});
}

TEST(ValidateSecrets, TellsEveryFaultAtOnceByItsField) {
  EXPECT_EQ(
      secret_faults({{.name = "1KEY", .variable = "A-B", .file = "/etc/passwd"}, {.name = "KEY"}}),
      (Texts{"secrets[0].name '1KEY' is not the name of a secret; use letters, digits and '_'",
             "secrets[0].variable 'A-B' is not a variable name; use letters, digits and '_'",
             "secrets[0].file '/etc/passwd' is not a path below /generated/secrets; use at most "
             "100 characters, as in tls/ca.pem",
             "secrets[1] goes nowhere; give it a variable or a file"}));
}

TEST(ValidateSecrets, ANameThatIsAVariableTooIsToldOnce) {
  EXPECT_EQ(secret_faults({{.name = "1KEY", .variable = "1KEY"}}),
            Texts{"secrets[0].name '1KEY' is not the name of a secret; use letters, digits and "
                  "'_'"});
}

TEST(ValidateSecrets, RefusesPathsThatLeadElsewhere) {
  for (const std::string& path :
       {std::string("/a"), std::string(".."), std::string("../a"), std::string("a/../b"),
        std::string("a/.."), std::string("."), std::string("./a"), std::string("a//b"),
        std::string("a/"), std::string("a b"), std::string("a\nb"), std::string("a\0b", 3),
        std::string("a\\b"), std::string("\xc3\xa4"), std::string(101, 'f')}) {
    EXPECT_EQ(secret_faults({{.name = "KEY", .file = path}}).size(), 1U) << path;
  }
}

TEST(ValidateSecrets, RefusesVariablesThatMusterOrMpiSets) {
  for (const char* name : {"PATH", "TMPDIR", "CUDA_VISIBLE_DEVICES", "MUSTER_RENDEZVOUS_KEY",
                           "OMPI_MCA_btl", "PRTE_MCA_x", "PMIX_x"}) {
    EXPECT_EQ(secret_faults({{.name = "KEY", .variable = name}}),
              Texts{"secrets[0].variable '" + std::string(name) +
                    "' is a variable that Muster or MPI sets"});
  }
}

TEST(ValidateSecrets, NoTwoAreInOnePlace) {
  EXPECT_EQ(secret_faults({{.name = "A", .variable = "HERE"},
                           {.name = "A", .variable = "X", .file = "a"},
                           {.name = "B", .variable = "X", .file = "a"},
                           {.name = "C", .file = "a/b"},
                           {.name = "D", .file = "ab"}}),
            (Texts{"secrets[0].variable 'HERE' is in the environment of the job, too",
                   "secrets[2].variable 'X' holds another secret already",
                   "secrets[2].file 'a' is where another secret is already",
                   "secrets[3].file 'a/b' is where another secret is already"}));
  EXPECT_EQ(secret_faults({{.name = "A", .file = "a/b"}, {.name = "B", .file = "a"}}),
            Texts{"secrets[1].file 'a' is where another secret is already"});
}

TEST(ValidateSecrets, NoneIsInTheEnvironmentOfARole) {
  for (RoleSpec JobSpec::* role :
       {&JobSpec::leader, &JobSpec::parameter_server, &JobSpec::evaluator}) {
    JobSpec spec{.name = "a",
                 .kind = Kind::kGrpc,
                 .command = {"train"},
                 .secrets = {{.name = "KEY", .variable = "THERE"}},
                 .folder = "/c"};
    (spec.*role).environment = {{"THERE", "1"}};

    EXPECT_EQ(validate(spec),
              (std::vector<Fault>{{.field = "secrets[0].variable",
                                   .what = "'THERE' is in the environment of the job, too"}}));
  }
}

TEST(ValidateSecrets, HundredAreEnough) {
  EXPECT_EQ(secret_faults(std::vector<SecretUse>(101, {.name = "A"})),
            Texts{"secrets are more than 100"});
}

TEST(SecretName, IsThatOfAVariable) {
  for (const char* name : {"KEY", "_", "a1", "API_KEY"}) EXPECT_TRUE(is_secret_name(name)) << name;
  for (const char* name : {"", "1A", "A-B", "A.B", "A B", "../A", "\xc3\xa4"}) {
    EXPECT_FALSE(is_secret_name(name)) << name;
  }
  EXPECT_TRUE(is_secret_name(std::string(128, 'A')));
  EXPECT_FALSE(is_secret_name(std::string(129, 'A')));
}

}  // namespace
}  // namespace muster::job
