#include "engine/slurm/rest_answer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/node/slurm_step.h"
#include "engine/slurm/listing.h"
#include "engine/slurm/slurm_error.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine::slurm::rest {

using nlohmann::json;

/// In Unix time; a Time cannot hold much more.
constexpr int64_t kLatestSecond = 9'000'000'000;

namespace {

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& one) { return upper_case(one) == word; });
}

}  // namespace

std::string one_line(std::string_view raw, size_t longest) {
  std::string text = base::as_utf8(raw);
  std::replace_if(
      text.begin(), text.end(),
      [](char letter) { return static_cast<unsigned char>(letter) < ' '; }, ' ');
  return base::shortened(text, longest);
}

std::string node_state_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const std::string capital = upper_case(word);
    if (capital == "NOT_RESPONDING") continue;
    text += (text.empty() ? "" : "+") + capital;
    const bool is_base = &word == &words.front();
    if (is_base && has(words, "NOT_RESPONDING")) text += "*";
  }
  return text;
}

}  // namespace muster::engine::slurm::rest

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace rest {

/// The member `key`, or null.
const json& at(const json& object, std::string_view key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

/// A text, a list of texts, or words separated by commas; each is trimmed.
std::vector<std::string> texts_at(const json& object, std::string_view key) {
  std::vector<std::string> texts;
  const auto add = [&](const json& value) {
    if (!value.is_string()) return;
    for (const std::string& text : base::split(value.get_ref<const std::string&>(), ',')) {
      const std::string_view word = base::trimmed(text, " \t");
      if (!word.empty()) texts.emplace_back(word);
    }
  };
  const json& found = at(object, key);
  if (found.is_array()) {
    for (const json& value : found) add(value);
  } else {
    add(found);
  }
  return texts;
}

/// A list of texts is joined with commas; a missing member is empty.
std::string text_at(const json& object, std::string_view key) {
  const json& found = at(object, key);
  if (found.is_string()) return found.get<std::string>();
  if (!found.is_array()) return {};
  std::string joined;
  for (const std::string& text : texts_at(object, key))
    joined += (joined.empty() ? "" : ",") + text;
  return joined;
}

/// 5, "5" or {"set": true, "infinite": false, "number": 5}. Nullopt: unset or infinite.
std::optional<int64_t> number_at(const json& object, std::string_view key) {
  const json& found = at(object, key);
  if (found.is_number_unsigned()) {
    const auto number = found.get<uint64_t>();
    if (number > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (found.is_number_integer()) return found.get<int64_t>();
  if (found.is_string()) return base::number_of<int64_t>(found.get_ref<const std::string&>());
  if (!found.is_object()) return std::nullopt;
  const auto is_true = [&](std::string_view name) {
    const json& flag = at(found, name);
    return flag.is_boolean() && flag.get<bool>();
  };
  if (!is_true("set") || is_true("infinite") || at(found, "number").is_object()) {
    return std::nullopt;
  }
  return number_at(found, "number");
}

Error no_such_answer(const std::string& what, const std::string& why) {
  return {.code = ErrorCode::kInternal,
          .what = "cannot read slurmrestd's answer as " + what + ": " + why};
}

/// Parses the members with these names, at any depth. Error: not a JSON object. `what`: "the jobs".
Result<json> parse(std::string_view body, const std::string& what,
                   const std::unordered_set<std::string_view>& names) {
  const auto keeps = [&](int /*depth*/, json::parse_event_t event, json& parsed) {
    return event != json::parse_event_t::key ||
           names.contains(parsed.get_ref<const std::string&>());
  };
  constexpr bool kThrows = false;
  json root = json::parse(body, keeps, kThrows);
  if (root.is_discarded()) return no_such_answer(what, "it is not JSON");
  if (!root.is_object()) return no_such_answer(what, "it is not a JSON object");
  return root;
}

}  // namespace rest

using rest::at;
using rest::json;

namespace {

constexpr size_t kLongestFault = 1000;

int fault_number(const json& fault) {
  for (const std::string_view name : {"error_number", "error_code", "errno"}) {
    const auto number = rest::number_at(fault, name);
    if (number && *number != 0 && *number >= INT32_MIN && *number <= INT32_MAX) {
      return static_cast<int>(*number);
    }
  }
  return 0;
}

/// `error` is Slurm's name of the number, `description` the failed operation.
std::string fault_text(const json& fault) {
  const std::string error = rest::text_at(fault, "error");
  const std::string description = rest::text_at(fault, "description");
  if (description.empty() || description.find(error) != std::string::npos) {
    return rest::one_line(description.empty() ? error : description, kLongestFault);
  }
  return rest::one_line(error.empty() ? description : error + " (" + description + ")",
                        kLongestFault);
}

}  // namespace

std::vector<RestFault> read_rest_faults(std::string_view body) {
  const auto root = rest::parse(
      body, "faults", {"errors", "error", "description", "error_number", "error_code", "errno"});
  std::vector<RestFault> faults;
  if (!root) return faults;
  const json& errors = at(*root, "errors");
  if (!errors.is_array()) return faults;
  for (const json& fault : errors) {
    RestFault one{.number = fault_number(fault), .text = fault_text(fault)};
    if (one.number != 0 || !one.text.empty()) faults.push_back(std::move(one));
  }
  return faults;
}

Result<uint64_t> read_rest_submitted(std::string_view body) {
  auto root = rest::parse(body, "a submitted job", {"job_id", "set", "infinite", "number"});
  if (!root) return std::move(root).error();
  const auto id = rest::number_at(*root, "job_id");
  return id && *id > 0 ? static_cast<uint64_t>(*id) : uint64_t{0};
}

Result<RestPaths> read_rest_paths(std::string_view body) {
  // The description has megabytes, of which only the names of two levels are kept.
  constexpr int kMembers = 1;
  constexpr int kMethods = 3;
  const auto keeps = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event != json::parse_event_t::key) return true;
    if (depth == kMembers) return parsed == "paths";
    return depth <= kMethods;
  };
  const std::string what = "its description (OpenAPI)";
  constexpr bool kThrows = false;
  const json root = json::parse(body, keeps, kThrows);
  if (root.is_discarded()) return rest::no_such_answer(what, "it is not JSON");
  const json& paths = at(root, "paths");
  if (!paths.is_object()) return rest::no_such_answer(what, "it has no paths");
  RestPaths result;
  for (const auto& [path, methods] : paths.items()) {
    const std::vector<std::string> parts = base::split(path, '/');
    if (parts.size() < 3 || (parts[1] != "slurm" && parts[1] != "slurmdb")) continue;
    const int version = rest_version_of(parts[2]);
    if (version == 0 || !methods.is_object()) continue;
    for (const auto& method : methods.items()) {
      std::string name = method.key();
      std::transform(name.begin(), name.end(), name.begin(), [](char letter) {
        return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - ('a' - 'A')) : letter;
      });
      result.served.push_back(path + " " + name);
    }
    result.versions.push_back(version);
  }
  std::sort(result.versions.begin(), result.versions.end());
  result.versions.erase(std::unique(result.versions.begin(), result.versions.end()),
                        result.versions.end());
  return result;
}

