#include "engine/shim/plan.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "base/json_text.h"
#include "engine/plain_cbor.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using nlohmann::json;

namespace {

// The environment may contain any byte, and JSON strings must be UTF-8. So texts of a plan are CBOR
// byte strings.
json text_to_json(const std::string& text) {
  return json(json::binary_t({text.begin(), text.end()}));
}

json texts_to_json(const std::vector<std::string>& texts) {
  json list = json::array();
  for (const std::string& text : texts) list.push_back(text_to_json(text));
  return list;
}

std::string text_from_json(const json& value) {
  const json::binary_t& bytes = value.get_binary();
  return {bytes.begin(), bytes.end()};
}

std::vector<std::string> texts_from_json(const json& list) {
  std::vector<std::string> texts;
  for (const json& entry : list) texts.push_back(text_from_json(entry));
  return texts;
}

template <class Value, class Read>
Result<Value> read_record(std::string_view text, bool cbor, const char* what, Read read) {
  // nlohmann throws on a missing or mistyped member. Only Muster writes these records, so one error
  // for all faults is enough.
  if (cbor && !is_plain_cbor(text)) {
    return Error{.code = ErrorCode::kInternal, .what = std::string("cannot read ") + what};
  }
  try {
    return read(cbor ? base::parse_cbor_or_throw(text) : base::parse_json_or_throw(text));
  } catch (const json::exception& error) {
    return Error{.code = ErrorCode::kInternal,
                 .what = std::string("cannot read ") + what + ": " + error.what()};
  }
}

json texts_to_json(const std::map<std::string, std::string>& texts) {
  json list = json::array();
  for (const auto& [name, text] : texts) {
    list.push_back(json::array({text_to_json(name), text_to_json(text)}));
  }
  return list;
}

std::map<std::string, std::string> pairs_from_json(const json& list) {
  std::map<std::string, std::string> texts;
  for (const json& pair : list) texts[text_from_json(pair.at(0))] = text_from_json(pair.at(1));
  return texts;
}

constexpr std::string_view kOfSandbox = " sandbox";  ///< follows the code in refusal_text()

constexpr std::array<std::pair<const char*, job::MpiKind>, 3> kMpiNames{
    {{"open_mpi", job::MpiKind::kOpenMpi},
     {"mpich", job::MpiKind::kMpich},
     {"intel", job::MpiKind::kIntel}}};

json mpi_to_json(const launch::MpiChoice& choice) {
  json value{{"program", text_to_json(choice.program)}};
  for (const auto& [name, kind] : kMpiNames) {
    const auto found = choice.variants.find(kind);
    if (found == choice.variants.end()) continue;
    value[name] = {{"environment", texts_to_json(found->second.environment)},
                   {"files", texts_to_json(found->second.files)}};
  }
  return value;
}

launch::MpiChoice mpi_from_json(const json& value) {
  launch::MpiChoice choice{.program = text_from_json(value.at("program")), .variants = {}};
  for (const auto& [name, kind] : kMpiNames) {
    if (value.count(name) == 0) continue;
    const json& variant = value.at(name);
    choice.variants[kind] = {.environment = pairs_from_json(variant.at("environment")),
                             .files = pairs_from_json(variant.at("files"))};
  }
  return choice;
}

json groups_to_json(const std::vector<TaskGroup>& groups) {
  json list = json::array();
  for (const TaskGroup& group : groups) {
    json settings = json::array();
    for (const auto& [file, value] : group.settings) settings.push_back({file, value});
    list.push_back({{"folder", text_to_json(group.folder)},
                    {"home", text_to_json(group.home)},
                    {"holder", text_to_json(group.holder)},
                    {"settings", std::move(settings)}});
  }
  return list;
}

json limits_to_json(const TaskLimits& limits) {
  return {{"memory", limits.memory_bytes},
          {"processes", limits.processes},
          {"user_processes", limits.user_processes},
          {"open_files", limits.open_files},
          {"file", limits.file_bytes},
          {"scratch", limits.scratch_bytes},
          {"folders", texts_to_json(limits.scratch)},
          {"groups", groups_to_json(limits.groups)},
          {"cpus", limits.cpus},
          {"niceness", limits.niceness},
          {"held_by_container", limits.is_held_by_container}};
}

TaskLimits limits_from_json(const json& value) {
  TaskLimits limits{.memory_bytes = value.at("memory").get<int64_t>(),
                    .processes = value.at("processes").get<int64_t>(),
                    .user_processes = value.value("user_processes", int64_t{0}),
                    .open_files = value.at("open_files").get<int64_t>(),
                    .file_bytes = value.at("file").get<int64_t>(),
                    .scratch_bytes = value.at("scratch").get<int64_t>(),
                    .scratch = texts_from_json(value.at("folders")),
                    .groups = {},
                    .cpus = value.value("cpus", std::vector<int>()),
                    .niceness = value.value("niceness", 0),
                    .is_held_by_container = value.value("held_by_container", false)};
  for (const json& each : value.at("groups")) {
    TaskGroup group{.folder = text_from_json(each.at("folder")),
                    .home = text_from_json(each.at("home")),
                    .settings = {}};
    if (each.contains("holder")) group.holder = text_from_json(each.at("holder"));
    for (const json& setting : each.at("settings")) {
      group.settings.emplace_back(setting.at(0).get<std::string>(),
                                  setting.at(1).get<std::string>());
    }
    limits.groups.push_back(std::move(group));
  }
  return limits;
}

json mappings_to_json(const std::vector<IdMapping>& mappings) {
  json list = json::array();
  for (const IdMapping& line : mappings) {
    list.push_back({line.inside, line.outside, line.count});
  }
  return list;
}

std::vector<IdMapping> mappings_from_json(const json& list) {
  std::vector<IdMapping> mappings;
  for (const json& line : list) {
    mappings.push_back({.inside = line.at(0).get<uint32_t>(),
                        .outside = line.at(1).get<uint32_t>(),
                        .count = line.at(2).get<uint32_t>()});
  }
  return mappings;
}

json account_to_json(const TaskAccount& account) {
  return {{"uid", account.uid},
          {"gid", account.gid},
          {"inside_uid", account.inside_uid},
          {"inside_gid", account.inside_gid},
          {"groups", account.groups},
          {"uids", mappings_to_json(account.uids)},
          {"gids", mappings_to_json(account.gids)}};
}

TaskAccount account_from_json(const json& value) {
  return {.uid = value.at("uid").get<uint32_t>(),
          .gid = value.at("gid").get<uint32_t>(),
          .inside_uid = value.at("inside_uid").get<uint32_t>(),
          .inside_gid = value.at("inside_gid").get<uint32_t>(),
          .groups = value.at("groups").get<std::vector<uint32_t>>(),
          .uids = mappings_from_json(value.at("uids")),
          .gids = mappings_from_json(value.at("gids"))};
}

json handed_to_json(const HandedFiles& files) {
  return {{"own", texts_to_json(files.own)},
          {"shared", texts_to_json(files.shared)},
          {"shared_gid", files.shared_gid},
          {"collected", texts_to_json(files.collected)},
          {"is_read_by_group", files.is_read_by_group}};
}

HandedFiles handed_from_json(const json& value) {
  return {.own = texts_from_json(value.at("own")),
          .shared = texts_from_json(value.at("shared")),
          .shared_gid = value.at("shared_gid").get<uint32_t>(),
          .collected = texts_from_json(value.at("collected")),
          .is_read_by_group = value.at("is_read_by_group").get<bool>()};
}

json inner_to_json(const InnerPlan& plan) {
  json value{{"argv", texts_to_json(plan.argv)},
             {"environment", texts_to_json(plan.environment)},
             {"folder", text_to_json(plan.folder)},
             {"ssh_command", texts_to_json(plan.ssh_command)},
             {"rank_output_folder", text_to_json(plan.rank_output_folder)},
             {"own_process_tree", plan.own_process_tree},
             {"input", plan.input},
             {"terminal", plan.terminal},
             {"generated", text_to_json(plan.generated)},
             {"takes_ranks", plan.takes_ranks},
             {"limits", limits_to_json(plan.limits)}};
  if (plan.mpi) value["mpi"] = mpi_to_json(*plan.mpi);
  if (plan.account) value["account"] = account_to_json(*plan.account);
  if (!plan.filter.empty()) value["filter"] = text_to_json(plan.filter);
  if (!plan.taken_from.empty()) value["taken_from"] = texts_to_json(plan.taken_from);
  return value;
}

InnerPlan inner_from_json(const json& value) {
  InnerPlan plan{.argv = texts_from_json(value.at("argv")),
                 .environment = texts_from_json(value.at("environment")),
                 .folder = text_from_json(value.at("folder")),
                 .ssh_command = texts_from_json(value.at("ssh_command")),
                 .rank_output_folder = text_from_json(value.at("rank_output_folder")),
                 .own_process_tree = value.at("own_process_tree").get<bool>(),
                 // The plan of a shim that an earlier release started lacks these members.
                 .input = value.value("input", false),
                 .terminal = value.value("terminal", false),
                 .takes_ranks = value.value("takes_ranks", false)};
  if (value.count("generated") > 0) plan.generated = text_from_json(value.at("generated"));
  if (value.count("limits") > 0) plan.limits = limits_from_json(value.at("limits"));
  if (value.count("account") > 0) plan.account = account_from_json(value.at("account"));
  if (value.count("filter") > 0) plan.filter = text_from_json(value.at("filter"));
  if (value.count("mpi") > 0) plan.mpi = mpi_from_json(value.at("mpi"));
  if (value.count("taken_from") > 0) plan.taken_from = pairs_from_json(value.at("taken_from"));
  return plan;
}

json sampling_to_json(const SamplingPlan& plan) {
  return {{"first_ms", plan.first.count()},
          {"interval_ms", plan.interval.count()},
          {"nvml", text_to_json(plan.nvml)},
          {"gpus", texts_to_json(plan.gpus)}};
}

SamplingPlan sampling_from_json(const json& value) {
  return {.first = std::chrono::milliseconds(value.at("first_ms").get<int64_t>()),
          .interval = std::chrono::milliseconds(value.at("interval_ms").get<int64_t>()),
          .nvml = text_from_json(value.at("nvml")),
          .gpus = texts_from_json(value.at("gpus"))};
}

json serves_to_json(const std::vector<launch::ServedPort>& ports) {
  json list = json::array();
  for (const launch::ServedPort& served : ports) {
    list.push_back({{"port", served.port}, {"address", served.address}});
  }
  return list;
}

std::vector<launch::ServedPort> serves_from_json(const json& list) {
  std::vector<launch::ServedPort> ports;
  for (const json& served : list) {
    ports.push_back(
        {.port = served.at("port").get<int>(), .address = served.at("address").get<std::string>()});
  }
  return ports;
}

int64_t count_of(base::Time time) {
  return time.time_since_epoch().count();
}
base::Time time_from_count(int64_t count) {
  return base::Time(std::chrono::nanoseconds(count));
}

/// A shim of an earlier version writes no limits.
std::optional<job::LimitReached> limit_in(const json& record) {
  const auto limit = record.find("limit");
  if (limit == record.end()) return std::nullopt;
  const int kind = limit->at(0).get<int>();
  if (kind < 0 || kind > static_cast<int>(job::Limit::kFileSize)) return std::nullopt;
  return job::LimitReached{.limit = static_cast<job::Limit>(kind),
                           .bound = limit->at(1).get<int64_t>(),
                           .peak = limit->at(2).get<int64_t>()};
}

}  // namespace

