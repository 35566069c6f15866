// Gradient's commands are texts for a shell ("pip install -r requirements.txt && python mnist.py");
// a job's command is an argv.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::dialects::gradient {

/// {"sh", "-c", text}.
std::vector<std::string> shell_command(const std::string& text);

/// Of the master of an MPI experiment: the words of a line that does nothing but call mpirun, so
/// that the launcher is seen to be one and its ranks keep logs of their own; else shell_command().
std::vector<std::string> master_command(const std::string& text);

/// The words that a shell makes of the text where it has nothing else to do with it; nothing where
/// it would expand, redirect, or run more than one command.
std::optional<std::vector<std::string>> plain_words(std::string_view text);

/// "sleep infinity": what Gradient's workers run so that the master finds them there.
bool is_endless_sleep(std::string_view text);

}  // namespace muster::dialects::gradient
