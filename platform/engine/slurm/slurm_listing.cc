#include "engine/slurm/slurm_listing.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/slurm/job_parts.h"
#include "engine/slurm/listing_fields.h"
#include "engine/slurm/node_list.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine::slurm {

using base::Result;

namespace {

enum JobField {
  kJobId,
  kJobLeader,
  kJobOffset,
  kJobState,
  kJobReason,
  kJobStart,
  kJobNodes,
  kJobRestarts,
  kJobExit,
  kJobPartition,
  kJobAccount,
  kJobQos,
  kJobComment,
  kJobFields
};
constexpr std::array<std::string_view, kJobFields> kJobNames{
    "JobID",      "HetJobID",  "HetJobOffset", "State",   "Reason", "StartTime", "NodeList",
    "RestartCnt", "exit_code", "Partition",    "Account", "QOS",    "Comment"};

enum PastField {
  kPastId,
  kPastState,
  kPastExit,
  kPastNodes,
  kPastPartition,
  kPastAccount,
  kPastQos,
  kPastComment,
  kPastFields
};
constexpr std::array<std::string_view, kPastFields> kPastNames{
    "JobID", "State", "ExitCode", "NodeList", "Partition", "Account", "QOS", "Comment"};

void set_state(ListedJob& job, std::string_view words) {
  job.state = job_state_of(words);
  job.state_text = words;
}

bool set_nodes(ListedJob& job, std::string_view list) {
  auto nodes = expand_nodes(list);
  if (!nodes) return false;
  job.nodes = *std::move(nodes);
  return true;
}

std::optional<ListedPart> queued_job(std::string_view line) {
  std::array<std::string_view, kJobFields> fields;
  if (!fields_of(line, fields)) return std::nullopt;
  const auto id = base::number_of<uint64_t>(fields[kJobId]);
  if (!id) return std::nullopt;
  ListedPart part;
  ListedJob& job = part.job;
  job.id = *id;
  part.leader = number_or(fields[kJobLeader], *id);
  part.offset = number_or(fields[kJobOffset], 0);
  if (part.leader == 0) part.leader = *id;
  set_state(job, fields[kJobState]);
  job.reason = reason_of(fields[kJobReason]);
  if (job.state == JobState::kPending) job.may_start = time_of(fields[kJobStart]);
  if (!set_nodes(job, fields[kJobNodes])) return std::nullopt;
  job.restarts = number_or(fields[kJobRestarts], 0);
  set_exit(job, number_or<uint32_t>(fields[kJobExit], 0));
  job.partition = value_of(fields[kJobPartition]);
  job.account = value_of(fields[kJobAccount]);
  job.qos = value_of(fields[kJobQos]);
  job.comment = value_of(fields[kJobComment]);
  return part;
}

std::optional<ListedPart> past_job(std::string_view line) {
  std::array<std::string_view, kPastFields> fields;
  if (!fields_of(line, fields)) return std::nullopt;
  const std::string_view id = fields[kPastId];
  const size_t plus = id.find('+');
  const auto leader = base::number_of<uint64_t>(id.substr(0, plus));
  if (!leader) return std::nullopt;
  ListedPart part;
  ListedJob& job = part.job;
  part.leader = *leader;
  if (plus != std::string_view::npos) part.offset = number_or(id.substr(plus + 1), 0);
  job.id = *leader + static_cast<uint64_t>(std::max(part.offset, 0));
  set_state(job, fields[kPastState]);
  const size_t colon = fields[kPastExit].find(':');
  job.exit_code = number_or(fields[kPastExit].substr(0, colon), 0);
  if (colon != std::string_view::npos) {
    job.exit_signal = number_or(fields[kPastExit].substr(colon + 1), 0);
  }
  if (!set_nodes(job, fields[kPastNodes])) return std::nullopt;
  job.partition = value_of(fields[kPastPartition]);
  job.account = value_of(fields[kPastAccount]);
  job.qos = value_of(fields[kPastQos]);
  job.comment = value_of(fields[kPastComment]);
  return part;
}

template <typename Read>
Result<std::vector<ListedJob>> read_jobs(std::string_view text, std::string_view program,
                                         const Read& read) {
  std::vector<ListedPart> parts;
  MUSTER_CHECK(for_each_line(text, program, [&](std::string_view line) {
    auto part = read(line);
    if (!part) return false;
    parts.push_back(*std::move(part));
    return true;
  }));
  return whole_jobs(parts);
}

}  // namespace

std::vector<std::string> squeue_arguments(uint32_t user) {
  return {"--noheader", "--states=all", "--user=" + std::to_string(user),
          "--Format=" + format_of(kJobNames)};
}

Result<std::vector<ListedJob>> read_squeue(std::string_view text) {
  return read_jobs(text, "squeue", queued_job);
}

std::vector<std::string> sacct_arguments(const std::vector<uint64_t>& ids) {
  std::string list;
  for (const uint64_t id : ids) list += (list.empty() ? "" : ",") + std::to_string(id);
  std::string names;
  for (const std::string_view name : kPastNames) (names += names.empty() ? "" : ",") += name;
  return {"--noheader",    "--parsable2",       "--delimiter=" + std::string(1, kFieldEnd),
          "--allocations", "--format=" + names, "--jobs=" + list};
}

Result<std::vector<ListedJob>> read_sacct(std::string_view text) {
  return read_jobs(text, "sacct", past_job);
}

}  // namespace muster::engine::slurm
