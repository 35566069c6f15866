// What was typed in the shells of a job (launch/shell_files.h keeps it), and which of it a job that
// runs unattended would do.
//
// The candidate is the last command that launches something (mpirun, horovodrun, torchrun, python
// ...) and succeeded, was interrupted, or still ran when its shell ended; where there is none, the
// last such command that ran for ten seconds or more and is no editor, pager or shell.
//
// Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli::sessions {

struct TypedCommand {
  std::string text;
  std::string folder;            ///< in which it was typed
  std::optional<int> exit_code;  ///< nothing: it had not ended
  std::chrono::seconds took{0};  ///< if it has ended

  bool operator==(const TypedCommand&) const = default;
};

/// In the order in which they were typed. A record that is cut off or damaged is left out.
std::vector<TypedCommand> parse_typed_commands(std::string_view records);

/// Whether it runs a program of the kinds that training is started with.
bool launches(const TypedCommand& command);

/// The index of the candidate.
std::optional<size_t> candidate_of(const std::vector<TypedCommand>& commands);

/// The last `most` of them as a table; numbered from 1, the newest last.
std::string typed_commands_view(const std::vector<TypedCommand>& commands, size_t most);

}  // namespace muster::cli::sessions
