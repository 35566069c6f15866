#include "cli/logs/logs.h"

#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "cli/logs/follow.h"
#include "job/log_record.h"

namespace muster::cli::logs {

namespace {

int natural_number(Reading& in, const std::string& flag) {
  const int number = in.reader.number(flag, 0);
  if (number < 0) in.reader.fault(flag, "is negative");
  return number;
}

/// One that the server would refuse is told before it is asked.
std::string read_pattern(Reading& in, const std::string& flag) {
  std::string text = in.reader.text(flag);
  if (text.empty()) in.reader.fault(flag, "is empty");
  const auto pattern = job::LogPattern::compile(text);
  if (!pattern) in.reader.fault(flag, pattern.error().what);
  return text;
}

Call read_logs(Reading& in) {
  LogsCommand command{
      .name = in.name("job"), .project = in.whose_job(), .query = {}, .look = read_look(in)};
  command.query.follow = in.reader.has("--follow");
  if (in.reader.has("--task")) command.query.task = in.reader.text("--task");
  command.query.since = in.reader.moment("--since", in.caller.now);
  if (in.reader.has("--tail")) command.query.tail = natural_number(in, "--tail");
  if (in.reader.has("--rank")) command.query.rank = natural_number(in, "--rank");
  if (in.reader.has("--grep")) command.query.grep = read_pattern(in, "--grep");
  command.look.json = in.reader.choice("--output", {"text", "json"}) == "json";
  for (const char* flag : {"--timestamps", "--no-prefix", "--no-fold"}) {
    if (command.look.json && in.reader.has(flag)) {
      in.reader.fault(flag, "does not go with --output json, which has all of a line");
    }
  }
  return command;
}

}  // namespace

Flags look_flags() {
  return {{.name = "--timestamps", .help = "begin each line with its time"},
          {.name = "--no-prefix", .help = "print lines without [rank@host] or [task]"},
          {.name = "--no-fold", .help = "on a terminal, print repeated lines each time"}};
}

LogLook read_look(const Reading& in) {
  return {.prefix = !in.reader.has("--no-prefix"),
          .timestamps = in.reader.has("--timestamps"),
          .fold = !in.reader.has("--no-fold")};
}

Command logs_command() {
  return {
      .name = "logs",
      .help = "what a job printed",
      .read = read_logs,
      .positionals = one_of(Offer::kJobs),
      .flags = Flags{{.name = "--follow", .letter = "-f", .help = "go on until the job has ended"},
                     {.name = "--task", .value = "TASK", .help = "only of this task"},
                     {.name = "--rank", .value = "N", .help = "only of this rank"},
                     {.name = "--grep",
                      .value = "PATTERN",
                      .help = "only lines in which it is found, a regular expression"},
                     {.name = "--since",
                      .value = "TIME",
                      .help = "only from then on: 10m ago, or 2026-01-31T12:00:00Z"},
                     {.name = "--tail", .value = "N", .help = "only the last N lines"}} +
               whose_job_flag() + look_flags() + output_flag({"text", "json"}),
      .example = "muster logs dist -f --rank 1 --grep loss",
      .see_also = "muster metrics, muster events"};
}

Result<int> execute(const LogsCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  Interrupts interrupts;
  const FollowRequest request{.name = command.name, .query = command.query, .look = command.look};
  MUSTER_TRY(const FollowEnd end, follow(connection, interrupts, request));
  if (end.how == FollowEnd::How::kEnded && !command.query.follow) return kExitDone;
  const int code = report_end(end, command.name, OnInterrupt::kDetach);
  // The logs were shown, and that was the question; how the job fared is in the row.
  return end.how == FollowEnd::How::kEnded ? kExitDone : code;
}

}  // namespace muster::cli::logs
