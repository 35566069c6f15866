// Jobs as slurmrestd lists them.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "engine/slurm/job_parts.h"
#include "engine/slurm/node_list.h"
#include "engine/slurm/rest_json.h"
#include "engine/slurm/rest_json_parts.h"
#include "engine/slurm/rest_words.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine::slurm {

using base::Result;
using rest::at;
using rest::json;
using rest::number_at;
using rest::text_at;

namespace {

/// Members of jobs, and of what stands in them, in all versions.
const std::unordered_set<std::string_view> kJobMembers{
    "jobs",        "job_id",      "comment",   "job_state",  "state_reason",   "start_time",
    "nodes",       "restart_cnt", "exit_code", "het_job_id", "het_job_offset", "partition",
    "account",     "qos",         "user_id",   "user_name",  "last_update",    "warnings",
    "description", "set",         "infinite",  "number",     "return_code",    "signal",
    "id",          "signal_id",   "errors"};

/// Members of jobs of the accounting database.
const std::unordered_set<std::string_view> kPastMembers{
    "jobs",        "job_id",     "comment", "job",       "state",
    "current",     "reason",     "time",    "start",     "nodes",
    "exit_code",   "het",        "account", "partition", "qos",
    "restart_cnt", "job_offset", "set",     "infinite",  "number",
    "return_code", "signal",     "id",      "signal_id", "kill_request_user"};

/// As wait(2) says it, up to v0.0.39; then {"return_code", "signal": {"id"}}.
void read_exit(const json& written, ListedJob& job) {
  const json& exit = at(written, "exit_code");
  if (!exit.is_object() || !exit.contains("return_code")) {
    const int64_t status = number_at(written, "exit_code").value_or(0);
    return set_exit(job, static_cast<uint32_t>(status & 0xffff));
  }
  constexpr int64_t kMost = 0xff;
  const json& signal = at(exit, "signal");
  const auto id = number_at(signal, "id");
  const int64_t number = id ? *id : number_at(signal, "signal_id").value_or(0);
  job.exit_signal = static_cast<int>(std::clamp<int64_t>(number, 0, kMost));
  job.exit_code =
      static_cast<int>(std::clamp<int64_t>(number_at(exit, "return_code").value_or(0), 0, kMost));
}

/// What is no list of nodes is none.
std::vector<std::string> nodes_of(const json& job) {
  auto nodes = expand_nodes(text_at(job, "nodes"));
  return nodes ? *std::move(nodes) : std::vector<std::string>();
}

std::string waiting_reason(std::string reason) {
  return reason == "None" ? std::string() : reason;
}

int restarts_of(const json& job) {
  return static_cast<int>(
      std::clamp<int64_t>(number_at(job, "restart_cnt").value_or(0), 0, INT32_MAX));
}

std::optional<ListedPart> read_job(const json& written) {
  const auto id = number_at(written, "job_id");
  if (!id || *id <= 0) return std::nullopt;
  ListedPart part;
  ListedJob& job = part.job;
  job.id = static_cast<uint64_t>(*id);
  job.comment = text_at(written, "comment");
  job.state_text = base::joined(rest::texts_at(written, "job_state"), "+");
  job.state = job_state_of(job.state_text);
  job.reason = waiting_reason(text_at(written, "state_reason"));
  job.nodes = nodes_of(written);
  job.restarts = restarts_of(written);
  read_exit(written, job);
  job.partition = text_at(written, "partition");
  job.account = text_at(written, "account");
  job.qos = text_at(written, "qos");
  const auto start = number_at(written, "start_time");
  if (job.state == JobState::kPending && start && *start > 0 && *start < rest::kLatestSecond) {
    job.may_start = base::Time(std::chrono::seconds(*start));
  }
  const int64_t leader = number_at(written, "het_job_id").value_or(0);
  part.leader = leader > 0 ? static_cast<uint64_t>(leader) : job.id;
  part.offset = static_cast<int>(
      std::clamp<int64_t>(number_at(written, "het_job_offset").value_or(0), 0, INT32_MAX));
  return part;
}

bool is_of(const json& job, const RestUser& user) {
  const auto id = number_at(job, "user_id");
  if (user.id && id) return *id == *user.id;
  return text_at(job, "user_name") == user.name;
}

std::optional<ListedPart> read_past(const json& written) {
  const auto id = number_at(written, "job_id");
  if (!id || *id <= 0) return std::nullopt;
  const json& state = at(written, "state");
  ListedPart part;
  ListedJob& job = part.job;
  job.id = static_cast<uint64_t>(*id);
  job.comment = text_at(at(written, "comment"), "job");
  job.state_text = base::joined(rest::texts_at(state, "current"), "+");
  job.state = job_state_of(job.state_text);
  const std::string by = text_at(written, "kill_request_user");
  if (job.state == JobState::kCancelled && !by.empty()) job.state_text += " by " + by;
  job.reason = waiting_reason(text_at(state, "reason"));
  job.nodes = nodes_of(written);
  job.restarts = restarts_of(written);
  read_exit(written, job);
  job.partition = text_at(written, "partition");
  job.account = text_at(written, "account");
  job.qos = text_at(written, "qos");
  const json& het = at(written, "het");
  const int64_t leader = number_at(het, "job_id").value_or(0);
  part.leader = leader > 0 ? static_cast<uint64_t>(leader) : job.id;
  part.offset =
      static_cast<int>(std::clamp<int64_t>(number_at(het, "job_offset").value_or(0), 0, INT32_MAX));
  return part;
}

}  // namespace

Result<RestJobs> read_rest_jobs(std::string_view body, const RestUser& user, bool only_changes) {
  auto root = rest::parse(body, "the jobs", kJobMembers);
  if (!root) return std::move(root).error();
  const json& jobs = at(*root, "jobs");
  const json& warnings = at(*root, "warnings");
  RestJobs result{.jobs = {},
                  .last_update = std::max<int64_t>(number_at(*root, "last_update").value_or(0), 0),
                  .warns = warnings.is_array() && !warnings.empty()};
  result.is_empty = !jobs.is_array() || jobs.empty();
  if (!jobs.is_array()) {
    if (only_changes) return result;
    return rest::no_such_answer("the jobs", "it has no list of jobs");
  }
  std::vector<ListedPart> parts;
  for (const json& job : jobs) {
    if (!is_of(job, user)) continue;
    if (auto part = read_job(job)) parts.push_back(*std::move(part));
  }
  result.jobs = whole_jobs(parts);
  return result;
}

Result<std::vector<ListedJob>> read_rest_past_jobs(std::string_view body) {
  auto root = rest::parse(body, "past jobs", kPastMembers);
  if (!root) return std::move(root).error();
  const json& jobs = at(*root, "jobs");
  if (!jobs.is_array()) return rest::no_such_answer("past jobs", "it has no list of jobs");
  std::map<uint64_t, ListedPart> last;
  for (const json& written : jobs) {
    auto part = read_past(written);
    if (!part) continue;
    const uint64_t id = part->job.id;
    last.insert_or_assign(id, *std::move(part));
  }
  std::vector<ListedPart> parts;
  for (auto& [id, part] : last) parts.push_back(std::move(part));
  return whole_jobs(parts);
}

}  // namespace muster::engine::slurm
