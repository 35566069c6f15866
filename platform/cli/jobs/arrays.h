// The other objects that the commands on jobs take: a NAME that is not a job may be an array or a
// sweep; and the flags that make an array of a job.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "job/array.h"
#include "job/job.h"
#include "job/spec.h"
#include "sweep/sweep.h"

namespace muster::cli::jobs {

using base::Result;

/// The result of `call` for an array, a sweep or a schedule, if `of_job`, the error of the same
/// command for a job, is kNotFound. Nothing: no such object has this name, either, or `of_job` is
/// another error.
template <class RequestObject>
auto instead_of_job(Connection& connection, const base::Error& of_job, const RequestObject& call)
    -> Result<
        std::optional<typename std::invoke_result_t<RequestObject, api::Client&>::value_type>> {
  using Found =
      std::optional<typename std::invoke_result_t<RequestObject, api::Client&>::value_type>;
  if (of_job.code != base::ErrorCode::kNotFound) return Found();
  auto found = connection.call(call);
  if (found) return Found(*std::move(found));
  if (found.error().code == base::ErrorCode::kNotFound) return Found();
  return std::move(found).error();
}

/// --array, --each-line, --each-json, --max-running and --max-failures. The files are read when the
/// job is submitted.
struct ArrayFlags {
  std::optional<job::ArraySpec> indexes;  ///< of --array
  std::string lines_file;                 ///< of --each-line
  std::string json_file;                  ///< of --each-json
  std::optional<int> max_running;
  std::optional<int> max_failures;

  bool is_set() const {
    return indexes || !lines_file.empty() || !json_file.empty() || max_running || max_failures;
  }
};

Flags array_flags();
ArrayFlags read_array_flags(FlagReader& reader);

/// Sets the array of a spec. Reads the files. kInvalid: with all faults of the array.
Result<void> apply_array_flags(const ArrayFlags& flags, job::JobSpec& spec);

/// Waits until all members have ended, or the array was removed. deleting.cc
Result<void> wait_for_array(Connection& connection, const job::Array& array);

/// Waits until a sweep has ended. Returns the exit code of the command `sweep wait`. ending.cc
Result<int> wait_for_sweep(Connection& connection, const sweep::SweepSummary& sweep,
                           std::optional<std::chrono::milliseconds> timeout);

/// Waits until every job of a stopped sweep has ended. deleting.cc
Result<void> wait_for_trials(Connection& connection, const sweep::SweepSummary& sweep);

/// Removes an array or a sweep with its jobs, and kills them before with `force`. Waits for the end of
/// what is being stopped. deleting.cc
Result<void> remove_array(Connection& connection, const std::string& name, bool force);
Result<void> remove_sweep(Connection& connection, const std::string& name, bool force);

/// Does the same for several NAMEs, each a job or an array, and prints the result: `of_job` and
/// `of_array` act and return a line. Returns the exit code.
struct NamedChange {
  std::function<Result<job::Job>(api::Client& client, const std::string& name)> of_job;
  std::function<Result<job::Array>(api::Client& client, const std::string& name)> of_array;
  /// Not set: a sweep is an error.
  std::function<Result<sweep::Sweep>(api::Client& client, const std::string& name)> of_sweep = {};
  std::function<std::string(const job::Job& job)> job_line;
  std::function<std::string(const job::Array& array)> array_line;
};
Result<int> change_each(Connection& connection, const std::vector<std::string>& names,
                        Output output, const NamedChange& change);

/// The document of a result: the JSON of each object.
struct Documents {
  std::vector<std::string> jobs;
  std::vector<std::string> arrays;
  std::vector<std::string> sweeps;

  /// {"jobs": [...], "arrays": [...], "sweeps": [...]}
  std::string to_json() const;
};

/// "stopping train: 5 of 10 done ...".
std::string array_stop_text(const job::Array& array);

/// The lines of --each-json: the elements of a JSON array, or the values of lines. A text loses its
/// quotes. Pure.
Result<std::vector<std::string>> json_lines(const std::string& text);

}  // namespace muster::cli::jobs
