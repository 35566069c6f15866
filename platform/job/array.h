// An array: many jobs from one spec, which differ in their index and their line. A member is an
// ordinary job with the name "train-17"; for people it is "train[17]".
//
// A member gets these variables:
//
//   MUSTER_ARRAY_INDEX   its index
//   MUSTER_ARRAY_COUNT   the number of members
//   MUSTER_ARRAY_MIN     the smallest index
//   MUSTER_ARRAY_MAX     the largest index
//   MUSTER_ARRAY_LINE    its line, if the array has lines
//   MUSTER_ITEM_LR       the field `lr` of its line, if the line is a JSON object: text without its
//                        quotes, everything else as it is written, null as empty text. In the name,
//                        letters are upper case, and every other character except digits is '_'.
//                        Two fields with the same variable are a fault.
//
// Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/checker.h"
#include "job/job.h"
#include "record/table.h"
#include "record/words.h"

namespace muster::job {

inline constexpr int kMostMembers = 100'000;
inline constexpr int kLargestIndex = 9'999'999;

/// The elements of a JSON array, or the members of an object ("key":value), as they are written
/// but without blanks outside of texts: numbers keep all their digits. `json` is such a value.
std::vector<std::string> parts_of_json(std::string_view json);

/// The indexes of an array, ascending. `text` has numbers and ranges, ascending: "0-99",
/// "1,3,5-7", "0-20:5". kInvalid: what is wrong with the text.
base::Result<std::vector<int>> indexes_of(std::string_view text);
/// The same of a spec: without indexes, one for each of the lines, from 0.
base::Result<std::vector<int>> indexes_of(const ArraySpec& array);

/// "0-99%8": the indexes, and the most members that run at the same time. kInvalid: what is wrong
/// with the text.
base::Result<ArraySpec> array_of(std::string_view text);

/// Faults of `array`, and of fields that an array cannot have.
void check_array(const JobSpec& spec, Checker& check);

std::string member_name(std::string_view array, int index);   ///< "train-17"
std::string member_title(std::string_view array, int index);  ///< "train[17]"

struct MemberName {
  std::string array;
  int index = 0;

  bool operator==(const MemberName&) const = default;
};
/// "train[17]" or "train-17" as a member of array "train"; nothing: the text has another form.
std::optional<MemberName> member_of(std::string_view name);

/// The spec of the member at `position` of `indexes`, which are those of spec.array. A dependency
/// by member names the other member: "prepare-17".
JobSpec member_spec(const JobSpec& spec, const std::vector<int>& indexes, size_t position);
/// The same for a spec without lines, whose copy is cheap. `line`: of the member; nullptr: none.
JobSpec member_spec(const JobSpec& spec, const std::vector<int>& indexes, size_t position,
                    const std::string* line);

/// The number of members in each phase.
struct MemberCounts {
  int queued = 0;
  int starting = 0;
  int running = 0;
  int succeeded = 0;
  int failed = 0;
  int stopped = 0;

  int ended() const { return succeeded + failed + stopped; }
  int all() const { return queued + starting + running + ended(); }
  bool operator==(const MemberCounts&) const = default;
};

/// The number of members or jobs in `phase`, of counts that have a number for each phase.
auto& count_of_phase(auto& counts, Phase phase) {
  switch (phase) {
    case Phase::kStarting:
      return counts.starting;
    case Phase::kRunning:
      return counts.running;
    case Phase::kSucceeded:
      return counts.succeeded;
    case Phase::kFailed:
      return counts.failed;
    case Phase::kStopped:
      return counts.stopped;
    case Phase::kQueued:
      break;
  }
  return counts.queued;
}

/// A member that failed or was stopped.
struct MemberEnd {
  int index = 0;
  std::string job;  ///< its id; empty: the job is no longer kept
  Phase phase = Phase::kFailed;
  std::optional<int> exit_code;
  std::string reason;  ///< a sentence; made when it is sent

  bool operator==(const MemberEnd&) const = default;
};

/// An array as callers see it.
struct Array {
  std::string id;  ///< never reused
  JobSpec spec;    ///< of all members, with the array; sent without its lines
  std::string owner;
  base::Time submitted;
  std::optional<base::Time> ended;  ///< of the last member, once all have ended
  /// kQueued: no member has started. kFailed: all have ended, and at least one failed. kStopped:
  /// none failed, and at least one was stopped.
  Phase phase = Phase::kQueued;
  MemberCounts counts;
  int percent = 0;  ///< of the members that have ended, rounded down
  bool stop_requested = false;
  bool too_many_failures = false;  ///< it was stopped because of max_failures
  bool suspended = false;
  std::vector<MemberEnd> failed;  ///< the first members that failed, in the order of their indexes

  bool operator==(const Array&) const = default;
};

/// The stored part of an array that never changes.
struct ArrayRecord {
  std::string id;
  JobSpec spec;
  std::string owner;
  base::Time submitted;
  std::string idempotency_key;

  bool operator==(const ArrayRecord&) const = default;
};

/// The stored part of an array that changes.
struct ArrayState {
  bool stop_requested = false;
  bool too_many_failures = false;
  bool suspended = false;
  bool removing = false;
  bool end_reported = false;        ///< its end was handed to notifications; false after a rerun
  std::optional<int> max_running;   ///< instead of the spec's
  std::optional<int> max_failures;  ///< instead of the spec's
  /// A letter for each member: '.' the state is that of its job, or it has no job yet; 'S', 'F',
  /// 'T' it succeeded, failed or was stopped, and its job is gone; 'A' its ended job is replaced by
  /// another. Empty: '.' for all.
  std::string results;
  std::vector<int> exit_codes;     ///< of members in `results`: position, code, position, code ...
  std::optional<base::Time> last;  ///< when the last of the members in `results` ended
  /// What all members wait for, one for each of spec.after; as Job::awaited. Without an id: each member
  /// looks its own up. Empty: an array of an earlier version, or one that waits for nothing.
  std::vector<AwaitedJob> awaited;

  bool operator==(const ArrayState&) const = default;
};

const record::Table& table_of(const ArrayRecord*);
const record::Table& table_of(const ArrayState*);

const record::Table& table_of(const MemberCounts*);
const record::Table& table_of(const MemberEnd*);
const record::Table& table_of(const Array*);

/// Queued, Running, Succeeded, Failed or Stopped, from the members.
Phase phase_of_array(const MemberCounts& counts);

}  // namespace muster::job
