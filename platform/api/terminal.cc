#include "api/terminal.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "api/fields.h"
#include "api/query_parameters.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/units.h"
#include "words/job_table.h"

namespace muster::api {

using base::Error;
using base::ErrorCode;
using base::Fault;
using base::Result;

namespace {

/// The largest size that the kernel accepts.
constexpr int kLargest = 65'535;

bool fits(int size) {
  return size >= 1 && size <= kLargest;
}

std::optional<std::vector<std::string>> command_words(const std::string& text) {
  const auto list = base::parse_json(text);
  if (!list.is_array() || list.empty()) return std::nullopt;
  std::vector<std::string> words;
  for (const auto& word : list) {
    if (!word.is_string()) return std::nullopt;
    words.push_back(word.get<std::string>());
    if (words.back().find('\0') != std::string::npos) return std::nullopt;
  }
  if (words.front().empty()) return std::nullopt;
  return words;
}

/// The fault of a number of rows or columns; empty if it was stored.
std::string take_size(int& into, const std::string& value) {
  const auto size = base::number_of<int>(value);
  if (!size || !fits(*size)) return base::in_quotes(value) + " is not a number from 1 to 65535";
  into = *size;
  return "";
}

/// The fault of one parameter; empty if it was stored in `request`.
std::string take_request_parameter(ExecRequest& request, const std::string& name,
                                   const std::string& value) {
  if (name == "command") {
    const auto words = command_words(value);
    if (words) request.command = *words;
    return words ? "" : "is not a JSON list of words such as [\"ls\", \"-l\"]";
  }
  if (name == "terminal") return take_flag(value, request.terminal);
  if (name == "rows") return take_size(request.rows, value);
  if (name == "columns") return take_size(request.columns, value);
  if (name == "task") {
    request.task = value;
    return "";
  }
  if (name == "project") return "";  // the project of the job; not part of this request
  return unknown_parameter(name, {"command", "task", "terminal", "rows", "columns"});
}

std::string take_request_parameter(AttachRequest& request, const std::string& name,
                                   const std::string& value) {
  if (name == "task") request.task = value;
  if (name == "task" || name == "project") return "";
  return unknown_parameter(name, {"task"});
}

std::string take_request_parameter(CopyRequest& request, const std::string& name,
                                   const std::string& value) {
  if (name == "path") {
    request.path = value;
    const bool plain = !value.empty() && value.find('\0') == std::string::npos;
    return plain ? "" : "is not a path";
  }
  if (name == "into") return take_flag(value, request.into);
  if (name == "task") request.task = value;
  if (name == "task" || name == "project") return "";
  return unknown_parameter(name, {"task", "path", "into"});
}

std::string take_request_parameter(ForwardRequest& request, const std::string& name,
                                   const std::string& value) {
  if (name == "port") {
    const auto port = base::number_of<int>(value);
    if (!port || !fits(*port)) return base::in_quotes(value) + " is not a port; give 1 to 65535";
    request.port = *port;
    return "";
  }
  if (name == "task") request.task = value;
  if (name == "task" || name == "project") return "";
  return unknown_parameter(name, {"task", "port"});
}

/// `needed`: the required parameter; empty: none.
template <class Request>
Result<Request> request_from(const Parameters& parameters, const std::string& needed,
                             const std::string& sentence) {
  Request request;
  std::vector<Fault> faults =
      read_parameters(parameters, [&](const std::string& name, const std::string& value) {
        return take_request_parameter(request, name, value);
      });
  if (!needed.empty() && parameters.count(needed) == 0) {
    faults.insert(faults.begin(), {.field = needed, .what = "is missing"});
  }
  if (faults.empty()) return request;
  return wrong_query(sentence, std::move(faults));
}

Parameters task_parameter(const std::string& task) {
  Parameters parameters;
  if (!task.empty()) parameters["task"] = task;
  return parameters;
}

Error no_control() {
  return {.code = ErrorCode::kInvalid,
          .what = "the message is neither a resize nor a close_input",
          .advice = R"(send {"resize": {"rows": 24, "columns": 80}} or {"close_input": true})"};
}

}  // namespace

Parameters exec_request_to_parameters(const ExecRequest& request) {
  Parameters parameters;
  parameters["command"] = base::json_text(nlohmann::json(request.command));
  if (!request.task.empty()) parameters["task"] = request.task;
  if (request.terminal) {
    parameters["terminal"] = "true";
    parameters["rows"] = std::to_string(request.rows);
    parameters["columns"] = std::to_string(request.columns);
  }
  return parameters;
}

Result<ExecRequest> exec_request_from_parameters(const Parameters& parameters) {
  return request_from<ExecRequest>(parameters, "command",
                                   "the request to run a program is invalid");
}

Parameters attach_request_to_parameters(const AttachRequest& request) {
  return task_parameter(request.task);
}

Result<AttachRequest> attach_request_from_parameters(const Parameters& parameters) {
  return request_from<AttachRequest>(parameters, "", "the request to attach is invalid");
}

Parameters copy_request_to_parameters(const CopyRequest& request) {
  Parameters parameters = task_parameter(request.task);
  parameters["path"] = request.path;
  if (request.into) parameters["into"] = "true";
  return parameters;
}

Result<CopyRequest> copy_request_from_parameters(const Parameters& parameters) {
  return request_from<CopyRequest>(parameters, "path", "the request to copy is invalid");
}

Parameters forward_request_to_parameters(const ForwardRequest& request) {
  Parameters parameters = task_parameter(request.task);
  parameters["port"] = std::to_string(request.port);
  return parameters;
}

Result<ForwardRequest> forward_request_from_parameters(const Parameters& parameters) {
  return request_from<ForwardRequest>(parameters, "port",
                                      "the request to forward a port is invalid");
}

std::string terminal_control_to_json(const TerminalControl& control) {
  if (std::holds_alternative<CloseInput>(control)) return R"({"close_input":true})";
  const auto& resize = std::get<Resize>(control);
  return R"({"resize":{"rows":)" + std::to_string(resize.rows) + R"(,"columns":)" +
         std::to_string(resize.columns) + "}}";
}

Result<TerminalControl> terminal_control_from_json(std::string_view text) {
  std::optional<Resize> resize;
  bool close_input = false;
  const auto read = read_document(text, "message", [&](Fields& fields) {
    fields.read("close_input", close_input);
    fields.object("resize", [&](Fields& size) {
      resize.emplace();
      size.read("rows", resize->rows, Need::kRequired);
      size.read("columns", resize->columns, Need::kRequired);
    });
  });
  if (!read) return read.error();
  if (close_input && !resize) return TerminalControl(CloseInput{});
  if (!close_input && resize && fits(resize->rows) && fits(resize->columns)) {
    return TerminalControl(*resize);
  }
  return no_control();
}

std::string terminal_exit_to_json(const job::ExitStatus& status) {
  std::string text = "{\"exit\":";
  JsonWriter json(text);
  record::write(json, status);
  return text + "}";
}

Result<job::ExitStatus> terminal_exit_from_json(std::string_view text) {
  job::ExitStatus status;
  MUSTER_CHECK(read_document(
      text, "message", [&](Fields& fields) { fields.record("exit", status, Need::kRequired); }));
  return status;
}

}  // namespace muster::api
