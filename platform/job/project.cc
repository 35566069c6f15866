#include "job/project.h"

#include <cmath>
#include <string_view>

#include "job/checker.h"
#include "record/field.h"

namespace muster::job {

using record::As;
using record::field;
using record::Need;
using record::Row;
using record::Sent;
using record::Table;

namespace {

constexpr const char* kUnbounded = "no limit, or in a quota all resources";

using Used = ProjectStatus::Amounts;

std::vector<Row> rows_of_project() {
  return {
      field<&Project::name>("name", {.need = Need::kRequired}),
      field<&Project::parent>("parent", {.help = "Empty: top level.", .sent = Sent::kAlways}),
      field<&Project::quota>(
          "quota", {.help = "In every pool that is not in `pools`.", .sent = Sent::kAlways}),
      field<&Project::pools>("pools", {.sent = Sent::kAlways}),
      field<&Project::priority>(
          "priority", {.help = "Projects with a larger number are served first from resources that "
                               "others leave unused.",
                       .sent = Sent::kAlways,
                       .least = 0,
                       .most = 1000}),
      field<&Project::reclaim_min_runtime>("reclaim_min_runtime",
                                           {.sent = Sent::kAlways, .least = 0}),
      field<&Project::preempt_min_runtime>("preempt_min_runtime",
                                           {.sent = Sent::kAlways, .least = 0}),
      field<&Project::takes_the_rest>("takes_the_rest",
                                      {.help = "Only for the project `default`: its quota is all "
                                               "GPUs that are in no other project's quota.",
                                       .sent = Sent::kAlways}),
      field<&Project::sequence>("sequence",
                                {.help = "The order of creation.", .need = Need::kRequired}),
      field<&Project::created>("created", {.need = Need::kRequired}),
  };
}

/// The members of a ProjectStatus beside the project.
const Table& project_use() {
  static const Table table =
      record::table<ProjectStatus>(
          "ProjectUse",
          {field<&ProjectStatus::deserved>("deserved",
                                           {.help = "The quota in force.", .sent = Sent::kAlways}),
           field<&ProjectStatus::allocated>("allocated", {.sent = Sent::kAlways}),
           field<&ProjectStatus::allocated_non_preemptible>("allocated_non_preemptible",
                                                            {.sent = Sent::kAlways}),
           field<&ProjectStatus::requested>(
               "requested",
               {.help = "The sum over running and waiting jobs.", .sent = Sent::kAlways}),
           field<&ProjectStatus::fair_share>("fair_share", {.sent = Sent::kAlways}),
           field<&ProjectStatus::running>("running",
                                          {.help = "Jobs, including those of subprojects.",
                                           .sent = Sent::kAlways,
                                           .least = 0}),
           field<&ProjectStatus::waiting>("waiting", {.sent = Sent::kAlways, .least = 0})})
          .as_answer();
  return table;
}

}  // namespace

const Table& table_of(const Share*) {
  static const Table table =
      record::table<Share>(
          "Share",
          {field<&Share::gpu_milli>("gpus", {.sent = Sent::kAlways, .least = 0, .null = kUnbounded},
                                    As::kMilli),
           field<&Share::cpu_milli>("cpus", {.sent = Sent::kAlways, .least = 0, .null = kUnbounded},
                                    As::kMilli),
           field<&Share::memory_bytes>(
               "memory", {.sent = Sent::kAlways, .least = 0, .null = kUnbounded}, As::kBytes)},
          "null: no limit, or in a quota all resources.")
          .as_answer();
  return table;
}

const Table& table_of(const Quota*) {
  static const Table table =
      record::table<Quota>(
          "Quota",
          {field<&Quota::deserved>("deserved",
                                   {.help = "The resources that the project can always claim.",
                                    .need = Need::kRequired}),
           field<&Quota::limit>("limit", {.help = "The resources that the project never exceeds.",
                                          .need = Need::kRequired}),
           field<&Quota::weight>(
               "weight",
               {.help = "The project's share of resources that other projects leave unused.",
                .sent = Sent::kAlways,
                .least = 0,
                .most = 1'000'000})})
          .as_answer();
  return table;
}

const Table& table_of(const ProjectStatus::Amounts*) {
  static const Table table =
      record::table<Used>(
          "Amounts",
          {field<&Used::gpu_milli>("gpus", {.sent = Sent::kAlways, .least = 0}, As::kMilli),
           field<&Used::cpu_milli>("cpus", {.sent = Sent::kAlways, .least = 0}, As::kMilli),
           field<&Used::memory_bytes>("memory", {.sent = Sent::kAlways, .least = 0}, As::kBytes)})
          .as_answer();
  return table;
}

const Table& table_of(const Project*) {
  static const Table table = record::table<Project>("StoredProject", rows_of_project());
  return table;
}

const Table& table_of(const ProjectStatus*) {
  static const Table table = [] {
    std::vector<Row> rows = record::rows_of_member<&ProjectStatus::project>(rows_of_project());
    rows.push_back(record::grouped("status", project_use(), {.sent = Sent::kAlways}));
    return record::table<ProjectStatus>("Project", std::move(rows)).as_answer();
  }();
  return table;
}

namespace {

constexpr size_t kMaxProjectName = 63;
constexpr int kMaxProjectPriority = 1000;
constexpr double kMaxWeight = 1'000'000;
// More than any cluster has, and small enough that the sum over thousands of projects does not
// overflow.
constexpr int64_t kMaxMilli = 1'000'000'000;
constexpr int64_t kMaxBytes = int64_t{1} << 50;

using Amount = std::optional<int64_t> Share::*;

struct Bound {
  const char* field;
  Amount amount;
  int64_t most;
  std::string (*text)(int64_t);
};

constexpr Bound kBounds[] = {{"gpus", &Share::gpu_milli, kMaxMilli, base::format_milli},
                             {"cpus", &Share::cpu_milli, kMaxMilli, base::format_milli},
                             {"memory_bytes", &Share::memory_bytes, kMaxBytes, base::format_bytes}};

void check_share(const Share& share, const std::string& field, Checker& check) {
  for (const Bound& bound : kBounds) {
    const std::optional<int64_t>& amount = share.*bound.amount;
    if (!amount) continue;
    check.require(*amount >= 0 && *amount <= bound.most, field + "." + bound.field,
                  bound.text(*amount) + " is out of range; give 0 to " + bound.text(bound.most));
  }
}

void check_quota(const Quota& quota, const std::string& field, Checker& check) {
  check_share(quota.deserved, field + ".deserved", check);
  check_share(quota.limit, field + ".limit", check);
  for (const Bound& bound : kBounds) {
    const std::optional<int64_t>& deserved = quota.deserved.*bound.amount;
    const std::optional<int64_t>& limit = quota.limit.*bound.amount;
    // An unlimited quota is compatible with any limit.
    if (!deserved || !limit) continue;
    check.require(*deserved <= *limit, field + ".deserved." + bound.field,
                  bound.text(*deserved) + " is more than the limit, " + bound.text(*limit));
  }
  check.require(std::isfinite(quota.weight) && quota.weight >= 0 && quota.weight <= kMaxWeight,
                field + ".weight", "is out of range; give 0 to 1000000");
}

void check_project_names(const Project& project, Checker& check) {
  check.require(is_dns_label(project.name, kMaxProjectName), "name",
                "'" + project.name + "' is not a project name; use 1 to " +
                    std::to_string(kMaxProjectName) +
                    " of a-z, 0-9 and '-', with a letter or digit at both ends");
  if (project.parent.empty()) return;
  check.require(is_dns_label(project.parent, kMaxProjectName), "parent",
                "'" + project.parent + "' is not a project name");
  check.require(project.parent != project.name, "parent", "is the project itself");
}

void check_time(std::chrono::milliseconds time, const std::string& field, Checker& check) {
  check.require(time.count() >= 0 && time.count() <= kYearMilliseconds, field,
                "give a time between 0s and 365d");
}

}  // namespace

std::vector<base::Fault> validate_project(const Project& project) {
  Checker check;
  check_project_names(project, check);
  check_quota(project.quota, "quota", check);
  for (const auto& [pool, quota] : project.pools) {
    check.require(is_token(pool), "pools", "'" + pool + "' is not a node pool name");
    check_quota(quota, "pools." + pool, check);
  }
  check.require_range(project.priority, 0, kMaxProjectPriority, "priority");
  check_time(project.reclaim_min_runtime, "reclaim_min_runtime_ms", check);
  check_time(project.preempt_min_runtime, "preempt_min_runtime_ms", check);
  return check.take();
}

std::string slurm_account_of(const std::string& project,
                             const std::map<std::string, std::string>& accounts,
                             const std::string& fallback) {
  const auto named = accounts.find(project);
  if (named != accounts.end()) return named->second;
  std::string account = fallback;
  constexpr std::string_view kProject = "%p";
  for (size_t at = account.find(kProject); at != std::string::npos;
       at = account.find(kProject, at + project.size())) {
    account.replace(at, kProject.size(), project);
  }
  return account;
}

}  // namespace muster::job
