#include "control/array_members.h"

#include <algorithm>
#include <utility>

#include "store/records.h"

namespace muster::control {

using job::Phase;

store::Object array_object(const ArrayRecord& record) {
  return {.kind = kArrayKind,
          .id = record.id,
          .project = record.spec.project,
          .name = record.spec.name,
          .document = store::to_document(record)};
}

store::Object array_state_object(const ArrayRecord& record, const ArrayState& state) {
  return {.kind = kArrayStateKind,
          .id = record.id,
          .project = record.spec.project,
          .name = record.spec.name,
          .document = store::to_document(state)};
}

char letter_of(Phase phase) {
  return phase == Phase::kSucceeded ? 'S' : phase == Phase::kFailed ? 'F' : 'T';
}

std::optional<Phase> phase_of_letter(char letter) {
  switch (letter) {
    case 'S':
      return Phase::kSucceeded;
    case 'F':
      return Phase::kFailed;
    case 'T':
      return Phase::kStopped;
    default:
      return std::nullopt;
  }
}

HeldArray::HeldArray(ArrayRecord stored, ArrayState stored_state)
    : record(std::move(stored)), state(std::move(stored_state)) {
  job::ArraySpec& spec = record.spec.array;
  if (auto numbers = job::indexes_of(spec)) indexes = *std::move(numbers);
  lines = std::exchange(spec.lines, {});
  if (spec.indexes.empty()) spec.indexes = "0-" + std::to_string(lines.size() - 1);
  lines.resize(lines.empty() ? 0 : indexes.size());
  members.resize(indexes.size());
  counts.queued = static_cast<int>(members.size());
  last = state.last;
  for (size_t i = 0; i < members.size(); ++i) {
    const auto phase = phase_of_letter(letter(i));
    if (phase) set(i, Where::kGone, *phase);
  }
  const std::vector<int>& codes = state.exit_codes;
  for (size_t i = 0; i + 1 < codes.size(); i += 2) {
    const auto position = static_cast<size_t>(codes[i]);
    if (position < members.size()) {
      members[position].code = static_cast<int16_t>(codes[i + 1]);
    }
  }
}

job::JobSpec HeldArray::spec_of(size_t position) const {
  return job::member_spec(record.spec, indexes, position,
                          lines.empty() ? nullptr : &lines[position]);
}

bool HeldArray::may_make_job() const {
  const bool is_open = !state.stop_requested && !state.suspended && !state.removing;
  const bool has_more = counts.queued > queued_jobs;
  const int most = max_running();
  return is_open && has_more && queued_jobs < kWindow && (most == 0 || jobs < most);
}

ArrayFacts HeldArray::facts() const {
  ArrayFacts facts{.record = record, .state = state, .counts = counts, .indexes = indexes};
  if (has_ended()) facts.ended = last.value_or(record.submitted);
  return facts;
}

std::vector<size_t> HeldArray::first_failed(size_t most) const {
  const bool stopped_count = !state.stop_requested;
  const int all = counts.failed + (stopped_count ? counts.stopped : 0);
  most = std::min(most, static_cast<size_t>(all));
  std::vector<size_t> found;
  for (size_t i = 0; i < members.size() && found.size() < most; ++i) {
    const Phase phase = members[i].phase;
    const bool is_shown = phase == Phase::kFailed || (stopped_count && phase == Phase::kStopped);
    if (is_shown) found.push_back(i);
  }
  return found;
}

std::optional<size_t> HeldArray::position_of(int index) const {
  const auto found = std::lower_bound(indexes.begin(), indexes.end(), index);
  if (found == indexes.end() || *found != index) return std::nullopt;
  return static_cast<size_t>(found - indexes.begin());
}

bool HeldArray::is_active_job(const Member& member) {
  return (member.where == Where::kJob || member.where == Where::kMade) &&
         !job::is_final(member.phase);
}

void HeldArray::set(size_t position, Where where, Phase phase) {
  Member& member = members[position];
  const auto count = [&](int by) {
    job::count_of_phase(counts, member.phase) += by;
    if (!is_active_job(member)) return;
    jobs += by;
    if (member.phase == Phase::kQueued) queued_jobs += by;
  };
  count(-1);
  member.where = where;
  member.phase = phase;
  count(1);
  const bool needs_job = where == Where::kNew || where == Where::kAgain;
  if (needs_job) next = std::min(next, position);
}

void HeldArray::set_letter(size_t position, char letter) {
  if (state.results.empty()) state.results.assign(members.size(), kNoResult);
  state.results[position] = letter;
}

void HeldArray::set_code(size_t position, int code) {
  members[position].code = static_cast<int16_t>(code);
  std::vector<int>& codes = state.exit_codes;
  for (size_t i = 0; i + 1 < codes.size(); i += 2) {
    if (codes[i] != static_cast<int>(position)) continue;
    codes[i + 1] = code;
    return;
  }
  if (code != 0) codes.insert(codes.end(), {static_cast<int>(position), code});
}

}  // namespace muster::control
