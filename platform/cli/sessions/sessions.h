// The commands that reach into the tasks of a running job: exec, bash, attach, port-forward; and
// convert, which makes an interactive job one that runs unattended.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/terminal.h"
#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"

namespace muster::cli::sessions {

/// How long those who come early wait for a task.
inline constexpr std::chrono::milliseconds kUsualWait = std::chrono::minutes(5);

/// The annotation that holds the command line that `runai` was given (dialects/runai). A job that
/// is made of another has none.
inline constexpr const char* kTypedOfRunai = "runai/commandLine";

struct ExecCommand {
  std::string name;
  std::string project = {};
  api::ExecRequest request;
};

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

struct ForwardedPort {
  int local = 0;  ///< 0: any that is free
  int remote = 0;

  bool operator==(const ForwardedPort&) const = default;
};

/// "8888", "8080:8888", ":8888" and "0:8888". kInvalid: none of these.
base::Result<ForwardedPort> forwarded_port_of(std::string_view word);

struct PortForwardCommand {
  std::string name;
  std::string project = {};
  std::string task = {};
  std::string address = "127.0.0.1";
  std::vector<ForwardedPort> ports;
  std::string program = "muster";  ///< who speaks
};

Result<int> execute(const ExecCommand& command, const Hooks& hooks);
Result<int> execute(const BashCommand& command, const Hooks& hooks);
Result<int> execute(const AttachCommand& command, const Hooks& hooks);
Result<int> execute(const ConvertCommand& command, const Hooks& hooks);
Result<int> execute(const PortForwardCommand& command, const Hooks& hooks);

// sessions.cc
Command exec_command();
Command bash_command();
Command attach_command();
// convert.cc
Command convert_command();
// port_forward.cc
Command port_forward_command();

}  // namespace muster::cli::sessions
