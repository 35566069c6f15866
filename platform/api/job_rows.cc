#include "api/job_rows.h"

#include <array>
#include <set>
#include <utility>

#include "record/field.h"
#include "words/job_table.h"
#include "words/sentence.h"

namespace muster::api {

using record::As;
using record::field;
using record::Need;
using record::Sent;
using record::Table;

namespace {

constexpr std::array<record::Named<JobRow::Object>, 4> kObjects{
    {{JobRow::Object::kJob, "job"},
     {JobRow::Object::kArray, "array"},
     {JobRow::Object::kSweep, "sweep"},
     {JobRow::Object::kSchedule, "schedule"}}};

std::vector<record::Row> rows_of_identity() {
  return {field<&JobRow::object>("object", {.sent = Sent::kAlways}),
          field<&JobRow::id>("id", {.need = Need::kRequired}),
          field<&JobRow::name>("name", {.need = Need::kRequired}),
          field<&JobRow::project>("project", {.need = Need::kRequired}),
          field<&JobRow::owner>("owner", {.sent = Sent::kAlways}),
          field<&JobRow::kind>("kind", {.sent = Sent::kAlways}),
          field<&JobRow::phase>("phase", {.need = Need::kRequired}),
          field<&JobRow::reason>(
              "reason",
              {.help = "Why it waits, what it does now, or why it failed.", .sent = Sent::kAlways},
              As::kSentence),
          field<&JobRow::labels>("labels", {.sent = Sent::kAlways}),
          field<&JobRow::origin>("origin")};
}

std::vector<record::Row> rows_of_figures() {
  return {field<&JobRow::gpu_milli>("gpus",
                                    {.help = "That all its tasks request.",
                                     .sent = Sent::kAlways,
                                     .schema = R"({"minimum": 0})"},
                                    As::kMilli),
          field<&JobRow::priority>("priority",
                                   {.help = "The priority in force.", .sent = Sent::kAlways}),
          field<&JobRow::tasks>("tasks", {.help = "A lost worker and its replacement count once.",
                                          .sent = Sent::kAlways,
                                          .least = 0}),
          field<&JobRow::tasks_running>("tasks_running", {.sent = Sent::kAlways, .least = 0}),
          field<&JobRow::members>("members", {.help = "Of an array, a sweep or a schedule."}),
          field<&JobRow::submitted>("submitted", {.need = Need::kRequired}),
          field<&JobRow::started>("started"),
          field<&JobRow::ended>("ended"),
          field<&JobRow::may_start>("may_start"),
          field<&JobRow::exit_code>("exit_code"),
          field<&JobRow::attempt>("attempt", {.sent = Sent::kAlways, .least = 0}),
          field<&JobRow::restarts>("restarts", {.sent = Sent::kAlways, .least = 0}),
          field<&JobRow::suspended>("suspended", {.sent = Sent::kAlways}),
          field<&JobRow::stop_requested>("stop_requested", {.sent = Sent::kAlways}),
          field<&JobRow::unreadable>("unreadable"),
          field<&JobRow::progress>("progress", {.help = "Of a job that has not ended."})};
}

}  // namespace

record::Words<JobRow::Object> words_of(const JobRow::Object*) {
  return {.schema = "ListedObject", .values = kObjects};
}

const Table& table_of(const MemberCounts*) {
  const record::Notes notes{.sent = Sent::kAlways, .least = 0};
  static const Table table =
      record::table<MemberCounts>(
          "MemberCounts",
          {field<&MemberCounts::all>("all", notes), field<&MemberCounts::waiting>("waiting", notes),
           field<&MemberCounts::running>("running", notes),
           field<&MemberCounts::succeeded>("succeeded", notes),
           field<&MemberCounts::failed>("failed", notes),
           field<&MemberCounts::stopped>("stopped", notes)})
          .as_answer(record::Unknown::kIgnored);
  return table;
}

const Table& table_of(const JobRow*) {
  static const Table table = [] {
    std::vector<record::Row> rows = rows_of_identity();
    for (record::Row& row : rows_of_figures()) rows.push_back(std::move(row));
    return record::table<JobRow>(
               "JobRow", std::move(rows),
               "A job, or an object with many jobs, without its tasks and events.")
        .as_answer(record::Unknown::kIgnored);
  }();
  return table;
}

const Table& table_of(const RowPage*) {
  static const Table table =
      record::table<RowPage>(
          "RowPage",
          {field<&RowPage::rows>("rows", {.need = Need::kRequired}),
           field<&RowPage::next>("next", {.help = "The `cursor` of the next page. Absent: this is "
                                                  "the last page."}),
           field<&RowPage::counts>("counts", {.help = "If the query has `count=true`."})})
          .as_answer(record::Unknown::kIgnored);
  return table;
}

JobRow row_of(const job::Job& job) {
  JobRow row{
      .id = job.id,
      .name = job.spec.name,
      .project = job.spec.project,
      .owner = job.owner,
      .kind = job.spec.kind,
      .phase = job.phase,
      .reason = job.failure ? words::sentence(job.failure->cause) : words::sentence(job.reason),
      .gpu_milli = gpu_milli_of(job.spec),
      .priority = job::priority_of(job.spec.scheduling),
      .labels = job.spec.labels,
      .origin = job.origin,
      .submitted = job.submitted,
      .started = job.started,
      .ended = job.ended,
      .may_start = job.may_start,
      .exit_code = job.exit_code,
      .attempt = job.attempt,
      .restarts = job.restarts,
      .suspended = job.suspended,
      .stop_requested = job.stop_requested,
      .unreadable = job.unreadable,
      .progress = job.progress};
  std::set<int> seats;
  for (const job::Task& task : job.tasks) {
    seats.insert(task.seat);
    if (task.phase == job::TaskPhase::kRunning && !task.left) ++row.tasks_running;
  }
  row.tasks = static_cast<int>(seats.size());
  return row;
}

std::string row_to_json(const JobRow& row) {
  return record::to_json(row);
}

std::string row_page_to_json(const RowPage& page) {
  return record::to_json(page);
}

base::Result<RowPage> row_page_from_json(std::string_view text) {
  return record::from_json<RowPage>(text, "list of rows");
}

}  // namespace muster::api
