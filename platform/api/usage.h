// What the jobs of a project used in a span of time, user by user: GET /v1/projects/NAME/usage, as a
// document or as CSV.
//
// A job uses the GPUs that it requests from the placement of an attempt until the end of the attempt,
// whether they compute or not. The server computes this from the events of the jobs that it still
// keeps: a deleted job is not counted, nor is an attempt whose events were dropped from a long history.
//
// Pure; thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/query_parameters.h"
#include "base/clock.h"
#include "base/result.h"
#include "job/job_facts.h"
#include "record/table.h"

namespace muster::api {

/// ?since=TIME&until=TIME&format=csv
struct UsageQuery {
  std::optional<base::Time> since;  ///< nothing: 30 days before `until`
  std::optional<base::Time> until;  ///< nothing: now
  bool as_csv = false;

  bool operator==(const UsageQuery&) const = default;
};
Parameters usage_query_parameters(const UsageQuery& query);
/// kInvalid with every fault.
base::Result<UsageQuery> usage_query_from_parameters(const Parameters& parameters);

/// The jobs of one user in one project.
struct UserUsage {
  std::string project;
  std::string user;
  int64_t jobs = 0;      ///< that ran in the span
  int64_t failed = 0;    ///< of these
  double job_hours = 0;  ///< how long they ran
  double gpu_hours = 0;  ///< the same, times the GPUs of each

  bool operator==(const UserUsage&) const = default;
};
const record::Table& table_of(const UserUsage*);

struct ProjectUsage {
  std::string project;
  base::Time since;
  base::Time until;
  std::vector<UserUsage> users;  ///< the most GPU hours first

  bool operator==(const ProjectUsage&) const = default;
};
const record::Table& table_of(const ProjectUsage*);

/// How long the attempts of a job ran between `since` and `until`.
std::chrono::nanoseconds time_run(const job::JobFacts& job, base::Time since, base::Time until);

/// Adds up jobs.
class UsageSum {
 public:
  UsageSum(base::Time since, base::Time until) : since_(since), until_(until) {}

  /// False: the job did not run in the span, as its numbers alone show.
  bool may_count(const job::JobFacts& job) const {
    return job.submitted < until_ && !(job.ended && *job.ended <= since_);
  }
  void add(const job::JobFacts& job);
  /// Of the same span, for other jobs.
  void add(const UsageSum& other);
  ProjectUsage of(const std::string& project) const;

 private:
  base::Time since_;
  base::Time until_;
  std::map<std::pair<std::string, std::string>, UserUsage> users_;  ///< by project and user
};

std::string usage_to_json(const ProjectUsage& usage);
base::Result<ProjectUsage> usage_from_json(std::string_view text);
/// With a title line. A cell that a spreadsheet would take for a formula begins with an apostrophe.
std::string usage_to_csv(const ProjectUsage& usage);

}  // namespace muster::api
