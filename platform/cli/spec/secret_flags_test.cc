// The flags that hand secrets over, through whole command lines.
#include <gtest/gtest.h>

#include "cli/jobs/jobs.h"
#include "cli/test_call.h"

namespace muster::cli::spec {

namespace {

using job::SecretUse;

const Caller kAdaWithLang{.folder = "/home/ada", .environment = {{"LANG", "C"}}};

std::string refusal_of_secrets(const Words& flags) {
  return refusal(with_program({"submit", "single", "a"}, flags), kAdaWithLang);
}

TEST(SecretFlags, AreVariablesAndFilesOfTheirNamesOrOfOthers) {
  const Words flags{"--secret",      "KEY",   "--secret",      "TOKEN=HF_TOKEN",
                    "--secret-file", "NETRC", "--secret-file", "CA=tls/ca.pem"};
  const std::vector<SecretUse> expected{{.name = "KEY", .variable = "KEY"},
                                        {.name = "TOKEN", .variable = "HF_TOKEN"},
                                        {.name = "NETRC", .file = "NETRC"},
                                        {.name = "CA", .file = "tls/ca.pem"}};

  const Words submit = with_program({"submit", "single", "a"}, flags);
  EXPECT_EQ(parsed<jobs::SubmitCommand>(submit, kAdaWithLang).spec.secrets, expected);
  const Words run = with_program({"run"}, flags);
  EXPECT_EQ(parsed<jobs::RunCommand>(run, kAdaWithLang).spec.secrets, expected);
}

TEST(SecretFlags, EachFaultIsThatOfItsFlag) {
  const std::string said =
      refusal_of_secrets({"--secret", "KEY=", "--secret", "=X", "--secret-file", "CA=../ca"});
  EXPECT_NE(said.find("--secret: 'KEY=' names no place; say NAME or NAME=PLACE"), std::string::npos)
      << said;

  const std::string files = refusal_of_secrets({"--secret", "LANG", "--secret-file", "CA=../ca"});
  EXPECT_NE(files.find("--secret: 'LANG' is in the environment of the job, too"), std::string::npos)
      << files;
  EXPECT_NE(files.find("--secret-file: '../ca' is not a path below /generated/secrets"),
            std::string::npos)
      << files;
}

TEST(SecretFlags, AVariableThatIsSetTooIsAFault) {
  const std::string said = refusal_of_secrets({"--secret", "KEY", "-e", "KEY=1"});
  EXPECT_TRUE(said.starts_with("--secret 'KEY' is in the environment of the job, too")) << said;
}

}  // namespace

}  // namespace muster::cli::spec
