// One array in the memory of the server: its members, and the counts that follow from their states.
//
// Pure. Thread-safety: none needed, an array has one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "job/array.h"
#include "store/store.h"

namespace muster::control {

using job::ArrayRecord;
using job::ArrayState;

inline constexpr const char* kArrayKind = "array";
inline constexpr const char* kArrayStateKind = "array-state";

/// The two objects of an array in the store.
store::Object array_object(const ArrayRecord& record);
store::Object array_state_object(const ArrayRecord& record, const ArrayState& state);

/// The letter of an ended member in ArrayState::results; its phase, or nothing for other letters.
char letter_of(job::Phase phase);
std::optional<job::Phase> phase_of_letter(char letter);
/// The other letters in ArrayState::results.
inline constexpr char kNoResult = '.';   ///< has not ended, or its job has the result
inline constexpr char kRunsAgain = 'A';  ///< its job has ended, and the member waits for a new one

/// What names, rights and lists need of an array, without copies: valid until the array changes.
struct ArrayFacts {
  const ArrayRecord& record;  ///< without lines
  const ArrayState& state;
  const job::MemberCounts& counts;
  std::optional<base::Time> ended;  ///< of the last member, once all have ended
  const std::vector<int>& indexes;

  job::Phase phase() const { return job::phase_of_array(counts); }
};

struct HeldArray {
  /// How many members wait as jobs.
  static constexpr int kWindow = 64;

  enum class Where : uint8_t {
    kNew,    ///< has no job yet
    kMade,   ///< its job is not committed yet
    kJob,    ///< has a job
    kAgain,  ///< has an ended job, and shall have another
    kGone,   ///< has ended, and has no job
  };
  /// Four bytes, because a server holds millions of members.
  struct Member {
    Where where : 8 = Where::kNew;
    job::Phase phase : 8 = job::Phase::kQueued;
    int16_t code = 0;
  };
  static_assert(sizeof(Member) == 4);

  ArrayRecord record;              ///< without lines
  std::vector<std::string> lines;  ///< one for each member, or empty
  ArrayState state;
  std::vector<int> indexes;
  std::vector<Member> members;
  job::MemberCounts counts;
  int jobs = 0;                    ///< that have not ended
  int queued_jobs = 0;             ///< of these, in phase Queued
  size_t next = 0;                 ///< all members before it have jobs, or have ended
  std::optional<base::Time> last;  ///< end of a member until now

  /// As loaded from the store, or new: no member has a job yet.
  HeldArray(ArrayRecord stored, ArrayState stored_state);

  job::JobSpec spec_of(size_t position) const;
  /// Whether another member may become a job now.
  bool may_make_job() const;
  bool has_ended() const { return counts.ended() == counts.all(); }
  ArrayFacts facts() const;
  /// The positions of the first members that failed, or that were stopped apart from the array. At
  /// most `most`. An array without such members costs nothing, whatever its size.
  std::vector<size_t> first_failed(size_t most) const;
  int max_running() const { return state.max_running.value_or(record.spec.array.max_running); }
  std::optional<int> max_failures() const {
    return state.max_failures ? state.max_failures : record.spec.array.max_failures;
  }

  /// Nothing: there is no such index.
  std::optional<size_t> position_of(int index) const;

  /// The only place where a member changes: the counts follow.
  void set(size_t position, Where where, job::Phase phase);

  /// The letter of a member in the stored results.
  char letter(size_t position) const {
    return position < state.results.size() ? state.results[position] : kNoResult;
  }
  void set_letter(size_t position, char letter);
  void set_code(size_t position, int code);

 private:
  static bool is_active_job(const Member& member);
};

}  // namespace muster::control
