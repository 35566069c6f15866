#include "job/validate.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "job/test_specs.h"
#include "record/input.h"

namespace muster::job {
namespace {

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

TEST(Validate, ReportsAHundredFaultsAtMost) {
  JobSpec spec = valid_mpi_spec(2);
  for (int i = 0; i < 1000; ++i) {
    spec.environment["no name " + std::to_string(i)] = "";
    spec.command.emplace_back("a\0b", 3);
  }

  EXPECT_EQ(validate(spec).size(), record::kMostFaults);
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
}  // namespace muster::job
