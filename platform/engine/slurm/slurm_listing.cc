#include "engine/slurm/slurm_listing.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "engine/slurm/node_list.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr char kEnd = '\x1f';

enum JobField {
  kId,
  kLeader,
  kOffset,
  kState,
  kReason,
  kStart,
  kNodes,
  kRestarts,
  kExit,
  kPartition,
  kAccount,
  kQos,
  kComment,
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

enum NodeField {
  kName,
  kAddress,
  kNodeState,
  kNodeReason,
  kCpus,
  kMemory,
  kGres,
  kNodePartition,
  kFeatures,
  kNodeFields
};
constexpr std::array<std::string_view, kNodeFields> kNodeNames{
    "NodeList", "NodeAddr", "StateComplete", "Reason",  "CPUs",
    "Memory",   "Gres",     "PartitionName", "Features"};

/// As --Format has it: each with no width, and with what ends it.
template <size_t N>
std::string format_of(const std::array<std::string_view, N>& names) {
  std::string format;
  for (const std::string_view name : names) {
    if (!format.empty()) format += ',';
    format.append(name).append(":0").push_back(kEnd);
  }
  return format;
}

/// The last may hold what ends the others. Nothing: there are fewer.
template <size_t N>
bool fields_of(std::string_view line, std::array<std::string_view, N>& fields) {
  for (size_t i = 0; i < N; ++i) {
    const size_t end = i + 1 < N ? line.find(kEnd) : line.size();
    if (end == std::string_view::npos) return false;
    fields[i] = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  if (fields[N - 1].ends_with(kEnd)) fields[N - 1].remove_suffix(1);
  return true;
}

/// Calls `take` with each line; kInternal where none of several is as it should be.
template <typename Take>
Result<void> for_each_line(std::string_view text, std::string_view program, const Take& take) {
  size_t taken = 0;
  std::string_view odd;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty()) continue;
    if (take(line)) {
      ++taken;
    } else if (odd.empty()) {
      odd = line;
    }
  }
  if (taken > 0 || odd.empty()) return {};
  constexpr size_t kShown = 200;
  return Error{.code = ErrorCode::kInternal,
               .what = std::string(program) + " prints what is not understood: '" +
                       std::string(odd.substr(0, kShown)) + "'",
               .advice = "this Slurm may be older than 21.08: sinfo --version"};
}

std::string value_of(std::string_view field) {
  return field == "(null)" || field == "N/A" ? std::string() : std::string(field);
}

std::string reason_of(std::string_view field) {
  return field == "None" || field == "none" ? std::string() : value_of(field);
}

template <typename Number>
Number number_or(std::string_view text, Number otherwise) {
  return base::number_of<Number>(text).value_or(otherwise);
}

/// squeue prints what wait(2) says.
void set_exit(ListedJob& job, uint32_t status) {
  const int code = static_cast<int>(status & 0xffff);
  if (WIFSIGNALED(code)) job.exit_signal = WTERMSIG(code);
  job.exit_code = WIFEXITED(code) ? WEXITSTATUS(code) : 0;
}

struct ListedPart {
  ListedJob job;
  uint64_t leader = 0;  ///< its own id, where it is no part of another
  int offset = 0;
};

void set_state(ListedJob& job, std::string_view words) {
  job.state = job_state_of(words);
  job.state_text = words;
}

bool set_nodes(ListedJob& job, std::string_view list) {
  auto nodes = expand_nodes(list);
  if (nodes) job.nodes = *std::move(nodes);
  return nodes.ok();
}

