#include "engine/slurm/listing.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/node/slurm_step.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine::slurm {

inline constexpr char kFieldEnd = '\x1f';

/// The value of --Format: each name with width 0 and the separator.
template <size_t N>
std::string format_of(const std::array<std::string_view, N>& names) {
  std::string format;
  for (const std::string_view name : names) {
    if (!format.empty()) format += ',';
    format.append(name).append(":0").push_back(kFieldEnd);
  }
  return format;
}

/// The last field may contain the separator. False: the line has fewer fields.
template <size_t N>
bool fields_of(std::string_view line, std::array<std::string_view, N>& fields) {
  for (size_t i = 0; i < N; ++i) {
    const size_t end = i + 1 < N ? line.find(kFieldEnd) : line.size();
    if (end == std::string_view::npos) return false;
    fields[i] = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  if (fields[N - 1].ends_with(kFieldEnd)) fields[N - 1].remove_suffix(1);
  return true;
}

/// Calls `take` with each line. kInternal: there are lines, and none can be read.
template <typename Take>
base::Result<void> for_each_line(std::string_view text, std::string_view program,
                                 const Take& take) {
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
  return base::Error{.code = base::ErrorCode::kInternal,
                     .what = std::string(program) + " has printed an unknown format: '" +
                             std::string(odd.substr(0, kShown)) + "'",
                     .advice = "Slurm 21.08 or later is required; check sinfo --version"};
}

/// Empty if Slurm has no value.
inline std::string value_of(std::string_view field) {
  return field == "(null)" || field == "N/A" ? std::string() : std::string(field);
}

/// A reason may be a sentence that any administrator has typed.
inline std::string reason_of(std::string_view field) {
  return field == "None" || field == "none" ? std::string() : base::as_utf8(value_of(field));
}

template <typename Number>
Number number_or(std::string_view text, Number otherwise) {
  return base::number_of<Number>(text).value_or(otherwise);
}

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
  auto nodes = node::expand_nodes(list);
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

// --- single values: times and GRES

namespace {

/// The number at `at` in "2026-01-31T12:34:56"; nullopt if there are other characters than digits.
std::optional<int> digits(std::string_view text, size_t at, size_t count) {
  const std::string_view part = text.substr(at, count);
  const bool is_number =
      std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? base::number_of<int>(part) : std::nullopt;
}

/// "gpu:a100:4(S:0-1)": the words between colons, without the brackets.
std::vector<std::string_view> gres_words(std::string_view gres) {
  gres = gres.substr(0, gres.find('('));
  std::vector<std::string_view> words;
  while (true) {
    const size_t colon = gres.find(':');
    words.push_back(gres.substr(0, colon));
    if (colon == std::string_view::npos) return words;
    gres.remove_prefix(colon + 1);
  }
}

/// Commas in brackets, "gpu:4(S:0,1)", do not separate entries.
std::string_view next_gres(std::string_view& list) {
  int depth = 0;
  size_t end = 0;
  while (end < list.size() && (list[end] != ',' || depth > 0)) {
    if (list[end] == '(') ++depth;
    if (list[end] == ')') --depth;
    ++end;
  }
  const std::string_view gres = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return gres;
}

/// "4", or "2K", as Slurm abbreviates large numbers.
int count_of(std::string_view text) {
  constexpr int64_t kKilo = 1024;
  int64_t unit = 1;
  if (text.ends_with('K')) unit = kKilo;
  if (text.ends_with('M')) unit = kKilo * kKilo;
  if (unit > 1) text.remove_suffix(1);
  const int64_t count = base::number_of<int32_t>(text).value_or(0);
  return static_cast<int>(
      std::clamp<int64_t>(count * unit, 0, std::numeric_limits<int32_t>::max()));
}

}  // namespace

std::optional<base::Time> time_of(std::string_view text) {
  using namespace std::chrono;
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  if (text.size() != kShape.size()) return std::nullopt;
  for (const size_t at : {4, 7, 10, 13, 16}) {
    if (text[at] != kShape[at]) return std::nullopt;
  }
  const auto years = digits(text, 0, 4);
  const auto months = digits(text, 5, 2);
  const auto days_in = digits(text, 8, 2);
  const auto clock = std::array{digits(text, 11, 2), digits(text, 14, 2), digits(text, 17, 2)};
  if (!years || !months || !days_in || !clock[0] || !clock[1] || !clock[2]) return std::nullopt;
  const year_month_day date{year{*years}, month{static_cast<unsigned>(*months)},
                            day{static_cast<unsigned>(*days_in)}};
  // A time that does not fit in nanoseconds since 1970 is invalid.
  if (!date.ok() || *years < 1970 || *years > 2200) return std::nullopt;
  if (*clock[0] > 23 || *clock[1] > 59 || *clock[2] > 60) return std::nullopt;
  return base::Time(sys_days(date)) + hours(*clock[0]) + minutes(*clock[1]) + seconds(*clock[2]);
}

Gpus gpus_in(std::string_view gres) {
  Gpus gpus;
  bool is_mixed = false;
  while (!gres.empty()) {
    const std::vector<std::string_view> words = gres_words(next_gres(gres));
    if (words.front() != "gpu") continue;
    const int count = words.size() == 1 ? 1 : count_of(words.back());
    const std::string_view type = words.size() > 2 ? words[1] : std::string_view();
    is_mixed = is_mixed || (gpus.count > 0 && gpus.type != type);
    gpus.type = type;
    gpus.count = static_cast<int>(
        std::min<int64_t>(int64_t{gpus.count} + count, std::numeric_limits<int32_t>::max()));
  }
  if (is_mixed) gpus.type.clear();
  return gpus;
}

// --- nodes: a line for each partition of a node

namespace {

enum NodeField {
  kNodeName,
  kNodeAddress,
  kNodeState,
  kNodeReason,
  kNodeCpus,
  kNodeMemory,
  kNodeGres,
  kNodePartition,
  kNodeFeatures,
  kNodeFields
};
constexpr std::array<std::string_view, kNodeFields> kNodeNames{
    "NodeList", "NodeAddr", "StateComplete", "Reason",  "CPUs",
    "Memory",   "Gres",     "PartitionName", "Features"};

bool add_node(std::string_view line, std::vector<ListedNode>& nodes,
              std::map<std::string, size_t, std::less<>>& known) {
  constexpr int64_t kMostMebibytes = int64_t{1} << 40;
  std::array<std::string_view, kNodeFields> fields;
  if (!fields_of(line, fields) || fields[kNodeName].empty()) return false;
  const auto [place, is_new] = known.try_emplace(std::string(fields[kNodeName]), nodes.size());
  if (is_new) {
    ListedNode node{.name = std::string(fields[kNodeName]),
                    .address = value_of(fields[kNodeAddress])};
    node.state_text = upper_case(fields[kNodeState]);
    node.takes_jobs = takes_jobs(node.state_text);
    node.reason = reason_of(fields[kNodeReason]);
    node.cpus = number_or(fields[kNodeCpus], 0);
    const auto mebibytes = number_or<int64_t>(fields[kNodeMemory], 0);
    node.memory_bytes = std::clamp<int64_t>(mebibytes, 0, kMostMebibytes) * kMebibyte;
    const Gpus gpus = gpus_in(fields[kNodeGres]);
    node.gpus = gpus.count;
    node.gpu_type = gpus.type;
    node.features = base::split(value_of(fields[kNodeFeatures]), ',');
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

namespace {

/// Whether a part's state is the reason why the whole job has ended.
bool is_cause_of_end(JobState state) {
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
  // Slurm starts the job when the nodes of all parts are ready.
  if (whole.state == JobState::kRunning && part.state == JobState::kConfiguring) {
    whole.state = part.state;
    whole.state_text = part.state_text;
  }
  const bool is_worse =
      is_over(whole.state) && !is_cause_of_end(whole.state) && is_cause_of_end(part.state);
  // The job is not over while a part still has nodes.
  if (is_worse || (is_over(whole.state) && !is_over(part.state))) {
    whole.state = is_over(part.state) ? part.state : JobState::kCompleting;
    whole.state_text = part.state_text;
  }
}

}  // namespace

std::vector<ListedJob> whole_jobs(const std::vector<ListedPart>& parts) {
  std::map<uint64_t, std::vector<const ListedPart*>> members;
  for (const ListedPart& part : parts) members[part.leader].push_back(&part);
  std::vector<ListedJob> jobs;
  for (const ListedPart& part : parts) {
    auto all = members.extract(part.leader);
    if (all.empty()) continue;  // it was added at its first part
    std::stable_sort(
        all.mapped().begin(), all.mapped().end(),
        [](const ListedPart* one, const ListedPart* other) { return one->offset < other->offset; });
    ListedJob whole = all.mapped().front()->job;
    whole.id = part.leader;
    for (size_t i = 1; i < all.mapped().size(); ++i) add_part(whole, all.mapped()[i]->job);
    jobs.push_back(std::move(whole));
  }
  return jobs;
}

void set_exit(ListedJob& job, uint32_t status) {
  const int code = static_cast<int>(status & 0xffff);
  job.exit_signal = WIFSIGNALED(code) ? WTERMSIG(code) : 0;
  job.exit_code = WIFEXITED(code) ? WEXITSTATUS(code) : 0;
}

}  // namespace muster::engine::slurm
