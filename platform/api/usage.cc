#include "api/usage.h"

#include <algorithm>
#include <cstdio>
#include <variant>

#include "api/fields.h"
#include "api/job_query.h"
#include "api/schemas.h"
#include "record/field.h"

namespace muster::api {

using base::Time;
using std::chrono::nanoseconds;

namespace {

constexpr double kNanosecondsPerHour = 3600e9;

std::string take_usage_parameter(UsageQuery& query, const std::string& name,
                                 const std::string& value) {
  const auto moment = [&](std::optional<Time>& into) {
    into = parse_rfc3339(value);
    return into ? "" : in_quotes(value) + " is not a time such as 2026-01-31T12:34:56Z";
  };
  if (name == "since") return moment(query.since);
  if (name == "until") return moment(query.until);
  if (name == "format") {
    query.as_csv = value == "csv";
    return query.as_csv || value == "json" ? "" : in_quotes(value) + " is neither json nor csv";
  }
  return unknown_parameter(name, {"since", "until", "format"});
}

/// A cell of CSV, quoted if needed, that no spreadsheet takes for a formula.
std::string usage_cell(const std::string& text) {
  const bool is_formula = text.find_first_of("=+-@\t\r") == 0;
  std::string cell = is_formula ? "'" + text : text;
  if (cell.find_first_of("\",\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char each : cell) quoted += each == '"' ? std::string("\"\"") : std::string(1, each);
  return quoted + '"';
}

std::string hours_text(double hours) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", hours);
  return text;
}

}  // namespace

Parameters usage_query_parameters(const UsageQuery& query) {
  Parameters parameters;
  if (query.since) append_rfc3339(parameters["since"], *query.since);
  if (query.until) append_rfc3339(parameters["until"], *query.until);
  if (query.as_csv) parameters["format"] = "csv";
  return parameters;
}

base::Result<UsageQuery> usage_query_from_parameters(const Parameters& parameters) {
  UsageQuery query;
  std::vector<base::Fault> faults =
      read_parameters(parameters, [&](const std::string& name, const std::string& value) {
        return take_usage_parameter(query, name, value);
      });
  if (query.since && query.until && *query.since > *query.until) {
    faults.push_back({.field = "since", .what = "is after until"});
  }
  if (faults.empty()) return query;
  return wrong_query("the query for the usage of a project is invalid", std::move(faults));
}

nanoseconds time_run(const job::JobFacts& job, Time since, Time until) {
  nanoseconds sum{0};
  job.each_run([&](const job::RunSpan& run) {
    const Time end = run.end.value_or(until);
    sum += std::max(nanoseconds(0), std::min(end, until) - std::max(run.begin, since));
  });
  return sum;
}

void UsageSum::add(const job::JobFacts& job) {
  if (!may_count(job)) return;
  const nanoseconds ran = time_run(job, since_, until_);
  if (ran == nanoseconds(0)) return;
  UserUsage& user = users_[{std::string(job.project), std::string(job.owner)}];
  user.project = job.project;
  user.user = job.owner;
  ++user.jobs;
  if (job.phase == job::Phase::kFailed) ++user.failed;
  const double hours = static_cast<double>(ran.count()) / kNanosecondsPerHour;
  user.job_hours += hours;
  user.gpu_hours += hours * static_cast<double>(job.gpu_milli()) / 1000;
}

void UsageSum::add(const UsageSum& other) {
  for (const auto& [key, more] : other.users_) {
    UserUsage& user =
        users_.try_emplace(key, UserUsage{.project = key.first, .user = key.second}).first->second;
    user.jobs += more.jobs;
    user.failed += more.failed;
    user.job_hours += more.job_hours;
    user.gpu_hours += more.gpu_hours;
  }
}

ProjectUsage UsageSum::of(const std::string& project) const {
  ProjectUsage usage{.project = project, .since = since_, .until = until_};
  for (const auto& [key, user] : users_) usage.users.push_back(user);
  std::stable_sort(usage.users.begin(), usage.users.end(),
                   [](const UserUsage& left, const UserUsage& right) {
                     return std::pair(left.gpu_hours, left.job_hours) >
                            std::pair(right.gpu_hours, right.job_hours);
                   });
  return usage;
}

const record::Table& table_of(const UserUsage*) {
  using record::Sent;
  static const record::Table table =
      record::table<UserUsage>(
          "UserUsage",
          {record::field<&UserUsage::project>("project", {.need = record::Need::kRequired}),
           record::field<&UserUsage::user>("user", {.need = record::Need::kRequired}),
           record::field<&UserUsage::jobs>(
               "jobs", {.help = "Jobs that ran in the span.", .sent = Sent::kAlways}),
           record::field<&UserUsage::failed>("failed",
                                             {.help = "Of these.", .sent = Sent::kAlways}),
           record::field<&UserUsage::job_hours>(
               "job_hours", {.help = "Hours that they ran.", .sent = Sent::kAlways}),
           record::field<&UserUsage::gpu_hours>(
               "gpu_hours",
               {.help = "Hours that they ran, times the GPUs of each.", .sent = Sent::kAlways})})
          .as_answer();
  return table;
}

const record::Table& table_of(const ProjectUsage*) {
  using record::Sent;
  static const record::Table table =
      record::table<ProjectUsage>(
          "ProjectUsage",
          {record::field<&ProjectUsage::project>("project", {.need = record::Need::kRequired}),
           record::field<&ProjectUsage::since>("since", {.need = record::Need::kRequired}),
           record::field<&ProjectUsage::until>("until", {.need = record::Need::kRequired}),
           record::field<&ProjectUsage::users>(
               "users", {.help = "The most GPU hours first; users of the project and of the "
                                 "projects below it.",
                         .sent = Sent::kAlways})})
          .as_answer();
  return table;
}

std::string usage_to_json(const ProjectUsage& usage) {
  return record::to_json(usage);
}
base::Result<ProjectUsage> usage_from_json(std::string_view text) {
  return record::from_json<ProjectUsage>(text, "usage");
}

std::string usage_to_csv(const ProjectUsage& usage) {
  std::string text = "project,user,jobs,failed,job_hours,gpu_hours\n";
  for (const UserUsage& user : usage.users) {
    text += usage_cell(user.project) + "," + usage_cell(user.user) + "," +
            std::to_string(user.jobs) + "," + std::to_string(user.failed) + "," +
            hours_text(user.job_hours) + "," + hours_text(user.gpu_hours) + "\n";
  }
  return text;
}

void add_usage_schemas(record::Schemas& schemas) {
  schemas.add(record::table_for<ProjectUsage>());
}

}  // namespace muster::api
