#include "engine/slurm/gang_record.h"

#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/json_text.h"
#include "base/random.h"
#include "engine/slurm/submission.h"

namespace muster::engine::slurm {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using nlohmann::json;

fs::path gang_record_in(const fs::path& attempt_folder) {
  return attempt_folder / kRecordFile;
}

std::string encode(const GangRecord& record) {
  json object{{"submitted_attempt", record.job.submitted_attempt},
              {"comment", record.job.comment},
              {"shape", record.job.shape},
              {"slurm_job", record.job.id},
              {"former", record.job.former},
              {"restarts", record.job.restarts}};
  add_to(object, record.common);
  return base::json_text(object) + "\n";
}

Result<GangRecord> decode_gang_record(std::string_view text) {
  const Error unreadable{.code = ErrorCode::kInvalid,
                         .what = "cannot read the record of a gang in Slurm"};
  try {
    const json read = base::parse_json_or_throw(text);
    auto common = lent::gang_record_of(read);
    if (!common) return unreadable;
    return GangRecord{.common = *std::move(common),
                      .job = {.submitted_attempt = read.at("submitted_attempt"),
                              .comment = read.at("comment"),
                              .shape = read.at("shape"),
                              .id = read.at("slurm_job"),
                              .former = read.at("former").get<std::vector<uint64_t>>(),
                              .restarts = read.at("restarts")}};
  } catch (const json::exception&) {
    return unreadable;
  }
}

Result<std::vector<std::pair<GangId, Result<GangRecord>>>> gang_records_in(
    const fs::path& jobs_folder) {
  std::vector<std::pair<GangId, Result<GangRecord>>> records;
  MUSTER_TRY(const std::vector<lent::FoundRecord> all, lent::records_in(jobs_folder, kRecordFile));
  for (const lent::FoundRecord& found : all) {
    records.emplace_back(found.gang, decode_gang_record(found.text));
  }
  return records;
}

/// The tasks count as if they shared the folder, because nothing can be copied from their nodes.
Result<GangRecord> substitute_record(const std::string& owner, const GangId& gang,
                                     const fs::path& attempt_folder) {
  MUSTER_TRY(const std::vector<std::string> tasks, lent::started_tasks_in(attempt_folder));
  GangRecord record{
      .common = {.key = base::SystemRandom().bytes<std::tuple_size_v<rsh::Key>>(), .given = true},
      .job = {.submitted_attempt = gang.attempt, .comment = comment_for(owner, gang)}};
  for (const std::string& task : tasks) {
    record.common.seats.push_back({.task = task,
                                   .index = static_cast<int>(record.common.seats.size()),
                                   .shares_folder = true,
                                   .started = true});
  }
  return record;
}

}  // namespace muster::engine::slurm
