// The flags that hand secrets over, through whole command lines.
#include <gtest/gtest.h>

#include "cli/invocation.h"

namespace muster::cli {
namespace {

using Words = std::vector<std::string>;
using job::SecretUse;

Result<Invocation> parse(Words words, const Words& flags) {
  const Caller caller{.folder = "/home/ada", .environment = {{"LANG", "C"}}};
  base::FakeRandom random;
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"--", "./train"});
  return parse_invocation(words, caller, random);
}

std::string refusal(const Words& flags) {
  const auto invocation = parse({"submit", "single", "a"}, flags);
  return invocation ? "accepted" : invocation.error().to_string();
}

TEST(SecretFlags, AreVariablesAndFilesOfTheirNamesOrOfOthers) {
  const Words flags{"--secret",      "KEY",   "--secret",      "TOKEN=HF_TOKEN",
                    "--secret-file", "NETRC", "--secret-file", "CA=tls/ca.pem"};
  const std::vector<SecretUse> expected{{.name = "KEY", .variable = "KEY"},
                                        {.name = "TOKEN", .variable = "HF_TOKEN"},
                                        {.name = "NETRC", .file = "NETRC"},
                                        {.name = "CA", .file = "tls/ca.pem"}};

  const auto submitted = parse({"submit", "single", "a"}, flags);
  ASSERT_TRUE(submitted) << submitted.error().to_string();
  EXPECT_EQ(std::get<SubmitCommand>(*submitted).spec.secrets, expected);

  const auto run = parse({"run"}, flags);
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(std::get<RunCommand>(*run).spec.secrets, expected);
}

TEST(SecretFlags, EachFaultIsThatOfItsFlag) {
  const std::string said =
      refusal({"--secret", "KEY=", "--secret", "=X", "--secret-file", "CA=../ca"});
  EXPECT_NE(said.find("--secret: 'KEY=' names no place; say NAME or NAME=PLACE"), std::string::npos)
      << said;

  const std::string files = refusal({"--secret", "LANG", "--secret-file", "CA=../ca"});
  EXPECT_NE(files.find("--secret: 'LANG' is in the environment of the job, too"), std::string::npos)
      << files;
  EXPECT_NE(files.find("--secret-file: '../ca' is not a path below /generated/secrets"),
            std::string::npos)
      << files;
}

TEST(SecretFlags, AVariableThatIsSetTooIsAFault) {
  const std::string said = refusal({"--secret", "KEY", "-e", "KEY=1"});
  EXPECT_TRUE(said.starts_with("--secret 'KEY' is in the environment of the job, too")) << said;
}

}  // namespace
}  // namespace muster::cli
