// list: the newest jobs that match the flags, as a table that fits the terminal, once or live.

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "api/wire.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/row_view.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/jobs/jobs.h"

namespace muster::cli::jobs {

namespace {

constexpr int kUsualRows = 50;

/// The flag of a parameter of the query.
constexpr std::pair<std::string_view, std::string_view> kFlagOfParameter[] = {
    {"phase", "--phase"}, {"kind", "--kind"},     {"label", "--label"},
    {"sort", "--sort"},   {"origin", "--origin"}, {"text", "--search"}};

/// The words of flags that the query's own parameters also have.
void read_query(Reading& in, api::JobQuery& query) {
  api::Parameters parameters;
  for (const auto& [parameter, flag] : kFlagOfParameter) {
    const std::vector<std::string> values = in.reader.texts(std::string(flag));
    if (values.empty()) continue;
    if (parameter == "label") {
      for (const std::string& value : values) parameters.add("label", value);
    } else if (parameter == "text") {
      parameters["text"] = base::joined(values, " ");
    } else {
      parameters[std::string(parameter)] = base::joined(values, ",");
    }
  }
  auto read = api::job_query_from_parameters(parameters);
  if (read) {
    const bool is_sorted = parameters.contains("sort");
    query = *std::move(read);
    if (!is_sorted) query.order = api::JobOrder::kNewestFirst;
    return;
  }
  for (const base::Fault& fault : read.error().faults) {
    for (const auto& [parameter, flag] : kFlagOfParameter) {
      if (parameter == fault.field) in.reader.fault(std::string(flag), fault.what);
    }
  }
}

void read_columns(Reading& in, ListCommand& command) {
  if (!in.reader.has("--columns")) return;
  const std::string text = in.reader.text("--columns");
  command.explains_columns = text == "help";
  if (command.explains_columns) return;
  auto columns = columns_of(text);
  if (!columns) return in.reader.fault("--columns", columns.error().what);
  command.columns = *std::move(columns);
}

Output read_list_output(Reading& in) {
  const std::string format =
      in.reader.choice("--output", {"table", "json", "yaml", "names", "csv"});
  if (format == "csv") return Output::kCsv;
  if (format == "json") return Output::kJson;
  if (format == "yaml") return Output::kYaml;
  return format == "names" ? Output::kNames : Output::kTable;
}

Call read_list(Reading& in) {
  ListCommand command;
  read_query(in, command.query);
  for (const char* flag : {"--project", "--user", "--phase", "--kind"}) in.refuse_empty(flag);
  if (in.reader.has("--project")) command.query.project = in.reader.text("--project");
  if (in.reader.has("--user")) command.query.owner = in.reader.text("--user");
  command.mine = in.reader.has("--mine");
  if (command.mine && in.reader.has("--user")) {
    in.reader.fault("--user", "cannot be used with --mine");
  }
  command.query.submitted.after = in.reader.moment("--since", in.caller.now);
  command.query.submitted.before = in.reader.moment("--until", in.caller.now);
  command.query.ended.after = in.reader.moment("--ended-since", in.caller.now);
  command.output = read_list_output(in);
  const bool is_page = command.output == Output::kTable;
  command.limit = in.reader.number_between("--limit", is_page ? kUsualRows : 0, 0);
  command.members = in.reader.has("--members") || command.query.origin;
  command.watch = in.reader.has("--watch");
  command.wide = in.reader.has("--wide");
  read_columns(in, command);
  const bool has_columns = is_page || command.output == Output::kCsv;
  if (!command.columns.empty() && !has_columns) {
    in.reader.fault("--columns", "is for tables and csv");
  }
  if (command.wide && !is_page) in.reader.fault("--wide", "is for tables");
  if (command.watch && !is_page) {
    in.reader.fault("--output", "cannot be used with --watch, which shows a table");
  }
  return command;
}

Flags list_flags() {
  return {
      {.name = "--project",
       .value = "PROJECT",
       .help = "only jobs of this project",
       .offer = Offer::kProjects},
      {.name = "--phase",
       .value = "PHASE",
       .help = "only jobs in this phase; active: all that have not ended; ended: all that have; "
               "repeated: in any of these phases",
       .choices = {"active", "ended", "Queued", "Starting", "Running", "Succeeded", "Failed",
                   "Stopped"},
       .offer = Offer::kChoices,
       .repeats = true},
      {.name = "--mine", .help = "only your jobs"},
      {.name = "--user", .value = "USER", .help = "only jobs of this user", .offer = Offer::kUsers},
      {.name = "--label",
       .letter = "-l",
       .value = "NAME[=VALUE]",
       .help = "only jobs with this label; !NAME or NAME!=VALUE: only jobs without it; repeated: "
               "all conditions hold",
       .repeats = true},
      {.name = "--kind",
       .value = "KIND",
       .help = "only jobs of this kind; repeated: of any of these kinds",
       .choices = {"single", "mpi", "grpc", "torch"},
       .offer = Offer::kChoices,
       .repeats = true},
      {.name = "--search",
       .value = "TEXT",
       .help = "only jobs with these words in their name, id, labels or command"},
      {.name = "--since",
       .value = "TIME",
       .help = "only jobs submitted since this time: 2h (ago), 2026-01-31 (midnight in UTC), or "
               "2026-01-31T12:00:00Z"},
      {.name = "--until", .value = "TIME", .help = "only jobs submitted before this time"},
      {.name = "--ended-since", .value = "TIME", .help = "only jobs that ended since this time"},
      {.name = "--origin",
       .value = "KIND[/NAME]",
       .help = "only jobs that an array, sweep, schedule or rerun made; array/train: only those of "
               "the array train"},
      {.name = "--members", .help = "also the members of arrays and the trials of sweeps"},
      {.name = "--sort",
       .value = "[-]COLUMN",
       .help = "order: submitted, started, ended, duration, name, project, owner, kind, phase, "
               "priority, gpus; with -: descending (default: -submitted)"},
      {.name = "--limit",
       .value = "N",
       .help = "at most N rows; 0: all (default: 50 in a table, else all)"},
      {.name = "--columns",
       .value = "A,B,...",
       .help = "the columns of the table; 'help' lists them"},
      {.name = "--wide", .help = "on a terminal, do not cut long lines"},
      {.name = "--watch", .letter = "-w", .help = "show the table live; q quits"}};
}

}  // namespace

Command list_command() {
  return {.name = "list",
          .alias = "ls",
          .more_aliases = {"ps"},
          .help = "list jobs, arrays, sweeps and schedules, newest first",
          .read = read_list,
          .flags = list_flags() + output_flag({"table", "json", "yaml", "names", "csv"}),
          .example = "muster list --phase active --mine"};
}

namespace {

using api::JobRow;

/// The first rows, at most `limit`; 0: all. `more`: whether there are others.
struct FoundRows {
  std::vector<JobRow> rows;
  bool more = false;
};

Result<FoundRows> read_rows(api::Client& client, api::JobQuery query, int limit) {
  FoundRows found;
  while (true) {
    const int missing = limit == 0 ? api::kMostJobs : limit - static_cast<int>(found.rows.size());
    query.limit = std::min(missing, api::kMostJobs);
    MUSTER_TRY(api::RowPage page, client.list_rows(query));
    std::move(page.rows.begin(), page.rows.end(), std::back_inserter(found.rows));
    query.cursor = std::move(page.next);
    found.more = !query.cursor.empty();
    if (!found.more || (limit != 0 && std::cmp_greater_equal(found.rows.size(), limit))) break;
  }
  return found;
}

Result<std::vector<job::Job>> read_jobs(api::Client& client, api::JobQuery query, int limit) {
  std::vector<job::Job> jobs;
  do {
    const int missing = limit == 0 ? api::kMostJobs : limit - static_cast<int>(jobs.size());
    query.limit = std::min(missing, api::kMostJobs);
    MUSTER_TRY(api::JobPage page, client.list(query));
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(jobs));
    query.cursor = std::move(page.next);
  } while (!query.cursor.empty() && (limit == 0 || std::cmp_less(jobs.size(), limit)));
  return jobs;
}

std::string table_of_rows(const ListCommand& command, const std::vector<JobRow>& rows,
                          base::Time now, size_t width) {
  return row_table(rows, command.columns.empty() ? usual_columns(rows) : command.columns, now,
                   width);
}

/// Reports on standard error how many rows the table lacks.
Result<void> report_rest(Connection& connection, api::JobQuery query, size_t shown) {
  query.limit = 1;
  query.count = true;
  query.cursor.clear();
  MUSTER_TRY(const api::RowPage page,
             connection.call([&](api::Client& client) { return client.list_rows(query); }));
  if (!page.counts) return {};
  std::cerr << "muster: " << shown << " of " << page.counts->all
            << " rows; all: --limit 0; fewer: --phase, --mine, --since, --search" << std::endl;
  return {};
}

std::string columns_help() {
  Table table({{"COLUMN"}, {"CONTENT"}});
  for (const RowColumn& column : row_columns()) {
    table.add({std::string(column.name), std::string(column.help)});
  }
  return table.to_string();
}

/// Shows the table, and again after each change of a job, at most once a second. The ages grow in
/// between. Changes are announced by the server: while nothing changes, it is asked nothing.
class LiveList {
 public:
  LiveList(const ListCommand& command, Connection& connection, api::JobQuery query)
      : command_(command),
        connection_(connection),
        query_(std::move(query)),
        timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
        wake_(::epoll_create1(EPOLL_CLOEXEC)) {
    itimerspec every{.it_interval = {.tv_sec = 1, .tv_nsec = 0},
                     .it_value = {.tv_sec = 1, .tv_nsec = 0}};
    ::timerfd_settime(timer_.get(), 0, &every, nullptr);
    for (const int fd : {timer_.get(), screen_.signals_fd(), screen_.keys_fd()}) {
      epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
      if (fd >= 0) ::epoll_ctl(wake_.get(), EPOLL_CTL_ADD, fd, &event);
    }
  }

