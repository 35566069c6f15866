// What was asked for by the commands that sit before a job: bash, attach, convert.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace muster::cli {

/// How long those who come early wait for a task.
inline constexpr std::chrono::milliseconds kUsualWait = std::chrono::minutes(5);

struct BashCommand {
  std::string name;
  std::string project = {};
  std::string task = {};  ///< empty: the one that decides
  std::chrono::milliseconds wait = kUsualWait;
};

struct AttachCommand {
  std::string name;
  std::string project = {};
  std::string task = {};
  std::chrono::milliseconds wait = kUsualWait;
  bool no_stdin = false;
  bool from_start = false;
  std::string detach_keys = "\x10\x11";  ///< as a terminal sends them
};

struct ConvertCommand {
  std::string name;
  std::string project = {};
  std::string task = {};
  std::optional<int> line;             ///< of what is listed
  std::optional<std::string> command;  ///< instead of what was typed
  std::string new_name = {};           ///< empty: NAME-train
  std::string idempotency_key;
  bool list = false;
  bool yes = false;
  bool keep = false;       ///< the interactive job goes on
  bool end_first = false;  ///< it is ended at once, so that the new job can have its resources
  std::chrono::milliseconds wait = kUsualWait;  ///< for the new job to run
};

}  // namespace muster::cli
