// The data of a job that listings, counts and rules read, without its tasks, events and spec. A
// server has a million ended jobs, of which it keeps these facts at hand and the rest as a
// compressed document (store/packed_job.h).
//
// JobFacts is a view: of a Job, of an object that is listed like a job, or of packed facts, and is
// valid as long as those are unchanged. The three give the same answers.
//
// Plain values. Thread-safe as a value is.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/job.h"

namespace muster::job {

/// JobOrigin, as a view.
struct OriginFacts {
  JobOrigin::Kind kind = JobOrigin::Kind::kRerun;
  std::string_view name;
  std::string_view id;
  int member = 0;
};

/// From the placement of an attempt to its end; without an end, the attempt runs.
struct RunSpan {
  Time begin;
  std::optional<Time> end;

  bool operator==(const RunSpan&) const = default;
};
/// The attempts of a job, in order. Without the event of a placement, which a long history has
/// dropped, the job counts as having run since it entered Running. The last attempt ends when the job
/// ended, which a server that was down meanwhile has noted later.
std::vector<RunSpan> run_spans(const Job& job);

/// The resources of the placed tasks of a job, now or at its end.
struct HeldAmounts {
  int64_t gpu_milli = 0;
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;

  bool operator==(const HeldAmounts&) const = default;
};
HeldAmounts held_by(const Job& job);

/// Whether the task was placed, and has not both left and ended.
bool holds_place(const Task& task);

/// Thousandths of a GPU that all tasks of a job request. A request for GPU memory counts as 1.
int64_t gpu_milli_of(const JobSpec& spec);

struct JobFacts {
  std::string_view id;
  std::string_view name;
  std::string_view project;
  std::string_view owner;
  Kind kind = Kind::kSingle;
  Phase phase = Phase::kQueued;
  Time submitted;
  std::optional<Time> started;
  std::optional<Time> ended;
  std::optional<OriginFacts> origin;
  int attempt = 0;
  std::optional<int> exit_code;
  bool suspended = false;
  bool unreadable = false;
  /// False: a schedule. Only queries for all phases, or for all that have not ended, find it, and it
  /// is not counted in a phase.
  bool has_phase = true;

  // Where the rest is; exactly one is set, or `spec` and `job`.
  const JobSpec* spec = nullptr;
  const Job* job = nullptr;
  const char* packed = nullptr;
  // Of packed facts.
  std::string_view packed_labels;
  std::string_view packed_search;

  int priority() const;       ///< in force
  int64_t gpu_milli() const;  ///< as gpu_milli_of()
  /// Nothing: it has no such label.
  std::optional<std::string_view> label(std::string_view key) const;
  bool has_labels() const;
  /// The texts that a search reads, in lower case, each behind kTextEnd: name, id, "label=value" and
  /// the words of the command. `scratch` may be used for the result.
  std::string_view searched_text(std::string& scratch) const;
  static constexpr char kTextEnd = '\n';

  // Of a job only.

  Time first_event() const;  ///< the epoch: it has no events
  Time last_event() const;   ///< the same
  std::optional<std::chrono::milliseconds> keep_for() const;
  HeldAmounts held() const;
  void each_run(const std::function<void(const RunSpan&)>& visit) const;
  /// The ids of the uploaded file trees that its volumes use.
  void each_tree(const std::function<void(std::string_view id)>& visit) const;
};

/// Whether an array or a sweep has made the job.
bool is_member(const JobFacts& job);

JobFacts facts_of(const Job& job);
/// The facts of an object that is listed like a job: what the spec contains. The caller adds the
/// rest.
JobFacts facts_of(const JobSpec& spec);

/// The facts of an ended job as bytes, which facts_in() reads at any address.
std::string pack_facts(const Job& job);
/// Changes with the layout of these bytes and with the meaning of any of them: a store keeps them, and
/// reads those of its own release only.
inline constexpr uint32_t kPackedFactsVersion = 1;
/// `packed` points to the result of pack_facts().
JobFacts facts_in(const char* packed);
/// The number of bytes at `packed`.
size_t packed_size(const char* packed);

/// The names of a packed job. Cheaper than facts_in().
struct PackedNames {
  std::string_view id;
  std::string_view name;
  std::string_view project;
};
PackedNames names_in(const char* packed);

/// Which texts of packed facts to prefetch. Projects and owners are at hand without that.
enum class FactTexts : uint8_t { kNone, kName, kLabels, kSearched, kAll };

/// A copy of what a listing reads of every packed job: the numbers, and the sizes of the texts. Packed
/// facts lie all over the memory of a server, and a processor waits for each; the copies lie side by
/// side.
class FactsAtHand {
 public:
  /// Empty.
  FactsAtHand() = default;
  /// `project`, `owner`: equal to those of the job; they must outlive this. Empty, if the texts exceed
  /// 64 KiB.
  FactsAtHand(const char* packed, const std::string& project, const std::string& owner);

  explicit operator bool() const { return project_ != nullptr; }

  // REQUIRES: not empty. `packed`: as for the constructor, or a copy of it.

  /// As facts_in() and names_in(), without reading anything at `packed`.
  JobFacts facts(const char* packed) const;
  PackedNames names(const char* packed) const;
  /// Prefetches `texts` into the processor's cache.
  void read_ahead(const char* packed, FactTexts texts) const;

 private:
  using Size = uint16_t;

  const std::string* project_ = nullptr;
  const std::string* owner_ = nullptr;
  Size id_size_ = 0;
  Size name_size_ = 0;
  Size origin_name_size_ = 0;
  Size origin_id_size_ = 0;
  Size labels_begin_ = 0;  ///< from the first text
  Size trees_begin_ = 0;
  Size searched_begin_ = 0;
  Size searched_end_ = 0;
  bool has_exit_code_ = false;
  uint8_t origin_ = 0;  ///< 0: none; else 1 + its kind
  uint8_t kind_ = 0;
  uint8_t phase_ = 0;
  int32_t attempt_ = 0;
  int32_t exit_code_ = 0;
  int32_t member_ = 0;
  int64_t submitted_ = 0;
  int64_t started_ = 0;
  int64_t ended_ = 0;
};
static_assert(sizeof(FactsAtHand) == 72, "a server has a million of them");

}  // namespace muster::job
