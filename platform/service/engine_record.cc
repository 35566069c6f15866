#include "service/engine_record.h"

#include <algorithm>
#include <system_error>

#include "base/files.h"
#include "config/paths.h"

namespace muster::service {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

std::string name_of_one(const job::Job& job) {
  return "'" + job.spec.name + "'";
}

bool runs(const job::Job& job) {
  return job.phase == job::Phase::kStarting || job.phase == job::Phase::kRunning;
}

Error runs_elsewhere(const std::vector<job::Job>& jobs, const std::string& there,
                     const std::string& engine) {
  const auto count = std::count_if(jobs.begin(), jobs.end(), runs);
  const job::Job& first = *std::find_if(jobs.begin(), jobs.end(), runs);
  const std::string others =
      count == 1 ? " runs" : " and " + std::to_string(count - 1) + " more run";
  return {.code = ErrorCode::kConflict,
          .what = "job " + name_of_one(first) + others + " on the engine '" + there +
                  "', and a server with the engine '" + engine + "' would lose sight of that",
          .advice = "let a server with --engine " + there +
                    " end them first; or give this one another state folder (MUSTER_STATE_DIR)"};
}

}  // namespace

Result<void> check_engine(const std::filesystem::path& jobs_folder, const std::string& engine,
                          store::Store& store) {
  const std::string there = config::recorded_engine(jobs_folder);
  if (there.empty() || there == engine) return {};
  MUSTER_TRY(const store::Contents contents, store.load());
  if (std::none_of(contents.jobs.begin(), contents.jobs.end(), runs)) return {};
  return runs_elsewhere(contents.jobs, there, engine);
}

Result<void> note_engine(const std::filesystem::path& jobs_folder, const std::string& engine) {
  if (config::recorded_engine(jobs_folder) == engine) return {};
  return base::write_file(config::engine_record(jobs_folder), engine + "\n");
}

void forget_engine(const std::filesystem::path& jobs_folder) {
  std::error_code ignored;
  std::filesystem::remove(config::engine_record(jobs_folder), ignored);
}

}  // namespace muster::service
