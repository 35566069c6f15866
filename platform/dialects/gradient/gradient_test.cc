#include "dialects/gradient/gradient.h"

#include <gtest/gtest.h>

#include <utility>

#include "dialects/gradient/test_experiment.h"

namespace muster::dialects::gradient {

namespace {

using Flags = std::map<std::string, std::vector<std::string>>;

const cli::Command& command_of(const std::string& kind) {
  static const cli::Command tree = command_tree();
  return *tree.find_command("experiments")->find_command("create")->find_command(kind);
}

/// The flags of the file and the command line, or the faults.
std::pair<Flags, std::string> added(const std::string& text, const Flags& given = {}) {
  cli::Arguments arguments;
  arguments.flags = given;
  const auto read = add_options(text, "o.yaml", command_of("multinode"), arguments);
  return {arguments.flags, read ? "" : read.error().to_string()};
}

TEST(OptionsFile, EveryTypeOfValueBecomesAFlag) {
  const auto [flags, error] = added(
      "name: dist\n"
      "workerCount: 2\n"
      "experimentEnv: {EPOCHS: 5, NESTED: {a: [1, x]}}\n"
      "tag: nightly\n"
      "isPreemptible: true\n"
      "tensorboard: tb1\n"
      "workspaceUrl: https://h/r.git\n"
      "datasetUri: [a, null]\n"
      "clusterId:\n");

  EXPECT_EQ(error, "");
  EXPECT_EQ(flags, (Flags{{"--name", {"dist"}},
                          {"--workerCount", {"2"}},
                          {"--experimentEnv", {R"({"EPOCHS":"5","NESTED":{"a":["1","x"]}})"}},
                          {"--tag", {"nightly"}},
                          {"--isPreemptible", {"true"}},
                          {"--tensorboard", {"tb1"}},
                          {"--workspaceUrl", {"https://h/r.git"}},
                          {"--datasetUri", {"a", "none"}}}));
}

TEST(OptionsFile, TheCommandLineOverridesTheFile) {
  const auto [flags, error] =
      added("name: file\ntag: [a, b]\nports: 80\n", {{"--name", {"line"}}, {"--tag", {"c"}}});

  EXPECT_EQ(error, "");
  EXPECT_EQ(flags, (Flags{{"--name", {"line"}}, {"--tag", {"c"}}, {"--ports", {"80"}}}));
}

TEST(OptionsFile, SwitchesThatAreOffAreNotGiven) {
  EXPECT_EQ(added("isPreemptible: false\ntensorboard: false\n").first, Flags{});
  EXPECT_EQ(added("tensorboard: true\n").first, (Flags{{"--tensorboard", {"true"}}}));
}

TEST(OptionsFile, DataSetsAreAList) {
  const auto [flags, error] =
      added("datasets:\n  - {uri: a, name: x}\n  - {uri: b, awsEndpoint: e}\n");

  EXPECT_EQ(error, "");
  EXPECT_EQ(flags.at("--datasetUri"), (Words{"a", "b"}));
  EXPECT_EQ(flags.at("--datasetName"), (Words{"x", "none"}));
  EXPECT_EQ(flags.at("--datasetAwsEndpoint"), (Words{"none", "e"}));
  EXPECT_EQ(added("datasets: [{uri: a}]", {{"--datasetUri", {"b"}}}).first,
            (Flags{{"--datasetUri", {"b"}}}));
}

TEST(OptionsFile, EveryFaultIsReportedWithItsLine) {
  EXPECT_EQ(
      added("nam: dist\n"
            "ports: [80]\n"
            "isPreemptible: maybe\n"
            "name: a\n"
            "name: b\n"
            "optionsFile: x\n"
            "tag: {a: b}\n"
            "datasets: [{ury: a}]\n"
            "datasetUri: a\n")
          .second,
      "'o.yaml' has 8 faults\n"
      "  line 1: nam: unknown key; did you mean 'name'?\n"
      "  line 2: ports: must be a single value, not a list\n"
      "  line 3: isPreemptible: 'maybe' is neither true nor false\n"
      "  line 5: name: is given twice\n"
      "  line 6: optionsFile: unknown key\n"
      "  line 7: tag: must be a list, not a map\n"
      "  line 8: datasets[0].ury: unknown key; did you mean 'uri'?\n"
      "  line 9: datasetUri: cannot be used with the list 'datasets'; move it into that list");
}

TEST(OptionsFile, OnlyAMapIsAccepted) {
  EXPECT_EQ(added("- a\n").second, "'o.yaml' has 1 fault\n  line 1: must be a map, not a list");
  EXPECT_EQ(added("a: [\n").second.substr(0, 26), "'o.yaml' is not valid YAML");
  EXPECT_EQ(added("").second, "");
}

TEST(OptionsFile, TheWrittenFileReadsBackAsTheGivenFlags) {
  const Flags given_flags{{"--name", {"dist"}},
                          {"--tag", {"a", "b"}},
                          {"--experimentEnv", {R"({"A": "x: y"})"}},
                          {"--masterCommand", {"mpirun --allow-run-as-root python 'a b.py' # x"}},
                          {"--isPreemptible", {"true"}}};
  cli::Arguments arguments;
  arguments.flags = given_flags;

  const std::string text = options_text(command_of("multinode"), arguments);

  EXPECT_NE(text.find("name: dist\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nworkerCount: "), std::string::npos) << text;
  EXPECT_EQ(text.find("vpc"), std::string::npos) << text;
  EXPECT_EQ(text.find("optionsFile"), std::string::npos) << text;
  EXPECT_EQ(added(text).second, "");
  EXPECT_EQ(added(text).first, given_flags);
}

TEST(OptionsFile, AnEmptyFileNamesEveryOption) {
  const std::string text = options_text(command_of("singlenode"), {});

  for (const cli::Flag& flag : command_of("singlenode").flags) {
    const bool is_named =
        ("\n" + text).find("\n" + flag.name.substr(2) + ": ") != std::string::npos;
    const bool is_expected = !flag.hidden && flag.name != "--help" &&
                             flag.name != "--optionsFile" && flag.name != "--createOptionsFile";
    EXPECT_EQ(is_named, is_expected) << flag.name << "\n" << text;
  }
}

}  // namespace

}  // namespace muster::dialects::gradient
