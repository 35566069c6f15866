// The protocol of a terminal in a task over a WebSocket: its request, and the messages of both
// ends.
//
//   GET /v1/jobs/NAME/exec?task=T&command=["sh","-c","ls"]&terminal=true&rows=24&columns=80
//
// The client sends input as binary messages, and as text {"close_input": true} or {"resize":
// {"rows": 50, "columns": 132}}. The server sends binary messages, whose first byte identifies the
// output of the rest (if nothing follows, that output has ended), and last, as text, {"exit":
// {"code": 0, "signal": 0, ...}}; then it closes with 1000.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/query_parameters.h"
#include "base/result.h"
#include "job/exit_status.h"

namespace muster::api {

/// The command and its task.
struct ExecRequest {
  std::vector<std::string> command;
  std::string task;  ///< empty: the deciding task
  bool terminal = false;
  int rows = 24;
  int columns = 80;

  bool operator==(const ExecRequest&) const = default;
};

/// The running program of the task itself.
struct AttachRequest {
  std::string task;  ///< empty: the deciding task

  bool operator==(const AttachRequest&) const = default;
};

/// A tar of `path` comes out of the task, or is unpacked into it.
struct CopyRequest {
  std::string task;
  std::string path;  ///< as the task sees it; relative: to its working folder
  bool into = false;

  bool operator==(const CopyRequest&) const = default;
};

/// A connection to a port of the task.
struct ForwardRequest {
  std::string task;
  int port = 0;

  bool operator==(const ForwardRequest&) const = default;
};

Parameters attach_request_to_parameters(const AttachRequest& request);
base::Result<AttachRequest> attach_request_from_parameters(const Parameters& parameters);
Parameters copy_request_to_parameters(const CopyRequest& request);
base::Result<CopyRequest> copy_request_from_parameters(const Parameters& parameters);
Parameters forward_request_to_parameters(const ForwardRequest& request);
base::Result<ForwardRequest> forward_request_from_parameters(const Parameters& parameters);

Parameters exec_request_to_parameters(const ExecRequest& request);
/// kInvalid: with a fault for each parameter that is wrong or unknown.
base::Result<ExecRequest> exec_request_from_parameters(const Parameters& parameters);

inline constexpr char kOutputByte = 1;
inline constexpr char kErrorByte = 2;

struct Resize {
  int rows = 0;
  int columns = 0;

  bool operator==(const Resize&) const = default;
};
struct CloseInput {
  bool operator==(const CloseInput&) const = default;
};
using TerminalControl = std::variant<Resize, CloseInput>;

std::string terminal_control_to_json(const TerminalControl& control);
/// kInvalid: neither message.
base::Result<TerminalControl> terminal_control_from_json(std::string_view text);

std::string terminal_exit_to_json(const job::ExitStatus& status);
base::Result<job::ExitStatus> terminal_exit_from_json(std::string_view text);

}  // namespace muster::api