std::string encode(const InnerPlan& plan) {
  return base::cbor_text(inner_to_json(plan));
}

Result<InnerPlan> decode_inner_plan(std::string_view text) {
  return read_record<InnerPlan>(text, true, "a task's inner plan", inner_from_json);
}

std::string encode(const ShimPlan& plan) {
  return base::cbor_text({{"wrapper", texts_to_json(plan.wrapper)},
                          {"inner", inner_to_json(plan.inner)},
                          {"generated", text_to_json(plan.generated)},
                          {"address", plan.address},
                          {"port", plan.port},
                          {"serves", serves_to_json(plan.serves)},
                          {"grace_ms", plan.grace.count()},
                          {"tags_ranks", plan.tags_ranks},
                          {"prepends_rank", plan.prepends_rank},
                          {"log_quota", plan.log_quota},
                          {"is_leashed", plan.is_leashed},
                          {"sampling", sampling_to_json(plan.sampling)},
                          {"handed", handed_to_json(plan.handed)},
                          {"notices", texts_to_json(plan.notices)}});
}

Result<ShimPlan> decode_shim_plan(std::string_view text) {
  return read_record<ShimPlan>(text, true, "a task's plan", [](const json& value) {
    return ShimPlan{
        .wrapper = texts_from_json(value.at("wrapper")),
        .inner = inner_from_json(value.at("inner")),
        .generated =
            value.count("generated") > 0 ? text_from_json(value.at("generated")) : std::string(),
        .address = value.at("address").get<std::string>(),
        .port = value.at("port").get<int>(),
        .serves = value.count("serves") > 0 ? serves_from_json(value.at("serves"))
                                            : std::vector<launch::ServedPort>(),
        .grace = std::chrono::milliseconds(value.at("grace_ms").get<int64_t>()),
        .tags_ranks = value.value("tags_ranks", false),
        .prepends_rank = value.value("prepends_rank", false),
        .log_quota = value.value("log_quota", uint64_t{0}),
        .is_leashed = value.value("is_leashed", false),
        .sampling =
            value.count("sampling") > 0 ? sampling_from_json(value.at("sampling")) : SamplingPlan(),
        .handed = value.count("handed") > 0 ? handed_from_json(value.at("handed")) : HandedFiles(),
        .notices = value.count("notices") > 0 ? texts_from_json(value.at("notices"))
                                              : std::vector<std::string>()};
  });
}