  Result<int> run() {
    std::string place;
    while (true) {
      if (!draw(connection_.client()) && !left_) return error_ ? Result<int>(*error_) : code_;
      const http::Wake wake{.fd = wake_.get(), .on_wake = [this] { return on_wake(); }};
      const auto watched = connection_.client().watch_changes(
          query_.project, place,
          [this] {
            connection_.is_well();
            is_connected_ = true;
            is_changed_ = true;
            return true;
          },
          wake);
      is_connected_ = false;
      if (left_) return error_ ? Result<int>(*error_) : code_;
      if (!watched && watched.error().code != base::ErrorCode::kUnavailable) return watched.error();
      while (true) {
        MUSTER_TRY(const bool is_back, connection_.come_back(wake_.get()));
        if (is_back) break;
        if (!on_wake()) return error_ ? Result<int>(*error_) : code_;
      }
      is_changed_ = true;
    }
  }

 private:
  bool on_wake() {
    if (screen_.user_quits()) return leave();
    uint64_t ticks = 0;
    if (::read(timer_.get(), &ticks, sizeof ticks) != sizeof ticks) return true;
    const auto client = connection_.second_client();
    return draw(*client) || leave();
  }

  bool leave() {
    left_ = true;
    return false;
  }

  /// False: the rows cannot be read or shown.
  bool draw(api::Client& client) {
    const ScreenSize size = screen_.size();
    // A request would wait for a server that does not answer; meanwhile no key is read.
    if (is_connected_ && std::exchange(is_changed_, false)) {
      const int fitting = std::max(1, static_cast<int>(size.rows) - 2);
      auto rows = read_rows(client, query_,
                            command_.limit == 0 ? fitting : std::min(command_.limit, fitting));
      // The stream of changes breaks, too, and run() connects again.
      if (!rows && rows.error().code == base::ErrorCode::kUnavailable) return is_changed_ = true;
      if (!rows) {
        error_ = rows.error();
        return false;
      }
      rows_ = *std::move(rows);
    }
    std::string picture =
        table_of_rows(command_, rows_.rows, base::SystemClock().now(), size.columns);
    if (rows_.more) picture += "...\n";
    if (screen_.show(picture)) return true;
    code_ = kExitBrokenPipe;
    return false;
  }

