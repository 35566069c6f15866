#include "cli/common/report.h"

#include <unistd.h>

#include <exception>
#include <iostream>
#include <utility>

#include "cli/common/terminal.h"
#include "words/sentence.h"

namespace muster::cli {

using base::Error;
using base::ErrorCode;
using job::Phase;

int exit_code_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalid:
      return kExitUsage;
    case ErrorCode::kNotFound:
      return kExitNotFound;
    case ErrorCode::kConflict:
    case ErrorCode::kRefused:
    case ErrorCode::kExhausted:
      return kExitRefused;
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
      return kExitUnreachable;
    case ErrorCode::kInternal:
      break;
  }
  return kExitFailed;
}

int exit_code_of(const job::Job& job) {
  if (job.phase == Phase::kSucceeded) return kExitDone;
  const int code = job.exit_code.value_or(kExitFailed);
  return code == 0 ? kExitFailed : code;
}

std::string error_text(const Error& error, const std::string& program) {
  return program + ": " + error.to_string() + "\n";
}

std::string failure_text(const job::Job& job, const std::string& program) {
  const std::string head = program + ": job '" + job.spec.name + "' ";
  if (job.phase == Phase::kStopped) return head + "was stopped\n";
  if (job.phase != Phase::kFailed) return "";
  if (!job.failure) return head + "failed" + words::after_colon(job.reason) + "\n";
  std::string text = head + "failed: " + words::sentence(job.failure->cause) + "\n";
  return text + evidence_text(*job.failure);
}

std::string evidence_text(const job::Failure& failure) {
  std::string text;
  if (!failure.last_lines.empty()) {
    // What a rank printed may have come by another task: then its lines say so.
    text += failure.rank ? "  last lines:\n" : "  last lines of " + failure.task + ":\n";
    for (const std::string& line : failure.last_lines) text += "    " + line + "\n";
  }
  if (!failure.advice.empty()) text += "  " + failure.advice + "\n";
  return text;
}

Error usage_error(const std::vector<std::string>& path, std::vector<base::Fault> faults,
                  const std::string& program) {
  Error error{.code = ErrorCode::kInvalid};
  std::string command = program;
  for (const std::string& word : path) command += " " + word;
  error.advice = "see: " + command + " --help";
  if (faults.size() == 1) {
    const base::Fault& fault = faults.front();
    error.what = (fault.field.empty() ? "" : fault.field + " ") + fault.what;
    return error;
  }
  error.what = std::to_string(faults.size()) + " faults in the command line";
  error.faults = std::move(faults);
  return error;
}

int tell(const base::Error& error, const std::string& program) {
  const std::string text = error_text(error, program);
  std::cerr << (terminal_of(STDERR_FILENO).is_terminal ? safe_lines(text) : text) << std::flush;
  return exit_code_of(error);
}

int run_and_tell(const std::string& program,
                 const std::function<base::Result<int>()>& command_line) {
  try {
    const base::Result<int> code = command_line();
    return code ? *code : tell(code.error(), program);
  } catch (const std::exception& error) {
    // Out of memory, or a defect: nothing above may throw by contract.
    return tell({.what = error.what(), .advice = "this is a defect in muster; please report it"},
                program);
  }
}

}  // namespace muster::cli