std::optional<ListedPart> queued_job(std::string_view line) {
  std::array<std::string_view, kJobFields> fields;
  if (!fields_of(line, fields)) return std::nullopt;
  const auto id = base::number_of<uint64_t>(fields[kId]);
  if (!id) return std::nullopt;
  ListedPart part;
  ListedJob& job = part.job;
  job.id = *id;
  part.leader = number_or(fields[kLeader], *id);
  part.offset = number_or(fields[kOffset], 0);
  if (part.leader == 0) part.leader = *id;
  set_state(job, fields[kState]);
  job.reason = reason_of(fields[kReason]);
  if (job.state == JobState::kPending) job.may_start = time_of(fields[kStart]);
  if (!set_nodes(job, fields[kNodes])) return std::nullopt;
  job.restarts = number_or(fields[kRestarts], 0);
  set_exit(job, number_or<uint32_t>(fields[kExit], 0));
  job.partition = value_of(fields[kPartition]);
  job.account = value_of(fields[kAccount]);
  job.qos = value_of(fields[kQos]);
  job.comment = value_of(fields[kComment]);
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

/// Says what became of the whole, where others only say that they ended with it.
bool says_why(JobState state) {
  return state == JobState::kNodeFailed || state == JobState::kPreempted ||
         state == JobState::kTimeout || state == JobState::kDeadline ||
         state == JobState::kOutOfMemory || state == JobState::kBootFailed;
}

void add_part(ListedJob& whole, const ListedJob& part) {
  whole.nodes.insert(whole.nodes.end(), part.nodes.begin(), part.nodes.end());
  if (whole.reason.empty()) whole.reason = part.reason;
  if (whole.comment.empty()) whole.comment = part.comment;
  whole.restarts = std::max(whole.restarts, part.restarts);
  if (part.may_start && (!whole.may_start || *whole.may_start < *part.may_start)) {
    whole.may_start = part.may_start;
  }
  const bool is_worse = is_over(whole.state) && !says_why(whole.state) && says_why(part.state);
  // One that still has nodes keeps the whole from being over.
  if (is_worse || (is_over(whole.state) && !is_over(part.state))) {
    whole.state = is_over(part.state) ? part.state : JobState::kCompleting;
    whole.state_text = part.state_text;
  }
}

std::vector<ListedJob> folded(std::vector<ListedPart> parts) {
  std::map<uint64_t, std::vector<const ListedPart*>> members;
  for (const ListedPart& part : parts) members[part.leader].push_back(&part);
  std::vector<ListedJob> jobs;
  for (const ListedPart& part : parts) {
    auto found = members.find(part.leader);
    if (found == members.end()) continue;  // the job stands where its first part was
    auto& all = found->second;
    std::stable_sort(all.begin(), all.end(), [](const ListedPart* left, const ListedPart* right) {
      return left->offset < right->offset;
    });
    ListedJob whole = all.front()->job;
    whole.id = part.leader;
    for (size_t i = 1; i < all.size(); ++i) add_part(whole, all[i]->job);
    jobs.push_back(std::move(whole));
    members.erase(found);
  }
  return jobs;
}

template <typename Read>
Result<std::vector<ListedJob>> read_jobs(std::string_view text, std::string_view program,
                                         const Read& read) {
  std::vector<ListedPart> parts;
  MUSTER_CHECK(for_each_line(text, program, [&](std::string_view line) {
    auto part = read(line);
    if (part) parts.push_back(*std::move(part));
    return part.has_value();
  }));
  return folded(std::move(parts));
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

bool add_node(std::string_view line, std::vector<ListedNode>& nodes,
              std::map<std::string, size_t, std::less<>>& known) {
  constexpr int64_t kMebi = int64_t{1} << 20;
  constexpr int64_t kMostMebi = int64_t{1} << 40;
  std::array<std::string_view, kNodeFields> fields;
  if (!fields_of(line, fields) || fields[kName].empty()) return false;
  const auto [place, is_new] = known.try_emplace(std::string(fields[kName]), nodes.size());
  if (is_new) {
    ListedNode node{.name = std::string(fields[kName]), .address = value_of(fields[kAddress])};
    node.state_text = upper(fields[kNodeState]);
    node.takes_jobs = takes_jobs(node.state_text);
    node.reason = reason_of(fields[kNodeReason]);
    node.cpus = number_or(fields[kCpus], 0);
    const auto mebis = number_or<int64_t>(fields[kMemory], 0);
    node.memory_bytes = std::clamp<int64_t>(mebis, 0, kMostMebi) * kMebi;
    const Gpus gpus = gpus_in(fields[kGres]);
    node.gpus = gpus.count;
    node.gpu_type = gpus.type;
    node.features = base::split(value_of(fields[kFeatures]), ',');
    nodes.push_back(std::move(node));
  }
  std::vector<std::string>& partitions = nodes[place->second].partitions;
  std::string partition = value_of(fields[kNodePartition]);
  if (!partition.empty() &&
      std::find(partitions.begin(), partitions.end(), partition) == partitions.end()) {
    partitions.push_back(std::move(partition));
  }
  return true;
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
  return {"--noheader",    "--parsable2",       "--delimiter=" + std::string(1, kEnd),
          "--allocations", "--format=" + names, "--jobs=" + list};
}

Result<std::vector<ListedJob>> read_sacct(std::string_view text) {
  return read_jobs(text, "sacct", past_job);
}

std::vector<std::string> sinfo_arguments() {
  return {"--noheader", "--all", "--Node", "--Format=" + format_of(kNodeNames)};
}

Result<std::vector<ListedNode>> read_sinfo(std::string_view text) {
  std::vector<ListedNode> nodes;
  std::map<std::string, size_t, std::less<>> known;
  MUSTER_CHECK(for_each_line(text, "sinfo",
                             [&](std::string_view line) { return add_node(line, nodes, known); }));
  return nodes;
}

}  // namespace muster::engine::slurm
