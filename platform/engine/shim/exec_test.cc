#include "engine/shim/exec.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {

namespace {

class ShebangScript : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    EXPECT_TRUE(base::write_new_file(path, text, 0755));
    return path;
  }

  std::optional<base::Error> fault_of(const std::string& text) {
    return interpreter_fault(write("script" + std::to_string(++count_), text), environment_);
  }

  base::TestFolder folder_;
  int count_ = 0;
  std::vector<std::string> environment_{"PATH=/usr/bin:/bin"};
};

TEST_F(ShebangScript, TheErrorNamesAMissingInterpreter) {
  const auto direct = fault_of("#!/usr/bin/pythn3\nprint(1)\n");
  ASSERT_TRUE(direct);
  EXPECT_TRUE(
      direct->what.ends_with("names the interpreter '/usr/bin/pythn3', which does not exist"))
      << direct->what;

  const auto by_env = fault_of("#! /usr/bin/env -S LANG=C pythn3 -u\nprint(1)\n");
  ASSERT_TRUE(by_env);
  EXPECT_TRUE(by_env->what.ends_with(
      "names the interpreter 'pythn3', which is not on the PATH of the task"))
      << by_env->what;
}

TEST_F(ShebangScript, TheErrorExplainsCrlfLineEnds) {
  for (const char* line : {"#!/bin/sh\r\n", "#!/usr/bin/env sh\r\n"}) {
    const auto fault = fault_of(std::string(line) + "true\r\n");
    ASSERT_TRUE(fault) << line;
    EXPECT_NE(fault->what.find("sh' and ends with a carriage return (CRLF line ends)"),
              std::string::npos)
        << fault->what;
    EXPECT_NE(fault->advice.find("sed -i 's/\\r$//' "), std::string::npos) << fault->advice;
  }
}

TEST_F(ShebangScript, AnExistingInterpreterIsNoFault) {
  for (const char* text : {"#!/bin/sh\ntrue\n", "#!/usr/bin/env sh\ntrue\n",
                           "#!/bin/sh -e\r\ntrue\n", "#!\n", "#!/usr/bin/env -S\n", "true\n", ""}) {
    EXPECT_FALSE(fault_of(text)) << text;
  }
}

TEST_F(ShebangScript, TheErrorIsNotThatTheScriptIsMissing) {
  const std::string path = write("train", "#!/usr/bin/pythn3\n");

  const auto child = spawn_program({.argv = {path}, .program = path, .environment = environment_});

  ASSERT_FALSE(child);
  const job::ExitStatus status = status_of_failed_start(child.error());
  EXPECT_EQ(job::explain(status), "exited with code 127: the first line of '" + path +
                                      "' names the interpreter '/usr/bin/pythn3', which does not "
                                      "exist");
  EXPECT_NE(job::advice_for(status).find("install the interpreter"), std::string::npos);
}

}  // namespace

}  // namespace muster::engine
