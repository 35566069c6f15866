// muster logs: what a job printed.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/logs/log_printer.h"
#include "job/log_record.h"

namespace muster::cli::logs {

struct LogsCommand {
  std::string name;
  std::string project = {};  ///< whose job is meant, where several have one of this name
  job::LogQuery query;
  LogLook look;
};

Result<int> execute(const LogsCommand& command, const Hooks& hooks);

/// How log lines are dressed: --timestamps, --no-prefix, --no-fold.
Flags look_flags();
LogLook read_look(const Reading& in);

Command logs_command();

}  // namespace muster::cli::logs
