#include "job/job_facts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "job/pod_container.h"

namespace muster::job {

namespace {

using std::chrono::nanoseconds;

constexpr int64_t kNoTime = std::numeric_limits<int64_t>::min();

/// The texts behind a Head, in this order.
enum Text : size_t {
  kId,
  kName,
  kProject,
  kOwner,
  kOriginName,
  kOriginId,
  kLabels,    ///< name, value, name, value ...: append_text()
  kTrees,     ///< append_text()
  kSearched,  ///< JobFacts::searched_text()
  kRuns,      ///< pairs of int64_t
  kTextCount,
};

/// The beginning of packed facts: with the texts behind it, what every listing reads, in as few lines
/// of the processor's cache as possible. Times are nanoseconds since the epoch.
struct Head {
  int64_t submitted = 0;
  int64_t started = kNoTime;
  int64_t ended = kNoTime;
  int32_t attempt = 0;
  int32_t exit_code = 0;
  int32_t member = 0;
  uint8_t kind = 0;
  uint8_t phase = 0;
  uint8_t origin = 0;  ///< 0: none; else 1 + its kind
  bool has_exit_code = false;
  std::array<uint32_t, kTextCount> ends{};  ///< of the texts, from the first text
};

/// The rest, behind the texts.
struct Tail {
  int64_t first_event = 0;
  int64_t last_event = 0;
  int64_t keep_for_ms = kNoTime;
  int64_t gpu_milli = 0;
  HeldAmounts held;
  int32_t priority = 0;
  int32_t unused = 0;  ///< in place of padding: a store keeps these bytes
};

/// The bytes may lie at any address.
inline const Head& head_in(const char* packed, Head& copy) {
  std::memcpy(&copy, packed, sizeof(Head));
  return copy;
}

inline std::string_view packed_text(const Head& head, const char* packed, Text text) {
  const uint32_t begin = text == 0 ? 0 : head.ends[text - 1];
  return {packed + sizeof(Head) + begin, head.ends[text] - begin};
}

template <class Value>
Value value_in(const char* packed, size_t offset) {
  Value value;
  std::memcpy(&value, packed + offset, sizeof(Value));
  return value;
}

Tail tail_in(const char* packed) {
  constexpr size_t kLast = offsetof(Head, ends) + (kTextCount - 1) * sizeof(uint32_t);
  return value_in<Tail>(packed, sizeof(Head) + value_in<uint32_t>(packed, kLast));
}

/// One text, without reading the rest of the head.
std::string_view packed_text(const char* packed, Text text) {
  constexpr size_t kEnds = offsetof(Head, ends);
  const auto begin =
      text == 0 ? 0 : value_in<uint32_t>(packed, kEnds + (text - 1) * sizeof(uint32_t));
  const auto end = value_in<uint32_t>(packed, kEnds + text * sizeof(uint32_t));
  return {packed + sizeof(Head) + begin, end - begin};
}

int64_t number_of(Time time) {
  return nanoseconds(time.time_since_epoch()).count();
}

int64_t number_of(const std::optional<Time>& time) {
  return time ? number_of(*time) : kNoTime;
}

inline Time time_of(int64_t number) {
  return Time(nanoseconds(number));
}

inline std::optional<Time> maybe_time_of(int64_t number) {
  return number == kNoTime ? std::nullopt : std::optional(time_of(number));
}

void append_lower(std::string& text, std::string_view more) {
  const size_t begin = text.size();
  text += more;
  for (size_t i = begin; i < text.size(); ++i) {
    char& each = text[i];
    if (each >= 'A' && each <= 'Z') each = static_cast<char>(each + ('a' - 'A'));
  }
}

void append_searched(std::string& text, std::string_view id, const JobSpec& spec) {
  append_lower(text, spec.name);
  text += JobFacts::kTextEnd;
  append_lower(text, id);
  text += JobFacts::kTextEnd;
  for (const auto& [name, value] : spec.labels) {
    append_lower(text, name);
    text += '=';
    append_lower(text, value);
    text += JobFacts::kTextEnd;
  }
  for (const auto* const words : {&spec.command, &spec.arguments}) {
    for (const std::string& word : *words) {
      append_lower(text, word);
      text += JobFacts::kTextEnd;
    }
  }
}

/// Whether the fact ends the attempt before it.
bool ends_attempt(const Fact& fact) {
  if (const auto* const notice = std::get_if<Notice>(&fact)) {
    return notice->what == Notice::What::kSuspendedAndGone ||
           notice->what == Notice::What::kEvictedAndGone;
  }
  if (const auto* const evicted = std::get_if<Evicted>(&fact)) {
    return evicted->stage == Evicted::Stage::kWaitsAgain;
  }
  if (const auto* const reached = std::get_if<PhaseReached>(&fact)) return is_final(reached->phase);
  return std::holds_alternative<StartsAgain>(fact) ||
         std::holds_alternative<AttemptAbandoned>(fact);
}

int64_t gpu_milli_of_task(const Resources& resources) {
  if (resources.gpus == 0 && resources.gpu_memory_bytes > 0) return 1;
  return int64_t{resources.gpus} * 1000 + resources.gpu_share_milli;
}

/// In a list of texts, each is preceded by its length.
void append_text(std::string& list, std::string_view text) {
  const auto length = static_cast<uint32_t>(text.size());
  list.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
}

/// The next text of a list, which is removed from it.
std::string_view take_text(std::string_view& list) {
  const std::string_view text = list.substr(sizeof(uint32_t), value_in<uint32_t>(list.data(), 0));
  list.remove_prefix(sizeof(uint32_t) + text.size());
  return text;
}

}  // namespace

std::vector<RunSpan> run_spans(const Job& job) {
  std::vector<RunSpan> spans;
  std::optional<Time> begin;
  bool was_placed = false;
  for (const Event& event : job.events) {
    if (std::holds_alternative<Placed>(event.what)) {
      begin = begin.value_or(event.time);
      was_placed = true;
    } else if (begin && ends_attempt(event.what)) {
      const bool is_last = job.ended && std::holds_alternative<PhaseReached>(event.what);
      const Time end = is_last ? std::min(*job.ended, event.time) : event.time;
      spans.push_back({.begin = *begin, .end = std::max(*begin, end)});
      begin.reset();
    }
  }
  if (!was_placed) begin = job.started;
  if (begin) spans.push_back({.begin = *begin, .end = job.ended});
  return spans;
}

bool holds_place(const Task& task) {
  return !task.node.empty() && (!task.left || task.phase != TaskPhase::kEnded);
}

HeldAmounts held_by(const Job& job) {
  HeldAmounts held;
  for (const Task& task : job.tasks) {
    if (!holds_place(task)) continue;
    const Resources claim = claimed_by(job.spec, task.role);
    held.gpu_milli += static_cast<int64_t>(task.devices.size()) * task.gpu_share_milli;
    held.cpu_milli += claim.cpu_milli;
    held.memory_bytes += claim.memory_bytes;
  }
  return held;
}

int64_t gpu_milli_of(const JobSpec& spec) {
  const auto of = [&](TaskRole role) { return gpu_milli_of_task(resources_of(spec, role)); };
  switch (spec.kind) {
    case Kind::kSingle:
      return of(TaskRole::kSingle);
    case Kind::kMpi:
      return of(TaskRole::kWorker) * spec.workers + of(TaskRole::kLauncher);
    case Kind::kGrpc:
      return of(TaskRole::kChief) + of(TaskRole::kWorker) * spec.workers +
             of(TaskRole::kParameterServer) * spec.parameter_servers +
             of(TaskRole::kEvaluator) * spec.evaluators;
    case Kind::kTorch:
      return of(TaskRole::kMaster) + of(TaskRole::kWorker) * spec.workers;
  }
  return 0;
}

// --- facts

JobFacts facts_of(const JobSpec& spec) {
  return {.name = spec.name, .project = spec.project, .kind = spec.kind, .spec = &spec};
}

JobFacts facts_of(const Job& job) {
  JobFacts facts = facts_of(job.spec);
  facts.id = job.id;
  facts.owner = job.owner;
  facts.phase = job.phase;
  facts.submitted = job.submitted;
  facts.started = job.started;
  facts.ended = job.ended;
  if (job.origin) {
    facts.origin = OriginFacts{.kind = job.origin->kind,
                               .name = job.origin->name,
                               .id = job.origin->id,
                               .member = job.origin->member};
  }
  facts.attempt = job.attempt;
  facts.exit_code = job.exit_code;
  facts.suspended = job.suspended;
  facts.unreadable = job.unreadable;
  facts.job = &job;
  return facts;
}

std::string pack_facts(const Job& job) {
  Head head{.submitted = number_of(job.submitted),
            .started = number_of(job.started),
            .ended = number_of(job.ended),
            .attempt = job.attempt,
            .exit_code = job.exit_code.value_or(0),
            .kind = static_cast<uint8_t>(job.spec.kind),
            .phase = static_cast<uint8_t>(job.phase),
            .has_exit_code = job.exit_code.has_value()};
  const JobFacts whole = facts_of(job);
  Tail tail{.first_event = number_of(whole.first_event()),
            .last_event = number_of(whole.last_event()),
            .gpu_milli = gpu_milli_of(job.spec),
            .held = held_by(job),
            .priority = priority_of(job.spec.scheduling)};
  if (job.spec.keep_for) tail.keep_for_ms = job.spec.keep_for->count();
  if (job.origin) {
    head.origin = static_cast<uint8_t>(1 + static_cast<int>(job.origin->kind));
    head.member = job.origin->member;
  }
  std::string packed(sizeof(Head), '\0');
  size_t text = 0;
  const auto end_text = [&] {
    head.ends[text++] = static_cast<uint32_t>(packed.size() - sizeof(Head));
  };
  const JobOrigin no_origin;
  const JobOrigin& origin = job.origin ? *job.origin : no_origin;
  for (const std::string* const each :
       {&job.id, &job.spec.name, &job.spec.project, &job.owner, &origin.name, &origin.id}) {
    packed += *each;
    end_text();
  }
  for (const auto& [name, value] : job.spec.labels) {
    append_text(packed, name);
    append_text(packed, value);
  }
  end_text();
  whole.each_tree([&](std::string_view id) { append_text(packed, id); });
  end_text();
  append_searched(packed, job.id, job.spec);
  end_text();
  for (const RunSpan& span : run_spans(job)) {
    for (const int64_t number : {number_of(span.begin), number_of(span.end)}) {
      packed.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
  }
  end_text();
  std::memcpy(packed.data(), &head, sizeof(Head));
  packed.append(reinterpret_cast<const char*>(&tail), sizeof tail);
  return packed;
}

JobFacts facts_in(const char* packed) {
  Head copy;
  const Head& head = head_in(packed, copy);
  JobFacts facts{.id = packed_text(head, packed, kId),
                 .name = packed_text(head, packed, kName),
                 .project = packed_text(head, packed, kProject),
                 .owner = packed_text(head, packed, kOwner),
                 .kind = static_cast<Kind>(head.kind),
                 .phase = static_cast<Phase>(head.phase),
                 .submitted = time_of(head.submitted),
                 .started = maybe_time_of(head.started),
                 .ended = maybe_time_of(head.ended),
                 .attempt = head.attempt,
                 .packed = packed,
                 .packed_labels = packed_text(head, packed, kLabels),
                 .packed_search = packed_text(head, packed, kSearched)};
  if (head.has_exit_code) facts.exit_code = head.exit_code;
  if (head.origin != 0) {
    facts.origin = OriginFacts{.kind = static_cast<JobOrigin::Kind>(head.origin - 1),
                               .name = packed_text(head, packed, kOriginName),
                               .id = packed_text(head, packed, kOriginId),
                               .member = head.member};
  }
  return facts;
}

size_t packed_size(const char* packed) {
  return sizeof(Head) + sizeof(Tail) +
         value_in<uint32_t>(packed, offsetof(Head, ends) + (kTextCount - 1) * sizeof(uint32_t));
}

PackedNames names_in(const char* packed) {
  return {.id = packed_text(packed, kId),
          .name = packed_text(packed, kName),
          .project = packed_text(packed, kProject)};
}

// --- facts at hand

FactsAtHand::FactsAtHand(const char* packed, const std::string& project, const std::string& owner) {
  Head copy;
  const Head& head = head_in(packed, copy);
  if (head.ends[kSearched] > std::numeric_limits<Size>::max()) return;
  const auto size_of = [&](Text text) {
    return static_cast<Size>(packed_text(head, packed, text).size());
  };
  project_ = &project;
  owner_ = &owner;
  id_size_ = size_of(kId);
  name_size_ = size_of(kName);
  origin_name_size_ = size_of(kOriginName);
  origin_id_size_ = size_of(kOriginId);
  labels_begin_ = static_cast<Size>(head.ends[kLabels - 1]);
  trees_begin_ = static_cast<Size>(head.ends[kTrees - 1]);
  searched_begin_ = static_cast<Size>(head.ends[kSearched - 1]);
  searched_end_ = static_cast<Size>(head.ends[kSearched]);
  has_exit_code_ = head.has_exit_code;
  origin_ = head.origin;
  submitted_ = head.submitted;
  started_ = head.started;
  ended_ = head.ended;
  attempt_ = head.attempt;
  exit_code_ = head.exit_code;
  member_ = head.member;
  kind_ = head.kind;
  phase_ = head.phase;
}

JobFacts FactsAtHand::facts(const char* packed) const {
  const char* const texts = packed + sizeof(Head);
  const auto between = [texts](size_t begin, size_t end) {
    return std::string_view(texts + begin, end - begin);
  };
  const size_t names = id_size_ + size_t{name_size_};
  JobFacts facts{.id = between(0, id_size_),
                 .name = between(id_size_, names),
                 .project = *project_,
                 .owner = *owner_,
                 .kind = static_cast<Kind>(kind_),
                 .phase = static_cast<Phase>(phase_),
                 .submitted = time_of(submitted_),
                 .started = maybe_time_of(started_),
                 .ended = maybe_time_of(ended_),
                 .attempt = attempt_,
                 .packed = packed,
                 .packed_labels = between(labels_begin_, trees_begin_),
                 .packed_search = between(searched_begin_, searched_end_)};
  if (has_exit_code_) facts.exit_code = exit_code_;
  if (origin_ != 0) {
    const size_t origin_name = names + project_->size() + owner_->size();
    const size_t origin_id = origin_name + origin_name_size_;
    facts.origin = OriginFacts{.kind = static_cast<JobOrigin::Kind>(origin_ - 1),
                               .name = between(origin_name, origin_id),
                               .id = between(origin_id, origin_id + origin_id_size_),
                               .member = member_};
  }
  return facts;
}

PackedNames FactsAtHand::names(const char* packed) const {
  const char* const texts = packed + sizeof(Head);
  return {.id = {texts, id_size_}, .name = {texts + id_size_, name_size_}, .project = *project_};
}

void FactsAtHand::read_ahead(const char* packed, FactTexts texts) const {
  constexpr size_t kLine = 64;
  const auto fetch = [packed](size_t begin, size_t end) {
    for (size_t at = begin; at < end; at += kLine) __builtin_prefetch(packed + at);
    if (end > begin) __builtin_prefetch(packed + end - 1);
  };
  constexpr size_t kTexts = sizeof(Head);
  switch (texts) {
    case FactTexts::kNone:
      return;
    case FactTexts::kName:
      return fetch(kTexts, kTexts + id_size_ + name_size_);
    case FactTexts::kLabels:
      return fetch(kTexts + labels_begin_, kTexts + trees_begin_);
    case FactTexts::kSearched:
      return fetch(kTexts + searched_begin_, kTexts + searched_end_);
    case FactTexts::kAll:
      return fetch(0, kTexts + labels_begin_);
  }
}

bool is_member(const JobFacts& job) {
  return job.origin && (job.origin->kind == JobOrigin::Kind::kArray ||
                        job.origin->kind == JobOrigin::Kind::kSweep);
}

int JobFacts::priority() const {
  return packed != nullptr ? tail_in(packed).priority : priority_of(spec->scheduling);
}

int64_t JobFacts::gpu_milli() const {
  return packed != nullptr ? tail_in(packed).gpu_milli : gpu_milli_of(*spec);
}

bool JobFacts::has_labels() const {
  return packed != nullptr ? !packed_labels.empty() : !spec->labels.empty();
}

std::optional<std::string_view> JobFacts::label(std::string_view key) const {
  if (packed == nullptr) {
    if (spec->labels.empty()) return std::nullopt;
    const auto found = spec->labels.find(std::string(key));
    if (found == spec->labels.end()) return std::nullopt;
    return found->second;
  }
  std::string_view labels = packed_labels;
  while (!labels.empty()) {
    const std::string_view each = take_text(labels);
    const std::string_view value = take_text(labels);
    if (each == key) return value;
  }
  return std::nullopt;
}

std::string_view JobFacts::searched_text(std::string& scratch) const {
  if (packed != nullptr) return packed_search;
  scratch.clear();
  append_searched(scratch, id, *spec);
  return scratch;
}

Time JobFacts::first_event() const {
  if (packed != nullptr) return time_of(tail_in(packed).first_event);
  return job == nullptr || job->events.empty() ? Time() : job->events.front().time;
}

Time JobFacts::last_event() const {
  if (packed != nullptr) return time_of(tail_in(packed).last_event);
  return job == nullptr || job->events.empty() ? Time() : job->events.back().time;
}

std::optional<std::chrono::milliseconds> JobFacts::keep_for() const {
  if (packed == nullptr) return spec->keep_for;
  const auto number = tail_in(packed).keep_for_ms;
  if (number == kNoTime) return std::nullopt;
  return std::chrono::milliseconds(number);
}

HeldAmounts JobFacts::held() const {
  if (packed != nullptr) return tail_in(packed).held;
  return job == nullptr ? HeldAmounts() : held_by(*job);
}

void JobFacts::each_run(const std::function<void(const RunSpan&)>& visit) const {
  if (packed == nullptr) {
    if (job == nullptr) return;
    for (const RunSpan& span : run_spans(*job)) visit(span);
    return;
  }
  const std::string_view runs = packed_text(packed, kRuns);
  for (size_t at = 0; at < runs.size(); at += 2 * sizeof(int64_t)) {
    visit({.begin = time_of(value_in<int64_t>(runs.data(), at)),
           .end = maybe_time_of(value_in<int64_t>(runs.data(), at + sizeof(int64_t)))});
  }
}

void JobFacts::each_tree(const std::function<void(std::string_view id)>& visit) const {
  if (packed == nullptr) {
    for (const Volume& volume : spec->volumes) {
      if (volume.kind == Volume::Kind::kTree && !volume.source.empty()) visit(volume.source);
    }
    return;
  }
  std::string_view trees = packed_text(packed, kTrees);
  while (!trees.empty()) visit(take_text(trees));
}

}  // namespace muster::job
