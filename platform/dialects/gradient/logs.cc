#include "dialects/gradient/logs.h"

#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <utility>

#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/logs/logs.h"
#include "dialects/gradient/commands.h"

namespace muster::dialects::gradient {

bool LogLines::add(const job::LogRecord& record) {
  printer_.print(record, text_);
  take_whole_lines();
  return !is_full();
}

std::vector<std::pair<int64_t, std::string>> LogLines::finish() {
  printer_.finish(text_);
  take_whole_lines();
  return std::move(lines_);
}

void LogLines::take_whole_lines() {
  size_t begin = 0;
  for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n', begin)) {
    ++number_;
    if (number_ >= span_.first && !is_full()) {
      lines_.emplace_back(number_, text_.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  text_.erase(0, begin);
}

// experiments logs, jobs logs: the output of an experiment, as a table or line by line.
//
// Gradient's column JOB ID has the ID of the experiment in each line. Scripts that cut columns rely
// on it, so Muster keeps it. The task of a line is at the beginning of the message, as in `muster
// logs`; with a single task, the message is the line itself.

namespace {

using Lines = std::vector<std::pair<int64_t, std::string>>;

struct LogOptions {
  std::string id;
  LogSpan span;
  bool follows = false;
};

/// --follow alone, or with a word that Python's click accepts as a truth value.
bool follows_logs(Invocation& invocation) {
  const bool is_given = invocation.reader.has("--follow");
  if (invocation.arguments.names.empty()) return is_given;
  const std::string& word = invocation.arguments.names.front();
  const std::optional<bool> truth = cli::truth_of(word);
  if (!is_given) invocation.reader.fault("", "unexpected '" + word + "'");
  if (!truth) invocation.reader.fault("--follow", "'" + word + "' is neither true nor false");
  return truth.value_or(false);
}

LogOptions read_logs_flags(Invocation& invocation, const std::string& what) {
  constexpr int kMost = 10000;
  LogOptions options;
  options.id = invocation.reader.text("--experimentId");
  if (options.id.empty()) options.id = required(invocation, "--id", "say which " + what);
  options.span.first = invocation.reader.number_between("--line", 0, 0);
  options.span.most = invocation.reader.number_between("--limit", kMost, 1);
  options.follows = follows_logs(invocation);
  const bool has_span = invocation.reader.has("--line") || invocation.reader.has("--limit");
  if (options.follows && has_span) note("--line and --limit have no effect with --follow");
  return options;
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
  MUSTER_CHECK(lines.empty() ? print_line("No logs found") : show_table(table));
  return cli::kExitDone;
}

}  // namespace

Result<int> show_logs(Invocation& invocation) {
  const LogOptions options = read_logs_flags(invocation, "experiment");
  return with_server(
      invocation, kFetch, "Experiment", [&](cli::Connection& connection) -> Result<int> {
        if (options.follows) return follow_logs(connection, options.id);
        MUSTER_TRY(const job::Job job, get_job(connection, options.id));
        MUSTER_TRY(const Lines lines, read_lines(connection, job, options.span, std::nullopt));
        return show_lines(lines, experiment_log_table(job.id, lines));
      });
}

/// "ID/worker-0" is a task, "ID" stands for all tasks.
Result<int> show_job_logs(Invocation& invocation) {
  const LogOptions options = read_logs_flags(invocation, "job");
  const size_t slash = options.id.find('/');
  const std::string experiment = options.id.substr(0, slash);
  std::optional<std::string> task;
  if (slash != std::string::npos) task = options.id.substr(slash + 1);
  return with_server(invocation, kFetch, "Job", [&](cli::Connection& connection) -> Result<int> {
    if (options.follows) return follow_logs(connection, experiment, task);
    MUSTER_TRY(const job::Job job, get_job(connection, experiment));
    MUSTER_TRY(const Lines lines, read_lines(connection, job, options.span, task));
    return show_lines(lines, job_log_table(options.id, lines));
  });
}

namespace {

/// "ID<TAB>line<TAB>" at the beginning of each line.
class LineHead {
 public:
  LineHead(const std::string& id, bool colour)
      : id_(colour ? "\x1b[34m" + id + kPlain : id), colour_(colour) {}

  void operator()(std::string& out) {
    const std::string number = std::to_string(++line_);
    out += id_ + "\t" + (colour_ ? "\x1b[31m" + number + kPlain : number) + "\t";
  }

 private:
  static constexpr const char* kPlain = "\x1b[0m";
  std::string id_;
  bool colour_;
  uint64_t line_ = 0;
};

void show_detached(const std::string& id, const std::optional<std::string>& task) {
  const std::string logs =
      task ? "jobs logs --id " + id + "/" + *task : "experiments logs --id " + id;
  note("gradient: detached; experiment '" + id + "' continues\n" + "  follow it again: gradient " +
       logs + " --follow true\n" + "  stop it: gradient experiments stop --id " + id);
}

int report(const cli::logs::FollowEnd& end, const std::string& id,
           const std::optional<std::string>& task) {
  if (end.how == cli::logs::FollowEnd::How::kPipeClosed) return cli::kExitBrokenPipe;
  if (end.how == cli::logs::FollowEnd::How::kInterrupted) {
    // The terminal has just shown "^C".
    if (cli::terminal_of(STDERR_FILENO).is_terminal) std::cerr << '\n';
    if (!job::is_final(end.job.phase)) show_detached(id, task);
    return cli::kExitInterrupted;
  }
  const std::string text = cli::failure_text(for_gradient(end.job), kProgram);
  std::cerr << (cli::terminal_of(STDERR_FILENO).is_terminal ? cli::safe_lines(text) : text)
            << std::flush;
  return cli::exit_code_of(end.job);
}

}  // namespace

Result<int> follow_logs(cli::Connection& connection, const std::string& id,
                        const std::optional<std::string>& task) {
  MUSTER_TRY(const job::Job job,
             connection.call([&](api::Client& client) { return client.get(id); }));
  cli::Interrupts interrupts;
  MUSTER_CHECK(print_line("Awaiting logs..."));
  // With several tasks, each line names its task.
  const cli::logs::FollowRequest request{
      .name = job.id,
      .query = {.follow = true, .task = task},
      .look = {.prefix = !task && job.tasks.size() > 1},
      .on_interrupt = cli::logs::OnInterrupt::kDetach,
      .head = LineHead(job.id, cli::terminal_of(STDOUT_FILENO).colour),
      .program = kProgram,
      .commands = kWords};
  MUSTER_TRY(const cli::logs::FollowEnd end, cli::logs::follow(connection, interrupts, request));
  return report(end, job.id, task);
}

}  // namespace muster::dialects::gradient
