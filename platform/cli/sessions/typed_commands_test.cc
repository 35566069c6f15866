#include <gtest/gtest.h>

#include "cli/sessions/sessions.h"

namespace muster::cli::sessions {

namespace {

using std::chrono::seconds;

std::string record(const std::string& shell, int number, const std::string& state, int time,
                   const std::string& folder, const std::string& text) {
  return "\036" + shell + "\037" + std::to_string(number) + "\037" + state + "\037" +
         std::to_string(time) + "\037" + folder + "\037" + text + "\n";
}

TypedCommand typed(const std::string& text, std::optional<int> exit_code = 0, int took = 0) {
  return {.text = text, .folder = "/work", .exit_code = exit_code, .took = seconds(took)};
}

std::string candidate_among(const std::vector<TypedCommand>& commands) {
  const auto found = candidate_of(commands);
  return found ? commands[*found].text : "none";
}

TEST(TypedCommands, AreParsedWithTheirEnds) {
  const auto read =
      parse_typed_commands(record("12", 1, "-", 100, "/work", "mpirun ./train") +
                           record("12", 1, "130", 160, "/elsewhere", "mpirun ./train"));

  EXPECT_EQ(read, (std::vector<TypedCommand>{typed("mpirun ./train", 130, 60)}));
}

TEST(TypedCommands, OfSeveralShellsAreDistinguished) {
  const auto read = parse_typed_commands(
      record("12", 1, "-", 100, "/work", "sleep 9") + record("34", 1, "-", 101, "/work", "ls") +
      record("34", 1, "2", 102, "/work", "ls") + record("12", 1, "0", 109, "/work", "sleep 9"));

  EXPECT_EQ(read, (std::vector<TypedCommand>{typed("sleep 9", 0, 9), typed("ls", 2, 1)}));
}

TEST(TypedCommands, IncludeUnfinishedCommands) {
  const auto read = parse_typed_commands(record("12", 7, "-", 100, "/work", "python3 train.py"));

  EXPECT_EQ(read, (std::vector<TypedCommand>{typed("python3 train.py", std::nullopt)}));
}

TEST(TypedCommands, MayHaveSeveralLines) {
  const std::string text = "for i in 1 2; do\n  echo $i\ndone";

  EXPECT_EQ(parse_typed_commands(record("12", 1, "0", 1, "/work", text)),
            (std::vector<TypedCommand>{typed(text)}));
}

TEST(TypedCommands, ExcludeTruncatedAndDamagedRecords) {
  const std::string whole = record("12", 1, "0", 100, "/work", "ls");
  const auto expected = std::vector<TypedCommand>{typed("ls")};

  EXPECT_EQ(parse_typed_commands("37\037/work\037ls -l\n" + whole), expected);
  EXPECT_EQ(parse_typed_commands(whole + whole.substr(0, whole.size() - 1)), expected);
  EXPECT_EQ(parse_typed_commands("\036\036a\037b\n" + whole), expected);
  EXPECT_EQ(parse_typed_commands(record("1", 1, "zero", 1, "/", "x") + whole), expected);
  EXPECT_EQ(parse_typed_commands(""), std::vector<TypedCommand>());
}

TEST(TheCandidate, IsTheLastCommandThatLaunchedAProgramAndDidNotFail) {
  EXPECT_EQ(candidate_among({typed("mpirun -np 2 ./a"), typed("mpirun -np 2 ./b", 130),
                             typed("mpirun -np 2 ./c", 1), typed("ls"), typed("vi x", 0, 600)}),
            "mpirun -np 2 ./b");
  EXPECT_EQ(candidate_among({typed("python3 train.py", std::nullopt), typed("nvidia-smi")}),
            "python3 train.py");
}

TEST(TheCandidate, IsFoundAfterVariablesAndWrappersOfTheProgram) {
  for (const char* text :
       {"FOO=1 BAR=/x mpirun ./a", "time /usr/bin/mpirun ./a", "cd /data && mpirun ./a",
        "nohup python3 -u train.py &", "env A=b torchrun t.py", "true | horovodrun -np 2 x"}) {
    EXPECT_TRUE(launches(typed(text))) << text;
  }
  for (const char* text : {"ls mpirun", "echo python", "vi train.py", "X=mpirun", ""}) {
    EXPECT_FALSE(launches(typed(text))) << text;
  }
}

TEST(TheCandidate, IsOtherwiseTheLastLongRunningCommand) {
  EXPECT_EQ(candidate_among({typed("./train", 0, 10), typed("./quick", 0, 9), typed("ls"),
                             typed("less log", 0, 100), typed("./broken", 2, 100)}),
            "./train");
  EXPECT_EQ(candidate_among({typed("ls"), typed("pwd")}), "none");
  EXPECT_EQ(candidate_among({typed("./train", std::nullopt), typed("exit", std::nullopt)}),
            "./train");
  EXPECT_EQ(candidate_among({}), "none");
}

TEST(TypedCommands, AreListedWithTheirNumbers) {
  EXPECT_EQ(
      typed_commands_view(
          {typed("ls"), typed("mpirun ./a", 130, 75), typed("python3 t.py", std::nullopt)}, 2),
      "LINE    EXIT   TOOK  FOLDER  COMMAND\n"
      "   2  Ctrl-C  1m15s  /work   mpirun ./a\n"
      "   3       -      -  /work   python3 t.py\n");
}

}  // namespace

}  // namespace muster::cli::sessions
