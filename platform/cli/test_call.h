// Command lines for tests: read as one command, or as the faults found in them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fake_random.h"
#include "cli/cli.h"
#include "cli/command/call.h"

namespace muster::cli {

using Words = std::vector<std::string>;

inline Result<Call> parse_by(const Caller& caller, const Words& words) {
  base::FakeRandom random;
  return read_call(command_tree(), words, caller, random);
}

/// `words` and `flags`, then "-- ./train".
inline Words with_program(Words words, const Words& flags = {}) {
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"--", "./train"});
  return words;
}

template <class Command>
Command parsed_by(const Caller& caller, const Words& words) {
  const auto call = parse_by(caller, words);
  if (!call) {
    ADD_FAILURE() << call.error().to_string();
    return {};
  }
  const auto* const command = call->template options<Command>();
  if (!command) {
    ADD_FAILURE() << "another command was read";
    return {};
  }
  return *command;
}

inline std::string refusal_by(const Caller& caller, const Words& words) {
  const auto call = parse_by(caller, words);
  return call ? "accepted" : call.error().to_string();
}

/// A caller without a project in use, at a fixed time.
inline Caller ada() {
  return {.folder = "/home/ada",
          .environment = {{"PATH", "/usr/bin"}, {"TOKEN", "secret"}, {"COLOUR", "red"}},
          .is_root = false,
          .now = base::FakeClock().now()};
}

template <class Command>
Command parsed(const Words& words, const Caller& by = ada()) {
  return parsed_by<Command>(by, words);
}

inline std::string refusal(const Words& words, const Caller& by = ada()) {
  return refusal_by(by, words);
}

/// A caller with a project in use, at a fixed time.
inline Caller ada_in_team_a() {
  return {.folder = "/home/ada",
          .environment = {},
          .now = base::FakeClock().now(),
          .project = "team-a"};
}

template <class Command>
Command parsed_in_team_a(const Words& words) {
  return parsed_by<Command>(ada_in_team_a(), words);
}

inline std::string refusal_in_team_a(const Words& words) {
  return refusal_by(ada_in_team_a(), words);
}

// The current time in tests of output.

inline const base::Time kNow = base::FakeClock().now();

}  // namespace muster::cli
