// Command lines of `gradient experiments create|run` for tests.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command/arguments.h"
#include "dialects/gradient/command_tree.h"
#include "dialects/gradient/experiment.h"

namespace muster::dialects::gradient {

using Words = std::vector<std::string>;

/// The words of the first command in `text`, split as by a shell. The text begins with "gradient".
inline Words pasted(std::string_view text) {
  if (text.starts_with("$ ")) text.remove_prefix(2);
  const std::string script =
      "gradient() { printf '%s\\n' \"$@\"; exit; }\n" + std::string(text) + "\n";
  std::string command = "sh -c '";
  for (const char letter : script) {
    if (letter == '\'') {
      command += "'\\''";
    } else {
      command += letter;
    }
  }
  std::FILE* const pipe = ::popen((command + "'").c_str(), "r");
  std::string printed;
  std::array<char, 4096> buffer{};
  for (size_t count = 1; count > 0;) {
    count = std::fread(buffer.data(), 1, buffer.size(), pipe);
    printed.append(buffer.data(), count);
  }
  EXPECT_EQ(::pclose(pipe), 0);
  Words words;
  while (!printed.empty()) {
    const size_t end = printed.find('\n');
    words.push_back(printed.substr(0, end));
    printed.erase(0, end + 1);
  }
  return words;
}

struct ReadExperiment {
  Experiment experiment;
  std::vector<base::Fault> faults;

  /// The faults as "--flag: what", one in each line.
  std::string fault_text() const {
    std::string text;
    for (const base::Fault& fault : faults) {
      text += (fault.field.empty() ? "" : fault.field + ": ") + fault.what + "\n";
    }
    return text;
  }
};

inline ReadExperiment read_by(const cli::Caller& caller, const Words& words) {
  const cli::Arguments arguments = cli::sort_arguments(command_tree(), words);
  cli::FlagReader reader(arguments);
  ReadExperiment read;
  read.experiment = read_experiment(arguments.path, reader, caller);
  read.faults = reader.faults();
  return read;
}

inline ReadExperiment read(const Words& words) {
  return read_by({.folder = "/here", .environment = {{"SECRET_OF_MINE", "1"}}}, words);
}

/// Reads a command line without faults, with the default machine types.
inline Experiment accepted(const Words& words) {
  ReadExperiment result = read(words);
  EXPECT_EQ(result.fault_text(), "");
  const auto known = use_machines(job::usual_machine_types(), result.experiment);
  EXPECT_TRUE(known) << (known ? "" : known.error().to_string());
  return std::move(result.experiment);
}

}  // namespace muster::dialects::gradient
