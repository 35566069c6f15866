#include "job/fact_json.h"

#include <array>
#include <concepts>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "record/rfc3339.h"
#include "record/words.h"

namespace muster::job {

namespace {

using record::JsonWriter;
using record::Value;

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
    {{Evicted::Stage::kNotified, "told_so"},
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
constexpr std::array<record::Named<Wait>, 11> kWaitNames{{{Wait::kToBeSent, "to_be_sent"},
                                                          {Wait::kUnsure, "unsure"},
                                                          {Wait::kSent, "sent"},
                                                          {Wait::kPending, "pending"},
                                                          {Wait::kCompleting, "completing"},
                                                          {Wait::kSuspended, "suspended"},
                                                          {Wait::kConfiguring, "configuring"},
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

constexpr std::array<record::Named<Limit>, 4> kLimitNames{{{Limit::kMemory, "memory"},
                                                           {Limit::kProcesses, "processes"},
                                                           {Limit::kScratch, "scratch"},
                                                           {Limit::kFileSize, "file_size"}}};

using Abandoned = AttemptAbandoned::Why;
constexpr std::array<record::Named<Abandoned>, 7> kAbandonedNames{
    {{Abandoned::kPortTaken, "port_taken"},
     {Abandoned::kNamesTaken, "names_taken"},
     {Abandoned::kEngineAway, "engine_away"},
     {Abandoned::kNodeGone, "node_gone"},
     {Abandoned::kNodeSilent, "node_silent"},
     {Abandoned::kNodeChanged, "node_changed"},
     {Abandoned::kServerRestarted, "server_restarted"}}};

using PodCause = PodEnd::Cause;
constexpr std::array<record::Named<PodCause>, 11> kPodEndNames{
    {{PodCause::kEnded, "ended"},
     {PodCause::kEvicted, "evicted"},
     {PodCause::kPreempted, "preempted"},
     {PodCause::kQueueEvicted, "queue_evicted"},
     {PodCause::kDrained, "drained"},
     {PodCause::kTainted, "tainted"},
     {PodCause::kShutDown, "shut_down"},
     {PodCause::kDeleted, "deleted"},
     {PodCause::kNodeLost, "node_lost"},
     {PodCause::kNotAdmitted, "not_admitted"},
     {PodCause::kDeadline, "deadline"}}};

using PodStage = KubernetesWaits::Stage;
constexpr std::array<record::Named<PodStage>, 8> kPodStageNames{
    {{PodStage::kToBeCreated, "to_be_created"},
     {PodStage::kUnschedulable, "unschedulable"},
     {PodStage::kImage, "image"},
     {PodStage::kCreating, "creating"},
     {PodStage::kInitContainer, "init_container"},
     {PodStage::kStarting, "starting"},
     {PodStage::kConnecting, "connecting"},
     {PodStage::kAway, "away"}}};

constexpr std::array<record::Named<Dependency::Condition>, 3> kConditionNames{
    {{Dependency::Condition::kOk, "ok"},
     {Dependency::Condition::kAny, "any"},
     {Dependency::Condition::kFailed, "failed"}}};

const auto& names_of(Dependency::Condition) {
  return kConditionNames;
}
const auto& names_of(PodCause) {
  return kPodEndNames;
}
const auto& names_of(PodStage) {
  return kPodStageNames;
}
const auto& names_of(How) {
  return kHowNames;
}
const auto& names_of(Limit) {
  return kLimitNames;
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
void write_value(JsonWriter& json, const T& value);

void write_value(JsonWriter& json, const base::Time& time) {
  json.time(time);
}
void write_value(JsonWriter& json, const std::chrono::milliseconds& duration) {
  json.number(duration.count());
}
void write_value(JsonWriter& json, const Phase& phase) {
  json.prose(to_string(phase));
}
void write_value(JsonWriter& json, const std::string& text) {
  json.prose(text);
}
template <class T>
void write_value(JsonWriter& json, const std::optional<T>& value) {
  if (value) {
    write_value(json, *value);
  } else {
    json.null();
  }
}
template <class T>
void write_value(JsonWriter& json, const std::vector<T>& values) {
  json.open('[');
  for (const T& value : values) write_value(json, value);
  json.close(']');
}

/// Omits zero and empty values.
void write_members(JsonWriter& json, const auto& value) {
  fields_of(value, [&]<class Field>(std::string_view name, const Field& field) {
    bool is_written = true;
    if constexpr (!std::is_enum_v<Field>) is_written = !(field == Field{});
    if (!is_written) return;
    json.key(name);
    write_value(json, field);
  });
}

template <class... Alternatives>
void write_members(JsonWriter& json, const std::variant<Alternatives...>& value) {
  std::visit(
      [&]<class T>(const T& alternative) {
        json.key("kind").prose(T::kKind);
        write_members(json, alternative);
      },
      value);
}

template <class T>
void write_value(JsonWriter& json, const T& value) {
  if constexpr (std::is_enum_v<T>) {
    json.prose(record::name_in<T>({.schema = "", .values = names_of(value)}, value));
  } else if constexpr (std::is_same_v<T, bool>) {
    json.flag(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    json.real(value);
  } else if constexpr (std::is_integral_v<T>) {
    json.number(static_cast<int64_t>(value));
  } else {
    json.open('{');
    write_members(json, value);
    json.close('}');
  }
}

// --- reading. Invalid input throws, and read_or_nothing() catches the exception.

void require(bool is_right) {
  if (!is_right) throw std::runtime_error("a fact with a field of a wrong type");
}

std::string_view text_in(const Value& from) {
  require(from.is_text());
  return from.text();
}
int64_t integer_in(const Value& from) {
  require(from.is_integer());
  return from.integer();
}

template <class T>
void read(const Value& from, T& into);
template <class... Alternatives>
void read(const Value& from, std::variant<Alternatives...>& into);
void read(const Value& from, AllocationEnd& into);

void read(const Value& from, base::Time& into) {
  into = record::parse_rfc3339(text_in(from)).value();
}
void read(const Value& from, std::chrono::milliseconds& into) {
  into = std::chrono::milliseconds(integer_in(from));
}
void read(const Value& from, Phase& into) {
  into = phase_of(text_in(from)).value();
}
void read(const Value& from, std::string& into) {
  into = text_in(from);
}
void read(const Value& from, bool& into) {
  require(from.is_flag());
  into = from.flag();
}
template <class T>
void read(const Value& from, std::optional<T>& into) {
  read(from, into.emplace());
}
template <class T>
void read(const Value& from, std::vector<T>& into) {
  require(from.is_list());
  for (const Value& each : from) read(each, into.emplace_back());
}
template <class... Alternatives>
void read(const Value& from, std::variant<Alternatives...>& into) {
  const Value* kind = from.find("kind");
  require(kind != nullptr);
  const auto take = [&]<class T>(std::type_identity<T>) {
    if (text_in(*kind) != T::kKind) return false;
    read(from, into.template emplace<T>());
    return true;
  };
  require((take(std::type_identity<Alternatives>{}) || ...));
}

/// Only Slurm ended allocations when their ends were stored without a kind.
void read(const Value& from, AllocationEnd& into) {
  if (from.find("kind") == nullptr) return read(from, into.emplace<SlurmEnded>());
  read<SlurmEnded, KubernetesEnded>(from, into);
}

template <class T>
void read(const Value& from, T& into) {
  if constexpr (std::is_enum_v<T>) {
    into = record::value_in<T>({.schema = "", .values = names_of(into)}, text_in(from)).value();
  } else if constexpr (std::is_integral_v<T>) {
    const int64_t number = integer_in(from);
    require(std::in_range<T>(number));
    into = static_cast<T>(number);
  } else {
    require(from.is_object());
    fields_of(into, [&]<class Field>(std::string_view name, Field& field) {
      if (const Value* found = from.find(name)) {
        read(*found, field);
      } else if constexpr (std::is_same_v<Field, bool>) {
        field = false;
      }
    });
  }
}

template <class T>
std::optional<T> read_or_nothing(const Value& from) {
  try {
    T value{};
    read(from, value);
    return value;
  } catch (const std::exception&) {  // from require(), or because of a value of a wrong type
    return std::nullopt;
  }
}

}  // namespace

record::Words<Limit> words_of(const Limit*) {
  return {.schema = "Limit", .values = kLimitNames};
}

record::Words<PodEnd::Cause> words_of(const PodEnd::Cause*) {
  return {.schema = "PodEndCause", .values = kPodEndNames};
}

void write_data(JsonWriter& json, const Fact& fact) {
  write_value(json, fact);
}

void write_data(JsonWriter& json, const Eviction& why) {
  write_value(json, why);
}

void write_data(JsonWriter& json, const FailureCause& cause) {
  write_value(json, cause);
}

void write_data(JsonWriter& json, const AllocationEnd& end) {
  write_value(json, end);
}

void write_data(JsonWriter& json, const JobRef& job) {
  write_value(json, job);
}

void write_data(JsonWriter& json, const Reason& reason) {
  json.open('{');
  write_members(json, reason.what);
  if (!reason.details.empty()) {
    json.key("details").open('[');
    for (const Detail& detail : reason.details) {
      json.open('{');
      write_members(json, detail.what);
      if (!detail.pool.empty()) json.key("in_pool").prose(detail.pool);
      json.close('}');
    }
    json.close(']');
  }
  json.close('}');
}

std::optional<Fact> fact_of(const Value& data) {
  return read_or_nothing<Fact>(data);
}

std::optional<Eviction> eviction_of(const Value& data) {
  return read_or_nothing<Eviction>(data);
}

std::optional<FailureCause> failure_cause_of(const Value& data) {
  return read_or_nothing<FailureCause>(data);
}

std::optional<AllocationEnd> allocation_end_of(const Value& data) {
  return read_or_nothing<AllocationEnd>(data);
}

std::optional<JobRef> job_ref_of(const Value& data) {
  return read_or_nothing<JobRef>(data);
}

std::optional<Reason> reason_of(const Value& data) {
  auto what = fact_of(data);
  if (!what) return std::nullopt;
  Reason reason(*std::move(what));
  const Value* details = data.find("details");
  if (details == nullptr || !details->is_list()) return reason;
  for (const Value& each : *details) {
    auto detail = fact_of(each);
    if (!detail) return std::nullopt;
    const Value* pool = each.find("in_pool");
    const bool has_pool = pool != nullptr && pool->is_text();
    reason.details.emplace_back(*std::move(detail),
                                std::string(has_pool ? pool->text() : std::string_view()));
  }
  return reason;
}

}  // namespace muster::job