  const ListCommand& command_;
  Connection& connection_;
  api::JobQuery query_;
  LiveScreen screen_;
  base::UniqueFd timer_;
  base::UniqueFd wake_;
  FoundRows rows_;
  bool is_connected_ = true;  ///< the stream of changes has begun and not broken off
  bool is_changed_ = true;
  bool left_ = false;
  std::optional<base::Error> error_;
  int code_ = kExitDone;
};

Result<int> show_rows(const ListCommand& command, Connection& connection,
                      const api::JobQuery& query) {
  MUSTER_TRY(const FoundRows found, connection.call([&](api::Client& client) {
    return read_rows(client, query, command.limit);
  }));
  const base::Time now = base::SystemClock().now();
  if (command.output == Output::kNames) {
    std::string names;
    for (const JobRow& row : found.rows) names += row.name + "\n";
    MUSTER_CHECK(show(names));
    return kExitDone;
  }
  if (command.output == Output::kCsv) {
    MUSTER_CHECK(show(row_csv(
        found.rows, command.columns.empty() ? usual_columns(found.rows) : command.columns, now)));
    return kExitDone;
  }
  const bool is_cut = !command.wide && terminal_of(STDOUT_FILENO).is_terminal;
  MUSTER_CHECK(show(table_of_rows(command, found.rows, now, is_cut ? screen_size().columns : 0)));
  if (found.more) MUSTER_CHECK(report_rest(connection, query, found.rows.size()));
  return kExitDone;
}

}  // namespace

Result<int> execute(const ListCommand& command, const Hooks& hooks) {
  if (command.explains_columns) {
    MUSTER_CHECK(show(columns_help()));
    return kExitDone;
  }
  if (command.watch && !terminal_of(STDOUT_FILENO).is_terminal) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "--watch requires a terminal, but standard output is not a terminal",
                       .advice = "print changes as lines: muster events --follow"};
  }
  MUSTER_TRY(Connection connection, connect(hooks));
  api::JobQuery query = command.query;
  if (command.mine) {
    MUSTER_TRY(const api::WhoAmI me,
               connection.call([](api::Client& client) { return client.who_am_i(); }));
    query.owner = me.user;
  }
  if (command.output == Output::kJson || command.output == Output::kYaml) {
    MUSTER_TRY(const std::vector<job::Job> jobs, connection.call([&](api::Client& client) {
      return read_jobs(client, query, command.limit);
    }));
    MUSTER_CHECK(show(command.output, "", api::jobs_to_json(jobs)));
    return kExitDone;
  }
  query.top = !command.members;
  if (command.watch) return LiveList(command, connection, std::move(query)).run();
  return show_rows(command, connection, query);
}

}  // namespace muster::cli::jobs
