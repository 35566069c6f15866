#include "job/fact_json.h"

#include <array>
#include <concepts>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/number.h"
#include "base/text.h"
#include "record/words.h"

namespace muster::job {

namespace {

using nlohmann::json;

constexpr std::array<record::Named<Resource>, 3> kResourceNames{
    {{Resource::kGpu, "gpu"}, {Resource::kCpu, "cpu"}, {Resource::kMemory, "memory"}}};

using What = Notice::What;
constexpr std::array<record::Named<What>, 19> kNoticeNames{
    {{What::kWaitsForScheduler, "waits_for_scheduler"},
     {What::kNotItsTurn, "not_its_turn"},
     {What::kRoomButNotItsTurn, "room_but_not_its_turn"},
     {What::kSubmitted, "submitted"},
     {What::kStarts, "starts"},
     {What::kStartsWorkers, "starts_workers"},
     {What::kRunning, "running"},
     {What::kTakenUp, "taken_up"},
     {What::kImagesGivenUp, "images_given_up"},
     {What::kAskedToStop, "asked_to_stop"},
     {What::kAskedToStopNow, "asked_to_stop_now"},
     {What::kBeingStopped, "being_stopped"},
     {What::kBeingEnded, "being_ended"},
     {What::kDone, "done"},
     {What::kWasStopped, "was_stopped"},
     {What::kWasSuspended, "was_suspended"},
     {What::kSuspendedAndGone, "suspended_and_gone"},
     {What::kEvictedAndGone, "evicted_and_gone"},
     {What::kResumed, "resumed"}}};

constexpr std::array<record::Named<Evicted::Stage>, 3> kEvictedNames{
    {{Evicted::Stage::kToldSo, "told_so"},
     {Evicted::Stage::kBeingEnded, "being_ended"},
     {Evicted::Stage::kWaitsAgain, "waits_again"}}};

using Cause = SlurmEnded::Cause;
constexpr std::array<record::Named<Cause>, 16> kCauseNames{{{Cause::kOther, "other"},
                                                            {Cause::kTimeLimit, "time_limit"},
                                                            {Cause::kDeadline, "deadline"},
                                                            {Cause::kOutOfMemory, "out_of_memory"},
                                                            {Cause::kBootFailed, "boot_failed"},
                                                            {Cause::kNodeFailed, "node_failed"},
                                                            {Cause::kPreempted, "preempted"},
                                                            {Cause::kCancelled, "cancelled"},
                                                            {Cause::kForgotten, "forgotten"},
                                                            {Cause::kEndedEarly, "ended_early"},
                                                            {Cause::kNeverBegan, "never_began"},
                                                            {Cause::kLate, "late"},
                                                            {Cause::kRequeued, "requeued"},
                                                            {Cause::kRequeuedNode, "requeued_node"},
                                                            {Cause::kNodeDown, "node_down"},
                                                            {Cause::kSilent, "silent"}}};

using Wait = SlurmWaits::Stage;
constexpr std::array<record::Named<Wait>, 10> kWaitNames{{{Wait::kToBeSent, "to_be_sent"},
                                                          {Wait::kUnsure, "unsure"},
                                                          {Wait::kSent, "sent"},
                                                          {Wait::kPending, "pending"},
                                                          {Wait::kCompleting, "completing"},
                                                          {Wait::kSuspended, "suspended"},
                                                          {Wait::kStarting, "starting"},
                                                          {Wait::kCallingBack, "calling_back"},
                                                          {Wait::kAway, "away"},
                                                          {Wait::kEarlier, "earlier"}}};

constexpr std::array<record::Named<SlurmState::What>, 3> kStateNames{
    {{SlurmState::What::kSuspended, "suspended"},
     {SlurmState::What::kEnding, "ending"},
     {SlurmState::What::kAway, "away"}}};

using How = TaskFailed::How;
constexpr std::array<record::Named<How>, 3> kHowNames{
    {{How::kEnded, "ended"}, {How::kAborted, "aborted"}, {How::kUnfinalized, "unfinalized"}}};

using Astray = RanksAstray::Fault;
constexpr std::array<record::Named<Astray>, 7> kAstrayNames{
    {{Astray::kEachAlone, "each_alone"},
     {Astray::kOnLauncher, "on_launcher"},
     {Astray::kRanOnLauncher, "ran_on_launcher"},
     {Astray::kCrowded, "crowded"},
     {Astray::kNoneInAWorker, "none_in_a_worker"},
     {Astray::kHangsInFinalize, "hangs_in_finalize"},
     {Astray::kTooFewStarted, "too_few_started"}}};

constexpr std::array<record::Named<Retry::Cost>, 3> kCostNames{
    {{Retry::Cost::kCounted, "counted"},
     {Retry::Cost::kNone, "none"},
     {Retry::Cost::kAvoidsNode, "avoids_node"}}};

using Abandoned = AttemptAbandoned::Why;
constexpr std::array<record::Named<Abandoned>, 7> kAbandonedNames{
    {{Abandoned::kPortTaken, "port_taken"},
     {Abandoned::kNamesTaken, "names_taken"},
     {Abandoned::kEngineAway, "engine_away"},
     {Abandoned::kNodeGone, "node_gone"},
     {Abandoned::kNodeSilent, "node_silent"},
     {Abandoned::kNodeChanged, "node_changed"},
     {Abandoned::kServerRestarted, "server_restarted"}}};

const auto& names_of(How) {
  return kHowNames;
}
const auto& names_of(Astray) {
  return kAstrayNames;
}
const auto& names_of(Retry::Cost) {
  return kCostNames;
}
const auto& names_of(Abandoned) {
  return kAbandonedNames;
}
const auto& names_of(Resource) {
  return kResourceNames;
}
const auto& names_of(What) {
  return kNoticeNames;
}
const auto& names_of(Evicted::Stage) {
  return kEvictedNames;
}
const auto& names_of(Cause) {
  return kCauseNames;
}
const auto& names_of(Wait) {
  return kWaitNames;
}
const auto& names_of(SlurmState::What) {
  return kStateNames;
}

void fields_of(auto& self, auto&& visit)
  requires requires { std::remove_cvref_t<decltype(self)>::fields(self, visit); }
{
  std::remove_cvref_t<decltype(self)>::fields(self, visit);
}

template <class Self>
  requires std::same_as<std::remove_const_t<Self>, Amounts>
void fields_of(Self& self, auto&& visit) {
  visit("gpu_milli", self.gpu_milli);
  visit("cpu_milli", self.cpu_milli);
  visit("memory_bytes", self.memory_bytes);
}

template <class Self>
  requires std::same_as<std::remove_const_t<Self>, Claim>
void fields_of(Self& self, auto&& visit) {
  visit("gpus", self.gpus);
  visit("gpu_share_milli", self.gpu_share_milli);
  visit("gpu_memory_bytes", self.gpu_memory_bytes);
  visit("cpu_milli", self.cpu_milli);
  visit("memory_bytes", self.memory_bytes);
}

// --- writing

template <class T>
json written(const T& value);

json written(const base::Time& time) {
  constexpr int kNanoseconds = 9;
  return base::to_rfc3339(time, kNanoseconds);
}
json written(const std::chrono::milliseconds& duration) {
  return duration.count();
}
json written(const Phase& phase) {
  return to_string(phase);
}
template <class T>
json written(const std::optional<T>& value) {
  return value ? written(*value) : json();
}
template <class T>
json written(const std::vector<T>& values) {
  json list = json::array();
  for (const T& value : values) list.push_back(written(value));
  return list;
}
template <class... Alternatives>
json written(const std::variant<Alternatives...>& value) {
  return std::visit(
      []<class T>(const T& alternative) {
        json object = written(alternative);
        object["kind"] = T::kKind;
        return object;
      },
      value);
}

/// What is zero or empty is left out.
template <class T>
json written(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return record::name_in<T>({.schema = "", .values = names_of(value)}, value);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else {
    json object = json::object();
    fields_of(value, [&]<class Field>(std::string_view name, const Field& field) {
      bool is_told = true;
      if constexpr (!std::is_enum_v<Field>) is_told = !(field == Field{});
      if (is_told) object[std::string(name)] = written(field);
    });
    return object;
  }
}

// --- reading. What is wrong throws, and read_or_nothing() catches it.

base::Time time_in(const std::string& text) {
  // 2026-01-31T12:34:56.123456789Z
  constexpr size_t kLength = 30;
  if (text.size() != kLength) throw std::runtime_error("no time");
  const auto number = [&](size_t at, size_t count) {
    const auto value = base::number_of<int>(text.substr(at, count));
    if (!value) throw std::runtime_error("no time");
    return *value;
  };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  // Nanoseconds in 64 bits reach from 1677 to 2262.
  constexpr std::chrono::year kFirst(1700);
  constexpr std::chrono::year kLast(2200);
  if (!day.ok() || day.year() < kFirst || day.year() > kLast) throw std::runtime_error("no time");
  return base::Time(std::chrono::sys_days(day)) + std::chrono::hours(number(11, 2)) +
         std::chrono::minutes(number(14, 2)) + std::chrono::seconds(number(17, 2)) +
         std::chrono::nanoseconds(number(20, 9));
}

template <class T>
void read(const json& from, T& into);

void read(const json& from, base::Time& into) {
  into = time_in(from.get<std::string>());
}
void read(const json& from, std::chrono::milliseconds& into) {
  into = std::chrono::milliseconds(from.get<int64_t>());
}
void read(const json& from, Phase& into) {
  into = phase_of(from.get<std::string>()).value();
}
template <class T>
void read(const json& from, std::optional<T>& into) {
  read(from, into.emplace());
}
template <class T>
void read(const json& from, std::vector<T>& into) {
  if (!from.is_array()) throw std::runtime_error("no list");
  for (const json& each : from) read(each, into.emplace_back());
}
template <class... Alternatives>
void read(const json& from, std::variant<Alternatives...>& into) {
  const auto kind = from.at("kind").get<std::string>();
  const auto take = [&]<class T>(T alternative) {
    if (kind != T::kKind) return false;
    read(from, alternative);
    into = std::move(alternative);
    return true;
  };
  if (!(take(Alternatives{}) || ...)) throw std::runtime_error("unknown kind");
}

template <class T>
void read(const json& from, T& into) {
  if constexpr (std::is_enum_v<T>) {
    into = record::value_in<T>({.schema = "", .values = names_of(into)}, from.get<std::string>())
               .value();
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    from.get_to(into);
  } else {
    if (!from.is_object()) throw std::runtime_error("no object");
    fields_of(into, [&]<class Field>(std::string_view name, Field& field) {
      const auto found = from.find(std::string(name));
      if (found != from.end()) {
        read(*found, field);
      } else if constexpr (std::is_same_v<Field, bool>) {
        field = false;
      }
    });
  }
}

template <class T>
std::optional<T> read_or_nothing(const json& from) {
  try {
    T value{};
    read(from, value);
    return value;
  } catch (const std::exception&) {  // nlohmann's own, or those above
    return std::nullopt;
  }
}

}  // namespace

json to_json(const Fact& fact) {
  return written(fact);
}

json to_json(const Eviction& why) {
  return written(why);
}

json to_json(const FailureCause& cause) {
  return written(cause);
}

json to_json(const SlurmEnded& end) {
  return written(end);
}

json to_json(const JobRef& job) {
  return written(job);
}

json to_json(const Reason& reason) {
  json object = written(reason.what);
  if (reason.details.empty()) return object;
  json& details = object["details"] = json::array();
  for (const Detail& detail : reason.details) {
    json& added = details.emplace_back(written(detail.what));
    if (!detail.pool.empty()) added["in_pool"] = detail.pool;
  }
  return object;
}

std::optional<Fact> fact_of(const json& json) {
  return read_or_nothing<Fact>(json);
}

std::optional<Eviction> eviction_of(const json& json) {
  return read_or_nothing<Eviction>(json);
}

std::optional<FailureCause> failure_cause_of(const json& json) {
  return read_or_nothing<FailureCause>(json);
}

std::optional<SlurmEnded> slurm_ended_of(const json& json) {
  return read_or_nothing<SlurmEnded>(json);
}

std::optional<JobRef> job_ref_of(const json& json) {
  return read_or_nothing<JobRef>(json);
}

std::optional<Reason> reason_of(const json& json) {
  auto what = fact_of(json);
  if (!what) return std::nullopt;
  Reason reason(*std::move(what));
  const auto details = json.find("details");
  if (details == json.end() || !details->is_array()) return reason;
  for (const auto& each : *details) {
    auto detail = fact_of(each);
    if (!detail) return std::nullopt;
    const auto pool = each.find("in_pool");
    const bool has_pool = pool != each.end() && pool->is_string();
    reason.details.emplace_back(*std::move(detail),
                                has_pool ? pool->template get<std::string>() : std::string());
  }
  return reason;
}

std::string to_text(const json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster::job
