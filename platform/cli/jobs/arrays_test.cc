#include "cli/jobs/arrays.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/test_folder.h"
#include "cli/jobs/jobs.h"
#include "cli/test_call.h"

namespace muster::cli::jobs {
namespace {

ArrayFlags flags_of(const Words& flags) {
  return parsed<SubmitCommand>(with_program({"submit", "single", "train"}, flags)).array;
}

TEST(ArrayFlagsRead, AreIndexesWithTheMostThatRun) {
  const ArrayFlags flags = flags_of({"--array", "0-9:3%2", "--max-failures", "1"});
  EXPECT_EQ(flags.indexes->indexes, "0-9:3");
  EXPECT_EQ(flags.indexes->max_running, 2);
  EXPECT_EQ(flags.max_failures, 1);
  EXPECT_FALSE(flags_of({}).is_set());
}

TEST(ArrayFlagsRead, NameTheFault) {
  const auto refused = [](const Words& flags) {
    return refusal(with_program({"submit", "single", "train"}, flags));
  };
  EXPECT_NE(refused({"--array", "5-1"}).find("--array: the range '5-1' is empty"),
            std::string::npos);
  EXPECT_NE(refused({"--array", ""}).find("--array is empty; give indexes"), std::string::npos);
  EXPECT_NE(
      refused({"--array", "0-100000"}).find("--array '0-100000' has more than 100000 members"),
      std::string::npos);
  EXPECT_NE(
      refused({"--after-member", "prep"}).find("--after-member is for the members of an array"),
      std::string::npos);
  EXPECT_NE(refused({"--each-line", "a", "--each-json", "b"})
                .find("--each-json cannot be used with --each-line"),
            std::string::npos);
  EXPECT_NE(refused({"--array", "0-3", "--max-running", "-1"}).find("--max-running"),
            std::string::npos);
}

TEST(JsonLines, AreTheElementsOfAnArrayOrTheValuesOfLines) {
  EXPECT_EQ(*json_lines(R"([{"lr": 0.1}, "a b", 3])"),
            (std::vector<std::string>{R"({"lr":0.1})", "a b", "3"}));
  EXPECT_EQ(*json_lines("{\"lr\": 1}\n\n\"x\"\r\n"),
            (std::vector<std::string>{R"({"lr":1})", "x"}));
  EXPECT_EQ(*json_lines(R"([{"f": 1.10, "e": [2, "a , b"]}, 12345678901234567890123])"),
            (std::vector<std::string>{R"({"f":1.10,"e":[2,"a , b"]})", "12345678901234567890123"}));
  EXPECT_EQ(json_lines("1\n{oops\n").error().what, "line 2 is not a JSON value");
  EXPECT_EQ(json_lines("1\n1e400\n").error().what,
            "line 2 has a number that is too large; write it as text, in quotes");
  EXPECT_EQ(json_lines("[\n1e400\n]").error().what,
            "the array has a number that is too large; write it as text, in quotes");
}

class ArrayFile : public testing::Test {
 protected:
  std::string file(const std::string& text) {
    const auto path = folder_.path() / "lines";
    EXPECT_TRUE(base::write_file(path, text));
    return path.string();
  }
  static job::JobSpec spec() { return {.name = "train", .command = {"train"}, .folder = "/"}; }

  base::TestFolder folder_;
};

TEST_F(ArrayFile, MakesAMemberOfEachLine) {
  job::JobSpec made = spec();
  made.array.indexes = "7";  // of the job file
  ASSERT_TRUE(
      apply_array_flags({.lines_file = file("ada\r\ngrace hopper\n"), .max_running = 1}, made));
  EXPECT_EQ(made.array.lines, (std::vector<std::string>{"ada", "grace hopper"}));
  EXPECT_EQ(made.array.indexes, "");
  EXPECT_EQ(made.array.max_running, 1);
}

TEST_F(ArrayFile, IsRefusedIfItIsEmptyOrMissingOrDoesNotFitTheIndexes) {
  job::JobSpec made = spec();
  const std::string empty = file("");
  EXPECT_EQ(apply_array_flags({.lines_file = empty}, made).error().what,
            "'" + empty + "' is empty");
  EXPECT_EQ(apply_array_flags({.json_file = "/nowhere"}, made).error().code,
            base::ErrorCode::kInvalid);
  EXPECT_FALSE(apply_array_flags(
      {.indexes = *job::array_of("0-4"), .lines_file = file("one\ntwo\n")}, made));
}

TEST(Documents, HaveTheSameShapeForEveryResult) {
  EXPECT_EQ(Documents{}.to_json(), R"({"jobs":[],"arrays":[],"sweeps":[]})");
  EXPECT_EQ((Documents{.jobs = {"1", "2"}, .arrays = {"3"}, .sweeps = {"4"}}.to_json()),
            R"({"jobs":[1,2],"arrays":[3],"sweeps":[4]})");
}

}  // namespace
}  // namespace muster::cli::jobs