Result<RestPing> read_rest_ping(std::string_view body) {
  auto root = rest::parse(body, "an answer to ping",
                          {"meta", "Slurm", "slurm", "release", "pings", "ping", "pinged"});
  if (!root) return std::move(root).error();
  const json& meta = at(*root, "meta");
  RestPing result{.version = rest::text_at(at(meta, "slurm"), "release")};
  if (result.version.empty()) result.version = rest::text_at(at(meta, "Slurm"), "release");
  const json& pings = at(*root, "pings");
  if (pings.is_array()) {
    result.is_up = std::any_of(pings.begin(), pings.end(), [](const json& ping) {
      return rest::text_at(ping, "pinged") == "UP" || rest::text_at(ping, "ping") == "UP";
    });
  }
  return result;
}

// --- jobs

using rest::number_at;
using rest::text_at;

namespace {

/// Members of jobs and of objects in them, in all versions.
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

/// As of wait(2) up to v0.0.39; later {"return_code", "signal": {"id"}}.
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

/// A malformed list counts as empty.
std::vector<std::string> nodes_of(const json& job) {
  auto nodes = node::expand_nodes(text_at(job, "nodes"));
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

// --- nodes

namespace {

const std::unordered_set<std::string_view> kNodeMembers{
    "nodes", "name",        "address", "state",      "state_flags", "reason",
    "cpus",  "real_memory", "gres",    "partitions", "features",    "active_features",
    "set",   "infinite",    "number"};

ListedNode read_node(const json& node) {
  constexpr int64_t kMostMebibytes = int64_t{1} << 40;
  auto words = rest::texts_at(node, "state");
  for (std::string& flag : rest::texts_at(node, "state_flags")) words.push_back(std::move(flag));
  ListedNode result{.name = text_at(node, "name"),
                    .address = text_at(node, "address"),
                    .state_text = rest::node_state_text(words),
                    .reason = text_at(node, "reason"),
                    .cpus = static_cast<int>(
                        std::clamp<int64_t>(number_at(node, "cpus").value_or(0), 0, INT32_MAX)),
                    .memory_bytes = std::clamp<int64_t>(number_at(node, "real_memory").value_or(0),
                                                        0, kMostMebibytes) *
                                    kMebibyte,
                    .partitions = rest::texts_at(node, "partitions"),
                    .features = rest::texts_at(node, "features")};
  result.takes_jobs = takes_jobs(result.state_text);
  // v0.0.36 does not list the state of drained nodes, only the reason.
  const bool has_flags = !at(node, "state_flags").is_null() || at(node, "state").is_array();
  if (!has_flags && !result.reason.empty()) result.takes_jobs = false;
  const Gpus gpus = gpus_in(text_at(node, "gres"));
  result.gpus = gpus.count;
  result.gpu_type = gpus.type;
  return result;
}

}  // namespace

Result<std::vector<ListedNode>> read_rest_nodes(std::string_view body) {
  auto root = rest::parse(body, "the nodes", kNodeMembers);
  if (!root) return std::move(root).error();
  const json& nodes = at(*root, "nodes");
  if (!nodes.is_array()) return rest::no_such_answer("the nodes", "it has no list of nodes");
  std::vector<ListedNode> result;
  for (const json& node : nodes) {
    ListedNode read = read_node(node);
    if (!read.name.empty()) result.push_back(std::move(read));
  }
  return result;
}

namespace {

constexpr int kUnauthorizedStatus = 401;
constexpr int kNotFoundStatus = 404;

// Slurm's error numbers (slurm_errno.h), which have not changed over many versions.
constexpr int kUnspecified = -1;
constexpr int kInvalidJob = 2017;
constexpr int kAlreadyDone = 2021;
constexpr int kEmptyResult = 9003;  ///< the database has no such entry
/// slurmrestd could not connect to the controller.
constexpr std::array kUnreachableNumbers{1001, 1800};
/// The controller has received some of the request, and has not answered in time.
constexpr std::array kLostNumbers{1002, 1003, 1004, 1801, 1802, 1803, 5003, 5004};

template <size_t Count>
bool is_among(const std::array<int, Count>& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

bool mentions(const RestFault& fault, std::string_view words) {
  return fault.text.find(words) != std::string::npos;
}

}  // namespace

RestFailure rest_failure_of(int status, const std::vector<RestFault>& faults) {
  if (status == kUnauthorizedStatus) return RestFailure::kUnauthorized;
  if (status == kNotFoundStatus && faults.empty()) return RestFailure::kNotServed;
  const auto any = [&](auto holds) { return std::any_of(faults.begin(), faults.end(), holds); };
  // v0.0.36 writes the number 0, and the real one after it.
  if (any([](const RestFault& fault) {
        return is_among(kUnreachableNumbers, fault.number) || mentions(fault, "(connect failure)");
      })) {
    return RestFailure::kNotReached;
  }
  if (any([](const RestFault& fault) { return is_among(kLostNumbers, fault.number); })) {
    return RestFailure::kLost;
  }
  const bool is_named =
      any([](const RestFault& fault) { return fault.number > 0 || fault.number < kUnspecified; }) ||
      (!faults.empty() &&
       !any([](const RestFault& fault) { return fault.number == kUnspecified; }));
  return is_named ? RestFailure::kRefused : RestFailure::kUnspecified;
}

std::string words_of(int status, const std::vector<RestFault>& faults) {
  const auto found = std::find_if(faults.begin(), faults.end(),
                                  [](const RestFault& fault) { return !fault.text.empty(); });
  if (found != faults.end()) return found->text;
  if (!faults.empty()) return "error " + std::to_string(faults.front().number);
  return "it answers with status " + std::to_string(status);
}

bool is_over_already(const std::vector<RestFault>& faults) {
  return !faults.empty() && std::all_of(faults.begin(), faults.end(), [](const RestFault& fault) {
    return fault.number == kInvalidJob || fault.number == kAlreadyDone ||
           mentions(fault, "Invalid job id specified") ||
           mentions(fault, "Job/step already completing or completed");
  });
}

bool is_unknown_in_past(const std::vector<RestFault>& faults) {
  const auto is_unknown = [](const RestFault& fault) {
    return fault.number == kInvalidJob || fault.number == kEmptyResult;
  };
  // v0.0.36 writes the number 0, and the real one after it.
  return std::any_of(faults.begin(), faults.end(), is_unknown) &&
         std::all_of(faults.begin(), faults.end(), [&](const RestFault& fault) {
           return is_unknown(fault) || fault.number == 0;
         });
}

Error rest_error(RestFailure failure, const std::string& words, const std::string& doing,
                 const std::string& name, const Submission* submission) {
  const std::string by = " (" + name + ")";
  const bool is_submission = submission != nullptr;
  switch (failure) {
    case RestFailure::kUnauthorized:
      return {
          .code = ErrorCode::kRefused,
          .what = doing + ": " + name + " rejects the token, or requires one",
          .advice =
              "check that slurmrestd runs with SLURM_JWT set and Slurm with "
              "AuthAltTypes=auth/jwt, and that the token (`scontrol token`) belongs to the user of "
              "slurmrestd"};
    case RestFailure::kNotServed:
      return {.code = ErrorCode::kUnavailable,
              .what = doing + ": " + name + " no longer serves this path",
              .advice = "Muster reads its paths again before the next request"};
    case RestFailure::kUnspecified:
      if (is_submission) break;
      return {
          .code = ErrorCode::kUnavailable,
          .what = doing + ": Slurm's controller does not answer, " + name + " reports: " + words,
          .advice = "check that slurmctld runs: scontrol ping"};
    case RestFailure::kNotReached:
      return {.code = ErrorCode::kUnavailable,
              .what = doing + ": " + words + by,
              .advice = "check that slurmctld runs: scontrol ping"};
    case RestFailure::kLost:
      if (is_submission) break;
      return {.code = ErrorCode::kUnavailable, .what = doing + ": " + words + by};
    case RestFailure::kRefused:
      return is_submission ? refusal_of(words, *submission) : failure_of(doing, words);
  }
  return {.code = ErrorCode::kTimeout,
          .what = "a job was submitted to Slurm, and the answer was lost: " + words + by};
}

}  // namespace muster::engine::slurm
