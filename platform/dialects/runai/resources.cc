#include "dialects/runai/resources.h"

#include <algorithm>
#include <array>
#include <boost/tokenizer.hpp>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "dialects/runai/volumes.h"
#include "dialects/runai/words.h"
#include "job/container.h"
#include "job/spec_table.h"

namespace muster::dialects::runai {

namespace {

constexpr int64_t kLeastGpuMemory = 100'000'000;

/// The name that was used of a flag with two names.
std::string mig_flag(const cli::FlagReader& reader) {
  return reader.has("--mig-profile") ? "--mig-profile" : "--mig";
}

void exclude_each_other(cli::FlagReader& reader, job::Resources& resources) {
  const std::string mig = mig_flag(reader);
  const std::array<std::pair<std::string, std::string>, 3> pairs{
      {{"--gpu", "--gpu-memory"}, {"--gpu", mig}, {"--gpu-memory", mig}}};
  for (const auto& [one, other] : pairs) {
    if (!reader.has(one) || !reader.has(other)) continue;
    reader.fault("", "unexpected to accept both " + one.substr(2) + " and " + other.substr(2) +
                         " flag. please use only one of them");
    // Cleared, so that validation reports no second fault for the pair.
    resources.gpu_memory_bytes = 0;
  }
}

void refuse_mig(cli::FlagReader& reader) {
  const std::string flag = mig_flag(reader);
  if (!reader.has(flag)) return;
  constexpr std::array<std::string_view, 5> kProfiles{"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb",
                                                      "7g.40gb"};
  const std::string profile = reader.text(flag);
  if (std::find(kProfiles.begin(), kProfiles.end(), profile) == kProfiles.end()) {
    return reader.fault("", "unsupported mig device: " + profile);
  }
  reader.fault(flag,
               "is not supported: GPUs are not cut into MIG devices; request a fraction with --gpu "
               "0.5, or GPU memory with --gpu-memory");
}

void read_gpu_memory(cli::FlagReader& reader, job::Resources& resources) {
  if (!reader.has("--gpu-memory")) return;
  resources.gpu_memory_bytes = reader.bytes("--gpu-memory", kLeastGpuMemory);
  if (resources.gpu_memory_bytes >= kLeastGpuMemory) return;
  reader.fault("", "gpu memory must be greater than 100Mb");
}

/// Resolves a claim and its limit, which were already read.
void settle(const std::string& flag, int64_t limit, cli::FlagReader& reader, int64_t& claim) {
  const std::string limit_flag = flag + "-limit";
  if (!reader.has(limit_flag)) return;
  if (!reader.has(flag)) {
    claim = limit;
  } else if (limit < claim && !reader.is_at_fault(limit_flag) && !reader.is_at_fault(flag)) {
    reader.fault(limit_flag, reader.text(limit_flag) + " is less than the " + reader.text(flag) +
                                 " of " + flag);
  }
}

}  // namespace

void read_gpus(const std::string& flag, cli::FlagReader& reader, job::Resources& resources) {
  if (!reader.has(flag)) return;
  const auto milli = base::parse_milli(reader.text(flag));
  const bool is_part = milli && *milli < 1000;
  const bool is_served =
      milli && (is_part || *milli % 1000 == 0) && *milli / 1000 <= std::numeric_limits<int>::max();
  if (!is_served) {
    return reader.fault(
        flag, "'" + reader.text(flag) + "' is neither a whole number nor a fraction such as 0.5");
  }
  resources.gpus = is_part ? 0 : static_cast<int>(*milli / 1000);
  resources.gpu_share_milli = is_part ? static_cast<int>(*milli) : 0;
  resources.gpu_memory_bytes = 0;
}

Claims read_claims(cli::FlagReader& reader, std::vector<std::string>& notes) {
  Claims claims;
  job::Resources& resources = claims.resources;
  read_gpus("--gpu", reader, resources);
  read_gpu_memory(reader, resources);
  exclude_each_other(reader, resources);
  refuse_mig(reader);
  resources.cpu_milli = reader.cpus("--cpu", 0);
  resources.memory_bytes = reader.bytes("--memory", 0);
  settle("--cpu", reader.cpus("--cpu-limit", 0), reader, resources.cpu_milli);
  const int64_t memory_limit = reader.bytes("--memory-limit", 0);
  settle("--memory", memory_limit, reader, resources.memory_bytes);
  for (const std::string name : {"cpu-limit", "memory-limit"}) {
    const std::string flag = "--" + name;
    if (reader.has(flag)) claims.limits["runai/" + name] = reader.text(flag);
  }
  if (reader.has("--cpu-limit")) {
    notes.push_back(std::string("--cpu-limit: tasks get CPU time in proportion to their requests") +
                    (reader.has("--cpu") ? "" : "; the limit is used as the request"));
  }
  // The claim is what a task may use at most.
  if (reader.has("--memory-limit") && reader.has("--memory") &&
      memory_limit != resources.memory_bytes) {
    notes.push_back("--memory-limit: the limit is the " + reader.text("--memory") +
                    " of --memory; a task that uses more is killed");
  }
  return claims;
}

namespace {

/// Memory in /dev/shm is used only when it is written.
constexpr int64_t kLargeShm = int64_t{64} << 30;

void read_pull_policy(cli::FlagReader& reader, job::PullPolicy& pull) {
  using job::PullPolicy;
  const std::string flag = "--image-pull-policy";
  // An invalid word already has a fault.
  const bool is_given = reader.has(flag) && !reader.is_at_fault(flag);
  if (is_given) pull = record::typed_as<PullPolicy>(reader.text(flag)).value_or(pull);
  bool is_chosen = is_given;
  for (const auto& [deprecated, policy] : {std::pair("--always-pull-image", PullPolicy::kAlways),
                                           std::pair("--local-image", PullPolicy::kNever)}) {
    if (!reader.has(deprecated)) continue;
    if (is_chosen && pull != policy) {
      reader.fault(deprecated, "conflicts with another flag; give only --image-pull-policy");
    }
    is_chosen = true;
    pull = policy;
  }
}

void read_rights(cli::FlagReader& reader, job::ContainerSpec& container) {
  container.new_privileges = reader.has("--allow-privilege-escalation");
  if (container.new_privileges && reader.has("--prevent-privilege-escalation")) {
    reader.fault("--allow-privilege-escalation",
                 "cannot be used with --prevent-privilege-escalation; give only one");
  }
  std::vector<std::string> names;
  for (const std::string& text : reader.texts("--add-capability")) {
    for (const std::string& name : base::split(text, ',')) names.push_back(name);
  }
  container.capabilities = job::capabilities_of(names);
}

/// --run-as-user, or --run-as-uid with --run-as-gid.
void read_user(cli::FlagReader& reader, const cli::Caller& caller, job::JobSpec& spec) {
  const bool has_uid = reader.has("--run-as-uid");
  const bool has_gid = reader.has("--run-as-gid");
  const int uid = reader.number_between("--run-as-uid", 0, 0);
  const int gid = reader.number_between("--run-as-gid", 0, 0);
  if (reader.has("--run-as-user")) {
    spec.user = std::to_string(caller.user) + ":" + std::to_string(caller.group);
    for (const char* const flag : {"--run-as-uid", "--run-as-gid"}) {
      if (reader.has(flag)) reader.fault(flag, "cannot be used with --run-as-user; give only one");
    }
    return;
  }
  if (has_gid && !has_uid) reader.fault("--run-as-gid", "requires --run-as-uid");
  if (!has_uid || reader.is_at_fault("--run-as-uid")) return;
  spec.user = std::to_string(uid) + (has_gid ? ":" + std::to_string(gid) : "");
}

}  // namespace

void read_container(cli::FlagReader& reader, const cli::Caller& caller, job::JobSpec& spec) {
  job::ContainerSpec& container = spec.container;
  container.writable_root = true;
  read_pull_policy(reader, container.pull);
  read_rights(reader, container);
  if (reader.has("--large-shm")) container.shm_bytes = kLargeShm;
  read_user(reader, caller, spec);
}

namespace {

/// "--lr 0.1 --note 'a b'" as words; quotes group words.
Words split_words(const std::string& flag, const std::string& text, cli::FlagReader& reader) {
  using Separator = boost::escaped_list_separator<char>;
  Words words;
  try {
    const boost::tokenizer<Separator> pieces(
        text, Separator(std::string("\\"), std::string(" \t"), std::string("\"'")));
    for (const std::string& piece : pieces) {
      if (!piece.empty()) words.push_back(piece);
    }
  } catch (const std::runtime_error&) {
    reader.fault(flag, "'" + text + "' has a '\\' that is not before a quote or a '\\'");
  }
  return words;
}

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

/// The master's arguments replace the job's arguments.
void read_arguments(cli::FlagReader& reader, job::JobSpec& spec) {
  const std::string flag = "--master-args";
  if (!reader.has(flag)) return;
  Words words;
  for (const std::string& text : reader.texts(flag)) append(words, split_words(flag, text, reader));
  if (spec.kind == job::Kind::kMpi) {
    // Only the launcher runs the command.
    if (!spec.arguments.empty() || reader.has("--args")) {
      return reader.fault(flag,
                          "only the launcher runs the command; give its arguments after '--'");
    }
    append(spec.command.empty() ? spec.arguments : spec.command, words);
  } else if (!spec.command.empty()) {
    const bool has_own_arguments = reader.has("--args");
    spec.leader.command = has_own_arguments ? Words{spec.command.front()} : spec.command;
    append(spec.leader.command, words);
  } else if (spec.arguments.empty()) {
    spec.leader.arguments = words;
  } else {
    reader.fault(
        flag,
        "cannot replace the arguments of the image's own command; give the command with --command");
  }
}

void read_master_environment(cli::FlagReader& reader, job::JobSpec& spec) {
  const std::string flag = "--master-environment";
  for (const auto& [name, value] : read_pairs(flag, "give NAME=VALUE", reader)) {
    if (value != "-") {
      spec.leader.environment[name] = value;
    } else if (spec.environment.contains(name)) {
      reader.fault(
          flag,
          "'" + name +
              "=-': a variable set by -e cannot be removed from the master; give it another value");
    }
  }
}

/// Run:AI starts --workers workers. Here, an elastic job starts with as many workers as fit, so
/// --workers must only lie between the minimum and the maximum.
void read_replicas(cli::FlagReader& reader, job::JobSpec& spec) {
  const int first = spec.workers;
  const int most = reader.has("--workers") ? reader.number("--max-replicas", first) : first;
  const int least = reader.number("--min-replicas", std::min(first, most));
  for (const char* flag : {"--workers", "--max-replicas", "--min-replicas"}) {
    if (reader.is_at_fault(flag)) return;
  }
  if (least <= most && (first < least || first > most)) {
    reader.fault("--workers", std::to_string(first) +
                                  " is not between --min-replicas and "
                                  "--max-replicas, " +
                                  std::to_string(least) + " and " + std::to_string(most));
  }
  spec.workers = most;
  if (least != most) spec.scheduling.min_workers = least;
}

}  // namespace

std::string workers_flag(const cli::FlagReader& reader, const std::vector<std::string>& path) {
  if (path.front() == "submit-dist") {
    return reader.has("--max-replicas") && !reader.has("--workers") ? "--max-replicas"
                                                                    : "--workers";
  }
  return reader.has("--num-processes") && !reader.has("--processes") ? "--num-processes"
                                                                     : "--processes";
}

namespace {

/// Two names of one flag.
void refuse_both(const std::string& flag, const std::string& other, cli::FlagReader& reader) {
  if (!reader.has(flag) || !reader.has(other)) return;
  reader.fault(other, "cannot be used with " + flag + ": both stand for the same number");
}

}  // namespace

void read_workers(cli::FlagReader& reader, const std::vector<std::string>& path,
                  job::JobSpec& spec) {
  if (spec.kind == job::Kind::kSingle) return;
  refuse_both("--processes", "--num-processes", reader);
  spec.workers = reader.number(workers_flag(reader, path), 1);
  spec.slots_per_worker = reader.number("--slots-per-worker", 1);
  read_replicas(reader, spec);
}

void read_master(cli::FlagReader& reader, job::JobSpec& spec) {
  if (spec.kind == job::Kind::kSingle) return;
  if (spec.kind != job::Kind::kMpi) spec.leader.resources = spec.resources;
  read_gpus("--master-gpu", reader, spec.leader.resources);
  read_arguments(reader, spec);
  read_master_environment(reader, spec);
}

namespace {

using std::chrono::milliseconds;

/// "1h30m": one or more numbers with units.
std::optional<milliseconds> parse_duration_parts(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789.";
  if (text.empty()) return std::nullopt;
  milliseconds sum{0};
  while (!text.empty()) {
    const size_t unit = std::min(text.find_first_not_of(kDigits), text.size());
    const size_t end = std::min(text.find_first_of(kDigits, unit), text.size());
    const auto part = base::parse_duration(text.substr(0, end));
    if (unit == 0 || unit == end || !part) return std::nullopt;
    if (*part > milliseconds::max() - sum) return std::nullopt;
    sum += *part;
    text.remove_prefix(end);
  }
  return sum;
}

}  // namespace

std::optional<milliseconds> keep_for_of(cli::FlagReader& reader) {
  for (const char* flag : {"--ttl-after-finish", "--auto-deletion-time-after-completion"}) {
    if (!reader.has(flag)) continue;
    const std::string text = reader.text(flag);
    const auto time = parse_duration_parts(text);
    if (!time) reader.fault(flag, "'" + text + "' is not a time such as 30s, 2m or 1h30m");
    return time;
  }
  return std::nullopt;
}

}  // namespace muster::dialects::runai
