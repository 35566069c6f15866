#include "job/array.h"

#include <gtest/gtest.h>

#include "job/spec_table.h"
#include "job/test_specs.h"
#include "job/validate.h"

namespace muster::job {
namespace {

using Indexes = std::vector<int>;

TEST(Array, ReadsIndexesRangesAndSteps) {
  EXPECT_EQ(*indexes_of("7"), Indexes{7});
  EXPECT_EQ(*indexes_of("0-3"), (Indexes{0, 1, 2, 3}));
  EXPECT_EQ(*indexes_of("1,3,5-7"), (Indexes{1, 3, 5, 6, 7}));
  EXPECT_EQ(*indexes_of("0-20:5"), (Indexes{0, 5, 10, 15, 20}));
  EXPECT_EQ(*indexes_of("0-21:5,30"), (Indexes{0, 5, 10, 15, 20, 30}));
  EXPECT_EQ(indexes_of("0-99999")->size(), 100'000U);
}

TEST(Array, RefusesOtherIndexes) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "is empty; give indexes, such as 7, 0-99 or 0-20:5"},
      {"a", "'a' is not an index or a range, such as 7, 0-99 or 0-20:5"},
      {"-1", "'-1' is not an index or a range, such as 7, 0-99 or 0-20:5"},
      {"1-", "'1-' is not an index or a range, such as 7, 0-99 or 0-20:5"},
      {"3:2", "'3:2' is not an index or a range, such as 7, 0-99 or 0-20:5"},
      {"0-9:0", "the step of '0-9:0' is less than 1"},
      {"5-3", "the range '5-3' is empty"},
      {"5,3", "'3' does not follow 5: list every index once, in ascending order"},
      {"0-5,5", "'5' does not follow 5: list every index once, in ascending order"},
      {"0-100000", "'0-100000' has more than 100000 members"},
      {"4294967295", "the largest index is 9999999"},
      {"10000000", "the largest index is 9999999"},
      {"0-2147483647", "the largest index is 9999999"}};
  for (const auto& [text, what] : cases) {
    const auto indexes = indexes_of(text);
    ASSERT_FALSE(indexes) << text;
    EXPECT_EQ(indexes.error().what, what);
  }
}

TEST(Array, ReadsTheShortForm) {
  EXPECT_EQ(*array_of("0-99%8"), (ArraySpec{.indexes = "0-99", .max_running = 8}));
  EXPECT_EQ(*array_of("1,2"), ArraySpec{.indexes = "1,2"});
  EXPECT_FALSE(array_of("0-9%0"));
  EXPECT_FALSE(array_of("0-9%x"));
  EXPECT_FALSE(array_of("%3"));
}

TEST(Array, GivesEachLineAnIndexFromZero) {
  EXPECT_EQ(*indexes_of(ArraySpec{.lines = {"a", "b", "c"}}), (Indexes{0, 1, 2}));
}

TEST(Array, NamesMembersInBothForms) {
  EXPECT_EQ(member_of("train[17]"), (MemberName{"train", 17}));
  EXPECT_EQ(member_of("train-17"), (MemberName{"train", 17}));
  EXPECT_EQ(member_of("train-1-17"), (MemberName{"train-1", 17}));
  for (const char* other : {"train", "train-", "train-x", "train-017", "train[]", "[3]", "-3", "",
                            "train[1", "train-99999999999", "train]"}) {
    EXPECT_EQ(member_of(other), std::nullopt) << other;
  }
  EXPECT_EQ(member_title("train", 17), "train[17]");
  EXPECT_EQ(member_name("train", 17), "train-17");
}

TEST(Array, AMemberGetsItsIndexAndItsLine) {
  JobSpec spec{.name = "train", .command = {"a"}, .held = true};
  spec.array = {.indexes = "3,5", .lines = {"one", R"({"lr": 0.1, "max-steps": 7, "name": "x y",
                                                      "off": null, "on": true, "list": [1]})"}};
  spec.after = {{.job = "prepare", .by_member = true}, {.job = "data"}};

  const JobSpec first = member_spec(spec, {3, 5}, 0);
  const JobSpec second = member_spec(spec, {3, 5}, 1);

  EXPECT_EQ(first.name, "train-3");
  EXPECT_TRUE(first.array.is_none());
  EXPECT_FALSE(first.held);
  EXPECT_EQ(first.environment, (std::map<std::string, std::string>{{"MUSTER_ARRAY_INDEX", "3"},
                                                                   {"MUSTER_ARRAY_COUNT", "2"},
                                                                   {"MUSTER_ARRAY_MIN", "3"},
                                                                   {"MUSTER_ARRAY_MAX", "5"},
                                                                   {"MUSTER_ARRAY_LINE", "one"}}));
  EXPECT_EQ(first.after, (std::vector<Dependency>{{.job = "prepare-3"}, {.job = "data"}}));
  EXPECT_EQ(second.environment.at("MUSTER_ITEM_LR"), "0.1");
  EXPECT_EQ(second.environment.at("MUSTER_ITEM_MAX_STEPS"), "7");
  EXPECT_EQ(second.environment.at("MUSTER_ITEM_NAME"), "x y");
  EXPECT_EQ(second.environment.at("MUSTER_ITEM_OFF"), "");
  EXPECT_EQ(second.environment.at("MUSTER_ITEM_ON"), "true");
  EXPECT_EQ(second.environment.at("MUSTER_ITEM_LIST"), "[1]");
}

