#include <gtest/gtest.h>

#include "cli/spec/spec_file.h"

namespace muster::cli::spec {

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

TEST(SecretsOfAJobFile, EachFaultIsToldOnceWithItsLine) {
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
                "11 secrets[7].variable 'LANG' is in the environment of the job, too",
                "12 secrets[8] goes nowhere; give it a variable or a file"}));
}

TEST(SecretsOfAJobFile, AreAList) {
  EXPECT_EQ(faults_of_secrets("secrets: API_KEY\n"),
            std::vector<std::string>{"3 secrets must be a list, not a single value"});
  EXPECT_EQ(faults_of_secrets("secrets: {API_KEY: x}\n"),
            std::vector<std::string>{"3 secrets must be a list, not a map"});
}

}  // namespace

}  // namespace muster::cli::spec
