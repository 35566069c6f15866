#include "cli/common/row_view.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "cli/common/format.h"
#include "cli/common/output.h"
#include "record/input.h"

namespace muster::cli {

namespace {

using api::JobRow;
using base::Time;

/// How a cell is written.
struct CellForm {
  Time now;
  bool is_for_programs = false;  ///< full times instead of ages
};

struct ColumnOfRows {
  RowColumn column;
  std::string_view title;
  bool right = false;
  std::string (*cell)(const JobRow&, const CellForm&) = nullptr;
};

int64_t done_of(const api::MemberCounts& members) {
  return members.succeeded + members.failed + members.stopped;
}

std::string kind_cell(const JobRow& row, const CellForm&) {
  switch (row.object) {
    case JobRow::Object::kArray:
      return "array";
    case JobRow::Object::kSweep:
      return "sweep";
    case JobRow::Object::kSchedule:
      return "schedule";
    case JobRow::Object::kJob:
      break;
  }
  return row.unreadable ? "-" : std::string(job::to_string(row.kind));
}

std::string phase_cell(const JobRow& row, const CellForm&) {
  if (row.object == JobRow::Object::kSchedule) return row.suspended ? "Paused" : "Active";
  return row.unreadable ? "Unreadable" : std::string(job::to_string(row.phase));
}

/// "2/3" running; of an ended job all of them: "3". Of an array: "37/100" done.
std::string tasks_cell(const JobRow& row, const CellForm&) {
  if (row.unreadable || row.object == JobRow::Object::kSchedule) return "-";
  if (row.members)
    return std::to_string(done_of(*row.members)) + "/" + std::to_string(row.members->all);
  if (job::is_final(row.phase)) return std::to_string(row.tasks);
  return std::to_string(row.tasks_running) + "/" + std::to_string(row.tasks);
}

std::string duration_cell(const JobRow& row, const CellForm& form) {
  if (!row.started) return "-";
  return age(*row.started, row.ended.value_or(form.now));
}

std::string progress_cell(const JobRow& row, const CellForm& form) {
  if (row.members && row.members->all > 0) {
    return std::to_string(100 * done_of(*row.members) / row.members->all) + "%";
  }
  return row.progress ? progress_line(*row.progress, form.now) : "-";
}

std::string reason_cell(const JobRow& row, const CellForm&) {
  return row.reason.empty() && row.members ? members_words(*row.members) : row.reason;
}

std::string labels_cell(const JobRow& row, const CellForm&) {
  std::string text;
  for (const auto& [name, value] : row.labels) {
    text += (text.empty() ? "" : ",") + name + (value.empty() ? "" : "=" + value);
  }
  return text.empty() ? "-" : text;
}

std::string time_cell(const std::optional<Time>& time) {
  return time ? base::to_rfc3339(*time, 0) : "-";
}

std::string origin_cell(const JobRow& row, const CellForm&) {
  return row.origin ? origin_words(*row.origin) : "-";
}

const std::vector<ColumnOfRows>& all_columns() {
  static const std::vector<ColumnOfRows> columns{
      {{"name", "name of the job, array, sweep or schedule"},
       "NAME",
       false,
       [](const JobRow& row, const CellForm&) { return row.name; }},
      {{"project", "its project"},
       "PROJECT",
       false,
       [](const JobRow& row, const CellForm&) { return row.project; }},
      {{"user", "the user who submitted it"},
       "USER",
       false,
       [](const JobRow& row, const CellForm&) { return row.owner; }},
      {{"kind", "single, mpi, grpc, torch; or array, sweep, schedule"}, "KIND", false, kind_cell},
      {{"phase",
        "Queued, Starting, Running, Succeeded, Failed, Stopped; Unreadable (no valid record); of a "
        "schedule Active, Paused"},
       "PHASE",
       false,
       phase_cell},
      {{"tasks", "running tasks of all; of an ended job all; of an array the ended members"},
       "TASKS",
       true,
       tasks_cell},
      {{"gpus", "GPUs that all tasks request"},
       "GPUS",
       true,
       [](const JobRow& row, const CellForm&) { return base::format_milli(row.gpu_milli); }},
      {{"priority", "the priority in force"},
       "PRIORITY",
       true,
       [](const JobRow& row, const CellForm&) { return std::to_string(row.priority); }},
      {{"age", "time since it was submitted"},
       "AGE",
       true,
       [](const JobRow& row, const CellForm& form) { return age(row.submitted, form.now); }},
      {{"duration", "how long it has run"}, "DURATION", true, duration_cell},
      {{"progress", "as reported by its program"}, "PROGRESS", false, progress_cell},
      {{"exit", "the exit code of the deciding task"},
       "EXIT",
       true,
       [](const JobRow& row, const CellForm&) {
         return row.exit_code ? std::to_string(*row.exit_code) : "-";
       }},
      {{"attempt", "how often it was started"},
       "ATTEMPT",
       true,
       [](const JobRow& row, const CellForm&) { return std::to_string(row.attempt); }},
      {{"restarts", "attempts that were abandoned for another"},
       "RESTARTS",
       true,
       [](const JobRow& row, const CellForm&) { return std::to_string(row.restarts); }},
      {{"labels", "its labels"}, "LABELS", false, labels_cell},
      {{"origin", "the job, array, sweep or schedule it was made from"},
       "ORIGIN",
       false,
       origin_cell},
      {{"submitted", "time"},
       "SUBMITTED",
       false,
       [](const JobRow& row, const CellForm&) { return time_cell(row.submitted); }},
      {{"started", "time"},
       "STARTED",
       false,
       [](const JobRow& row, const CellForm&) { return time_cell(row.started); }},
      {{"ended", "time"},
       "ENDED",
       false,
       [](const JobRow& row, const CellForm&) { return time_cell(row.ended); }},
      {{"may_start", "when a waiting job is expected to start, or the next run of a schedule"},
       "MAY START",
       false,
       [](const JobRow& row, const CellForm& form) -> std::string {
         if (!row.may_start || form.is_for_programs) return time_cell(row.may_start);
         return *row.may_start <= form.now ? "now" : "in " + age(form.now, *row.may_start);
       }},
      {{"id", "never reused"},
       "ID",
       false,
       [](const JobRow& row, const CellForm&) { return row.id; }},
      {{"reason", "why it waits, what it does, or why it failed"}, "REASON", false, reason_cell}};
  return columns;
}

const ColumnOfRows* find_column(std::string_view name) {
  for (const ColumnOfRows& each : all_columns()) {
    if (each.column.name == name) return &each;
  }
  return nullptr;
}

std::vector<const ColumnOfRows*> columns_named(const std::vector<std::string>& names) {
  std::vector<const ColumnOfRows*> columns;
  for (const std::string& name : names) {
    if (const ColumnOfRows* const column = find_column(name)) columns.push_back(column);
  }
  return columns;
}

std::string csv_cell(std::string cell) {
  const bool is_formula =
      !cell.empty() && (std::string_view("=+@\t\r").find(cell[0]) != std::string_view::npos ||
                        (cell[0] == '-' && cell.size() > 1));
  if (is_formula) cell.insert(0, 1, '\'');
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char each : cell) quoted += each == '"' ? "\"\"" : std::string(1, each);
  return quoted + "\"";
}

}  // namespace