std::string encode(const RunningRecord& record) {
  return base::json_text(json{{"pid", record.pid},
                              {"start_ticks", record.start_ticks},
                              {"started_ns", count_of(record.started)}});
}

Result<RunningRecord> decode_running(std::string_view text) {
  return read_record<RunningRecord>(text, false, "a running record", [](const json& value) {
    return RunningRecord{.pid = value.at("pid").get<pid_t>(),
                         .start_ticks = value.at("start_ticks").get<uint64_t>(),
                         .started = time_from_count(value.at("started_ns").get<int64_t>())};
  });
}

std::string encode(const ExitRecord& record) {
  const job::ExitStatus& status = record.status;
  json value{{"code", status.code},
             {"signal", status.signal},
             {"out_of_memory", status.out_of_memory},
             {"stopped", status.stopped},
             {"error", status.error},
             {"advice", status.advice},
             {"lost_log_bytes", status.lost_log_bytes},
             {"ended_ns", count_of(record.ended)}};
  if (status.limit) {
    value["limit"] = {static_cast<int>(status.limit->limit), status.limit->bound,
                      status.limit->peak};
  }
  return base::json_text(value);
}

Result<ExitRecord> decode_exit(std::string_view text) {
  if (text.find_first_not_of(' ') == std::string_view::npos) {
    return Error{.code = ErrorCode::kNotFound, .what = "the task left no exit record"};
  }
  return read_record<ExitRecord>(text, false, "an exit record", [](const json& value) {
    return ExitRecord{.status = {.code = value.at("code").get<int>(),
                                 .signal = value.at("signal").get<int>(),
                                 .out_of_memory = value.at("out_of_memory").get<bool>(),
                                 .stopped = value.at("stopped").get<bool>(),
                                 .error = value.at("error").get<std::string>(),
                                 .advice = value.value("advice", std::string()),
                                 .lost_log_bytes = value.value("lost_log_bytes", int64_t{0}),
                                 .limit = limit_in(value)},
                      .ended = time_from_count(value.at("ended_ns").get<int64_t>())};
  });
}

