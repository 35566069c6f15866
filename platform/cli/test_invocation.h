// Command lines, read as tests want them: as one command, or as what is said against them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "base/random.h"
#include "cli/invocation.h"

namespace muster::cli {

using Words = std::vector<std::string>;

inline Result<Invocation> parse_by(const Caller& caller, const Words& words) {
  base::FakeRandom random;
  return parse_invocation(words, caller, random);
}

template <class Command>
Command parsed_by(const Caller& caller, const Words& words) {
  const auto invocation = parse_by(caller, words);
  if (!invocation) {
    ADD_FAILURE() << invocation.error().to_string();
    return {};
  }
  return std::get<Command>(*invocation);
}

inline std::string refusal_by(const Caller& caller, const Words& words) {
  const auto invocation = parse_by(caller, words);
  return invocation ? "accepted" : invocation.error().to_string();
}

/// Who has chosen a project, at a time that is known.
inline Caller ada_in_team_a() {
  return {.folder = "/home/ada",
          .environment = {},
          .now = base::FakeClock().now(),
          .project = "team-a"};
}

}  // namespace muster::cli