const std::vector<RowColumn>& row_columns() {
  static const std::vector<RowColumn> columns = [] {
    std::vector<RowColumn> found;
    for (const ColumnOfRows& each : all_columns()) found.push_back(each.column);
    return found;
  }();
  return columns;
}

std::vector<std::string> usual_columns(const std::vector<JobRow>& rows) {
  std::vector<std::string> names{"name",  "project", "kind",     "phase",
                                 "tasks", "age",     "duration", "reason"};
  const bool has_progress = std::any_of(
      rows.begin(), rows.end(), [](const JobRow& row) { return row.progress || row.members; });
  if (has_progress) names.insert(names.end() - 1, "progress");
  return names;
}

base::Result<std::vector<std::string>> columns_of(const std::string& text) {
  std::vector<std::string> names = base::split(base::lower_case(text), ',');
  for (std::string& name : names) name = base::trimmed(name);
  std::vector<std::string> known;
  for (const RowColumn& column : row_columns()) known.emplace_back(column.name);
  std::string faults;
  for (const std::string& name : names) {
    if (find_column(name) != nullptr) continue;
    faults += (faults.empty() ? "" : "; ") + record::not_a_choice(name, known);
  }
  if (names.empty()) faults = "is empty; give the names of columns, or help";
  if (faults.empty()) return names;
  return base::Error{.code = base::ErrorCode::kInvalid, .what = faults};
}

std::string row_table(const std::vector<JobRow>& rows, const std::vector<std::string>& columns,
                      Time now, size_t width) {
  const std::vector<const ColumnOfRows*> shown = columns_named(columns);
  std::vector<Column> titles;
  for (const ColumnOfRows* each : shown) titles.push_back({std::string(each->title), each->right});
  Table table(std::move(titles));
  for (const JobRow& row : rows) {
    std::vector<std::string> cells;
    for (const ColumnOfRows* each : shown) cells.push_back(each->cell(row, {.now = now}));
    table.add(std::move(cells));
  }
  return table.to_string("", width);
}

std::string row_csv(const std::vector<JobRow>& rows, const std::vector<std::string>& columns,
                    Time now) {
  const std::vector<const ColumnOfRows*> shown = columns_named(columns);
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::vector<std::string> cells;
    for (const ColumnOfRows* each : shown) cells.push_back(cell_of(*each));
    text += base::joined(cells, ",") + "\r\n";
  };
  add_line([](const ColumnOfRows& column) { return std::string(column.column.name); });
  for (const JobRow& row : rows) {
    add_line([&](const ColumnOfRows& column) {
      const std::string cell = column.cell(row, {.now = now, .is_for_programs = true});
      return csv_cell(cell == "-" ? "" : cell);
    });
  }
  return text;
}

std::string members_words(const api::MemberCounts& members) {
  const int64_t percent = members.all == 0 ? 100 : 100 * done_of(members) / members.all;
  std::vector<std::string> parts;
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) parts.push_back(std::to_string(count) + " " + what);
  };
  add(members.succeeded, "succeeded");
  add(members.failed, "failed");
  add(members.stopped, "stopped");
  add(members.running, "running");
  add(members.waiting, "waiting");
  return std::to_string(percent) + "% done" + (parts.empty() ? "" : ": " + base::joined(parts));
}

}  // namespace muster::cli
