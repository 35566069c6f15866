#include "api/terminal.h"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

using base::ErrorCode;

TEST(ExecRequest, ReadsBackUnchanged) {
  const ExecRequest whole{.command = {"sh", "-c", "echo \"a b\" 'c'\n"},
                          .task = "worker-1",
                          .terminal = true,
                          .rows = 50,
                          .columns = 132};
  const ExecRequest small{.command = {"ls"}};

  for (const ExecRequest& request : {whole, small}) {
    const auto read = exec_request_from_parameters(exec_request_to_parameters(request));
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, request);
  }
}

TEST(ExecRequest, ReportsAllFaultsAtOnce) {
  const auto read = exec_request_from_parameters({{"command", "ls -l"},
                                                  {"terminal", "yes"},
                                                  {"rows", "0"},
                                                  {"columns", "70000"},
                                                  {"comand", "[]"},
                                                  {"project", "vision"}});

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(read.error().to_string(),
            "the request to run a program is invalid\n"
            "  columns: '70000' is not a number from 1 to 65535\n"
            "  comand: is not a parameter; did you mean 'command'?\n"
            "  command: is not a JSON list of words such as [\"ls\", \"-l\"]\n"
            "  rows: '0' is not a number from 1 to 65535\n"
            "  terminal: 'yes' is neither true nor false");
}

TEST(ExecRequest, RequiresAProgram) {
  EXPECT_FALSE(exec_request_from_parameters({}));
  for (const char* command : {"", "[]", "[\"\"]", "[1]", "{}", "\"ls\"", "[\"a\\u0000b\"]", "[["}) {
    EXPECT_FALSE(exec_request_from_parameters({{"command", command}})) << command;
  }
}

TEST(CopyRequest, ReadsBackUnchanged) {
  for (const CopyRequest& request :
       {CopyRequest{.path = "/data/a b"},
        CopyRequest{.task = "worker-1", .path = "../\x1b[31m", .into = true}}) {
    const auto read = copy_request_from_parameters(copy_request_to_parameters(request));
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, request);
  }
}

TEST(CopyRequest, RequiresAPathAndReportsEveryFaultAtOnce) {
  for (const Parameters& parameters :
       {Parameters{}, Parameters{{"path", ""}}, Parameters{{"path", std::string("a\0b", 3)}}}) {
    EXPECT_FALSE(copy_request_from_parameters(parameters));
  }
  const auto read = copy_request_from_parameters({{"into", "maybe"}, {"from", "here"}});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().faults.size(), 3U);
}

TEST(ForwardRequest, ReadsBackUnchangedAndRequiresAPort) {
  const ForwardRequest request{.task = "launcher", .port = 65'535};

  const auto read = forward_request_from_parameters(forward_request_to_parameters(request));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, request);
  EXPECT_FALSE(forward_request_from_parameters({}));
  for (const char* port : {"", "0", "65536", "-1", "http", "80 "}) {
    EXPECT_FALSE(forward_request_from_parameters({{"port", port}})) << port;
  }
}

TEST(TerminalControl, ReadsBackUnchanged) {
  for (const TerminalControl& control :
       {TerminalControl(Resize{.rows = 50, .columns = 132}), TerminalControl(CloseInput{})}) {
    const auto read = terminal_control_from_json(terminal_control_to_json(control));
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, control);
  }
}

TEST(TerminalControl, RefusesOtherMessages) {
  for (const char* text :
       {"", "{}", "[]", "null", R"({"close_input": false})", R"({"resize": {"rows": 1}})",
        R"({"resize": {"rows": 0, "columns": 1}})", R"({"resize": {"rows": 1, "columns": 99999}})",
        R"({"resize": {"rows": 1, "columns": 1}, "close_input": true})", R"({"else": 1})"}) {
    const auto read = terminal_control_from_json(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
  }
}

TEST(TerminalExit, ReadsBackUnchanged) {
  for (const job::ExitStatus& status :
       {job::ExitStatus{.code = 3}, job::ExitStatus{.signal = 9, .stopped = true},
        job::ExitStatus{.code = 127, .error = "'x' was not found"}}) {
    const auto read = terminal_exit_from_json(terminal_exit_to_json(status));
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, status);
  }
  EXPECT_FALSE(terminal_exit_from_json("{}"));
}

}  // namespace
}  // namespace muster::api
