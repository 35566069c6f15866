// experiments logs, jobs logs: what was printed, as a table or as it comes.
//
// Gradient's column JOB ID holds the ID of the experiment, in each line the same; scripts that cut
// columns count on it, so it does here. Which task has printed a line stands at the head of its
// message, as `muster logs` has it; where there is one task alone, the message is what it printed.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cli/common/report.h"
#include "dialects/gradient/command_parts.h"
#include "dialects/gradient/log_lines.h"
#include "dialects/gradient/pager.h"

namespace muster::dialects::gradient {

namespace {

using Lines = std::vector<std::pair<int64_t, std::string>>;

struct LogsAsked {
  std::string id;
  LogSpan span;
  bool follows = false;
};

bool is_one_of(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// --follow, by itself or with any of the words that Python's click takes for a truth value.
bool wants_to_follow(Asked& asked) {
  const bool is_given = asked.reader.has("--follow");
  if (asked.arguments.names.empty()) return is_given;
  const std::string& word = asked.arguments.names.front();
  const std::string lower = base::lower_case(word);
  if (!is_given) asked.reader.fault("", "unexpected '" + word + "'");
  if (is_one_of({"true", "t", "1", "yes", "y", "on"}, lower)) return true;
  if (!is_one_of({"false", "f", "0", "no", "n", "off"}, lower)) {
    asked.reader.fault("--follow", "'" + word + "' is neither true nor false");
  }
  return false;
}

LogsAsked read_logs_flags(Asked& asked, const std::string& what) {
  constexpr int kMost = 10000;
  LogsAsked wish;
  wish.id = asked.reader.text("--experimentId");
  if (wish.id.empty()) wish.id = required(asked, "--id", "say which " + what);
  wish.span.first = number_from(asked, "--line", 0, 0);
  wish.span.most = number_from(asked, "--limit", kMost, 1);
  wish.follows = wants_to_follow(asked);
  const bool has_span = asked.reader.has("--line") || asked.reader.has("--limit");
  if (wish.follows && has_span) note("--line and --limit do nothing beside --follow");
  return wish;
}

Result<Lines> read_lines(cli::Connection& connection, const job::Job& job, const LogSpan& span,
                         const std::optional<std::string>& task) {
  const job::LogQuery query{.follow = false, .task = task, .since = {}, .tail = {}};
  const cli::logs::LogLook look{.prefix = !task && job.tasks.size() > 1, .timestamps = false};
  return connection.call([&](api::Client& client) -> Result<Lines> {
    LogLines lines(span, look);
    const auto done =
        client.logs(job.id, query, [&](const job::LogRecord& record) { return lines.add(record); });
    if (!done) return done.error();
    return lines.finish();
  });
}

AsciiTable experiment_log_table(const std::string& id, const Lines& lines) {
  AsciiTable table("Experiment " + id + " logs");
  table.add({"JOB ID", "LINE", "MESSAGE"});
  table.set_colour(0, kBlue);
  table.set_colour(1, kRed);
  for (const auto& [number, text] : lines) table.add({id, std::to_string(number), text});
  return table;
}

AsciiTable job_log_table(const std::string& id, const Lines& lines) {
  AsciiTable table("Job " + id + " logs");
  table.add({"LINE", "MESSAGE"});
  table.set_colour(0, kRed);
  for (const auto& [number, text] : lines) table.add({std::to_string(number), text});
  return table;
}

Result<int> show_lines(const Lines& lines, const AsciiTable& table) {
  MUSTER_CHECK(lines.empty() ? say("No logs found") : show_table(table));
  return cli::kExitDone;
}

}  // namespace

Result<int> show_logs(Asked& asked) {
  const LogsAsked wish = read_logs_flags(asked, "experiment");
  return with_server(asked, kFetch, "Experiment", [&](cli::Connection& connection) -> Result<int> {
    if (wish.follows) return follow_logs(connection, wish.id);
    MUSTER_TRY(const job::Job job, get_job(connection, wish.id));
    MUSTER_TRY(const Lines lines, read_lines(connection, job, wish.span, std::nullopt));
    return show_lines(lines, experiment_log_table(job.id, lines));
  });
}

/// "ID/worker-0" is a task, "ID" all of them.
Result<int> show_job_logs(Asked& asked) {
  const LogsAsked wish = read_logs_flags(asked, "job");
  const size_t slash = wish.id.find('/');
  const std::string experiment = wish.id.substr(0, slash);
  std::optional<std::string> task;
  if (slash != std::string::npos) task = wish.id.substr(slash + 1);
  return with_server(asked, kFetch, "Job", [&](cli::Connection& connection) -> Result<int> {
    if (wish.follows) return follow_logs(connection, experiment, task);
    MUSTER_TRY(const job::Job job, get_job(connection, experiment));
    MUSTER_TRY(const Lines lines, read_lines(connection, job, wish.span, task));
    return show_lines(lines, job_log_table(wish.id, lines));
  });
}

}  // namespace muster::dialects::gradient