std::string refusal_text(const Error& error) {
  const bool is_sandbox = base::detail_of<SandboxFailed>(error) != nullptr;
  return std::string(to_string(error.code)) + (is_sandbox ? std::string(kOfSandbox) : "") + "\n" +
         error.what;
}

Error read_refusal(std::string_view text) {
  const size_t line = text.find('\n');
  if (line == std::string_view::npos) {
    return {.code = ErrorCode::kInternal, .what = "its shim ended immediately"};
  }
  std::string_view code = text.substr(0, line);
  Error error{.what = std::string(text.substr(line + 1))};
  if (code.ends_with(kOfSandbox)) {
    code.remove_suffix(kOfSandbox.size());
    error.detail = std::make_shared<const SandboxFailed>();
  }
  error.code = base::error_code_of(code);
  return error;
}

uint64_t start_ticks_of(pid_t pid) {
  auto stat = base::read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!stat) return 0;
  // The name of the program may contain blanks and brackets, so fields count from the last bracket.
  size_t at = stat->rfind(')');
  constexpr int kFieldsToStartTime = 20;
  for (int field = 0; field < kFieldsToStartTime && at != std::string::npos; ++field) {
    at = stat->find(' ', at + 1);
  }
  return at == std::string::npos ? 0 : std::strtoull(stat->c_str() + at + 1, nullptr, 10);
}

// --- the exit record on disk

namespace {

/// Bytes for the longest exit record.
constexpr size_t kRoomOfExitRecord = 4096;
/// A running record has three numbers.
constexpr size_t kRoomOfRunningRecord = 512;

}  // namespace

base::Result<void> RunningFile::reserve(const std::filesystem::path& path) {
  path_ = path;
  file_ = base::UniqueFd(::open(reserved().c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file_) return base::system_error("cannot make the file of the running record", errno);
  return base::write_all(file_.get(), std::string(kRoomOfRunningRecord, ' '));
}

base::Result<void> RunningFile::write(const RunningRecord& record) const {
  const std::string text = encode(record);
  const auto size = static_cast<ssize_t>(text.size());
  const bool written = ::pwrite(file_.get(), text.data(), text.size(), 0) == size &&
                       ::ftruncate(file_.get(), size) == 0 &&
                       ::rename(reserved().c_str(), path_.c_str()) == 0;
  return written ? base::Result<void>()
                 : base::system_error("cannot record that the task runs", errno);
}

base::Result<void> ExitFile::reserve(const std::filesystem::path& path) {
  file_ = base::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file_) return base::system_error("cannot open the exit record", errno);
  return base::write_all(file_.get(), std::string(kRoomOfExitRecord, ' '));
}

void ExitFile::write(ExitRecord record) const {
  std::string text = encode(record);
  if (text.size() > kRoomOfExitRecord) {
    record.status.error.clear();
    text = encode(record);
  }
  text.resize(std::max(text.size(), kRoomOfExitRecord), ' ');
  [[maybe_unused]] const ssize_t written = ::pwrite(file_.get(), text.data(), text.size(), 0);
}

}  // namespace muster::engine