std::vector<std::string> faults_of(const JobSpec& spec) {
  std::vector<std::string> texts;
  for (const Fault& fault : validate(spec)) texts.push_back(fault.field + " " + fault.what);
  return texts;
}

TEST(Array, ReportsEveryFault) {
  JobSpec spec{.name = "train", .command = {"a"}, .terminal = true, .folder = "/"};
  spec.array = {.indexes = "0-2", .lines = {"a", std::string("b\0", 2)}, .max_running = -1};
  spec.environment["MUSTER_ARRAY_INDEX"] = "5";

  EXPECT_EQ(faults_of(spec),
            (std::vector<std::string>{
                "array.lines has 2 lines for 3 indexes; give one line for each",
                "array.lines[1] contains a NUL byte", "array.max_running is less than 0",
                "terminal cannot be used with an array: leave it out",
                "environment.MUSTER_ARRAY_INDEX differs between the members of an array, and is "
                "set by Muster; leave it out"}));
}

TEST(Array, KeepsTheNumbersOfALineAsTheyAreWritten) {
  EXPECT_EQ(parts_of_json(R"([{"b": 1.10, "a": [1, "x, y"]}, "a\"]", 12345678901234567890123])"),
            (std::vector<std::string>{R"({"b":1.10,"a":[1,"x, y"]})", R"("a\"]")",
                                      "12345678901234567890123"}));
  EXPECT_TRUE(parts_of_json("[ ]").empty());

  JobSpec spec{.name = "train"};
  spec.array.lines = {R"({"id":12345678901234567890123,"f":1.10,"k\"":"\u00fc"})"};
  const JobSpec member = member_spec(spec, {0}, 0);
  EXPECT_EQ(member.environment.at("MUSTER_ITEM_ID"), "12345678901234567890123");
  EXPECT_EQ(member.environment.at("MUSTER_ITEM_F"), "1.10");
  EXPECT_EQ(member.environment.at("MUSTER_ITEM_K_"), "\u00fc");
}

TEST(Array, RefusesFieldsWithTheSameVariable) {
  JobSpec spec{.name = "train", .command = {"a"}, .folder = "/"};
  spec.array.lines = {R"({"a b": 1, "a-b": 2})"};
  EXPECT_EQ(faults_of(spec),
            std::vector<std::string>{"array.lines[0] its fields 'a b' and 'a-b' both set "
                                     "MUSTER_ITEM_A_B; rename one"});
}

TEST(Array, NeedsSpaceForTheIndexInTheName) {
  JobSpec spec{.name = std::string(46, 'a'), .command = {"a"}, .folder = "/"};
  spec.array.indexes = "0-9";
  EXPECT_TRUE(faults_of(spec).empty());
  spec.array.indexes = "0-10";
  ASSERT_EQ(faults_of(spec).size(), 1U);
  EXPECT_TRUE(faults_of(spec).front().starts_with("name is too long")) << faults_of(spec).front();
}

TEST(Array, RefusesLimitsWithoutMembers) {
  JobSpec spec{.name = "train", .command = {"a"}, .folder = "/"};
  spec.array.max_running = 3;
  EXPECT_EQ(faults_of(spec),
            std::vector<std::string>{"array has no members; give indexes, such as 0-99, or lines"});
}

TEST(Array, HasThePhaseOfItsMembers) {
  EXPECT_EQ(phase_of_array({.queued = 3}), Phase::kQueued);
  EXPECT_EQ(phase_of_array({.queued = 2, .starting = 1}), Phase::kRunning);
  EXPECT_EQ(phase_of_array({.queued = 2, .failed = 1}), Phase::kRunning);
  EXPECT_EQ(phase_of_array({.succeeded = 3}), Phase::kSucceeded);
  EXPECT_EQ(phase_of_array({.succeeded = 2, .stopped = 1}), Phase::kStopped);
  EXPECT_EQ(phase_of_array({.failed = 1, .stopped = 2}), Phase::kFailed);
}

}  // namespace
}  // namespace muster::job
