// logs: what all pods of a job printed, merged; or one of them.
#include "base/units.h"
#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "cli/logs/logs.h"
#include "dialects/runai/others.h"
#include "dialects/runai/parts.h"
#include "dialects/runai/sentences.h"

namespace muster::dialects::runai {

namespace {

/// -1, as Run:AI has it, and any other number below zero: all lines.
std::optional<int> tail_of(Asked& asked) {
  const int lines = asked.reader.number("--tail", -1);
  return lines < 0 ? std::nullopt : std::optional(lines);
}

job::LogQuery read_query(Asked& asked) {
  cli::FlagReader& reader = asked.reader;
  job::LogQuery query{.follow = reader.has("--follow")};
  const bool both = reader.has("--since") && reader.has("--since-time");
  if (both) reader.fault("--since-time", "cannot be given together with --since");
  const char* const since = reader.has("--since-time") ? "--since-time" : "--since";
  query.since = reader.moment(since, asked.caller.now);
  query.tail = tail_of(asked);
  return query;
}

}  // namespace

Result<int> logs_command(Asked& asked) {
  cli::logs::LogsCommand command{.name = the_name(asked, "job"), .project = project_of(asked)};
  command.query = read_query(asked);
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(cli::Connection connection, connect(asked));
  MUSTER_TRY(const job::Job job, find_job(connection, command.name, command.project));
  const std::string pod = asked.reader.text("--pod");
  if (!pod.empty()) {
    MUSTER_TRY(const job::Task task, find_pod(job, pod));
    command.query.task = task.name;
  }
  if (job.attempt == 0 && !command.query.follow) return nothing_printed_yet(job);
  // Of one pod, its bytes as they are: there is nobody to tell it from.
  command.look.prefix = pod.empty() && job.tasks.size() > 1;
  command.look.timestamps = asked.reader.has("--timestamps");
  return execute(command, asked.hooks);
}

}  // namespace muster::dialects::runai
