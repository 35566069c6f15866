#include "control/job_index.h"

#include <algorithm>

#include "job/array.h"

namespace muster::control {

using job::FactTexts;
using job::Job;
using job::JobFacts;
using job::Phase;

namespace {

// How far ahead texts are fetched, in jobs; slots are fetched twice as far.
constexpr ptrdiff_t kReadAhead = 16;

/// Fetches the slot into the processor's cache.
void read_ahead(const JobSlot* slot) {
  if (slot == nullptr) return;
  const char* const begin = reinterpret_cast<const char*>(slot);
  __builtin_prefetch(begin);
  __builtin_prefetch(begin + sizeof(JobSlot) - 1);
}

/// Fetches the parts of a job that are not in its slot.
void read_texts_ahead(const JobSlot* slot, FactTexts texts) {
  if (slot == nullptr) return;
  if (slot->entry == nullptr) {
    if (slot->at_hand) slot->at_hand.read_ahead(slot->packed.address(), texts);
    return;
  }
  const Job& job = slot->entry->job;
  for (const void* part :
       {static_cast<const void*>(&job.id), static_cast<const void*>(&job.owner),
        static_cast<const void*>(&job.phase), static_cast<const void*>(&job.submitted),
        static_cast<const void*>(&job.spec.name), static_cast<const void*>(&job.spec.project),
        static_cast<const void*>(&job.spec.command), static_cast<const void*>(&job.spec.labels)}) {
    __builtin_prefetch(part);
  }
}

}  // namespace

JobFacts JobSlot::facts() const {
  if (entry != nullptr) return job::facts_of(entry->job);
  return at_hand ? at_hand.facts(packed.address()) : packed.facts();
}

job::PackedNames JobSlot::names() const {
  if (entry == nullptr) return at_hand ? at_hand.names(packed.address()) : packed.names();
  const Job& job = entry->job;
  return {.id = job.id, .name = job.spec.name, .project = job.spec.project};
}

JobSlot& SlotPool::make(JobSlot slot) {
  JobSlot* place = nullptr;
  if (!removed_.empty()) {
    place = removed_.back();
    removed_.pop_back();
  } else {
    if (used_ == kInChunk) {
      chunks_.push_back(std::make_unique<Chunk>());
      used_ = 0;
    }
    place = &(*chunks_.back())[used_++];
  }
  *place = std::move(slot);
  return *place;
}

void SlotPool::remove(JobSlot& slot) {
  slot = {};
  removed_.push_back(&slot);
}

JobSlot& JobIndex::add(JobSlot added) {
  JobSlot& kept = slots_.make(std::move(added));
  if (kept.entry == nullptr) copy_facts(kept);
  TimeSlot slot{.submitted = kept.facts().submitted, .slot = &kept};
  by_id_.insert(&kept);
  const auto [named, is_free] = by_name_.insert(&kept);
  // The damaged name of an unreadable record may be the name of a readable job.
  if (!is_free && (*named)->facts().unreadable) {
    by_name_.erase(named);
    by_name_.insert(&kept);
  }
  // Jobs from an earlier release may have the same time of submission, and an unreadable job has
  // that of the job before it.
  auto at = first_slot(slot.submitted, true);
  if (at != by_time_.begin() && (at - 1)->submitted == slot.submitted) {
    do slot.submitted += std::chrono::nanoseconds(1);
    while (at != by_time_.end() && (at++)->submitted == slot.submitted);
    at = first_slot(slot.submitted, true);
    moved_[&kept] = slot.submitted;
  }
  by_time_.insert(at, slot);
  kept.is_member = job::is_member(kept.facts()) ? 1 : 0;
  kept.counted = JobSlot::kNotCounted;
  count(kept);
  return kept;
}

void JobIndex::pack(JobSlot& slot) {
  slot.entry = nullptr;
  copy_facts(slot);
}

void JobIndex::copy_facts(JobSlot& slot) {
  const JobFacts facts = slot.packed.facts();
  const auto shared = [this](std::string_view text) -> const std::string& {
    const auto known = shared_texts_.find(text);
    return known != shared_texts_.end() ? *known : *shared_texts_.emplace(text).first;
  };
  slot.at_hand = {slot.packed.address(), shared(facts.project), shared(facts.owner)};
}

void JobIndex::count(JobSlot& slot) {
  const auto add = [&](Phase phase, int64_t number) {
    job::count_of_phase(all_, phase) += number;
    if (slot.is_member == 0) job::count_of_phase(top_, phase) += number;
  };
  if (slot.counted != JobSlot::kNotCounted) add(static_cast<Phase>(slot.counted), -1);
  const Phase now = slot.facts().phase;
  slot.counted = static_cast<uint64_t>(now);
  add(now, 1);
}

void JobIndex::erase(JobSlot& slot) {
  const auto counted = static_cast<Phase>(slot.counted);
  --job::count_of_phase(all_, counted);
  if (slot.is_member == 0) --job::count_of_phase(top_, counted);
  const job::PackedNames names = slot.names();
  if (const auto found = by_id_.find(names.id); found != by_id_.end() && *found == &slot) {
    by_id_.erase(found);
  }
  const auto named = by_name_.find(JobName(names.name, names.project));
  if (named != by_name_.end() && *named == &slot) by_name_.erase(named);
  const auto first =
      by_time_.begin() + (first_slot(facts_of(slot).submitted, false) - by_time_.begin());
  const auto found =
      std::find_if(first, by_time_.end(), [&](const TimeSlot& each) { return each.slot == &slot; });
  if (found != by_time_.end()) {
    found->slot = nullptr;
    ++empty_slots_;
  }
  moved_.erase(&slot);
  slots_.remove(slot);
  if (2 * empty_slots_ > by_time_.size()) {
    std::erase_if(by_time_, [](const TimeSlot& each) { return each.slot == nullptr; });
    empty_slots_ = 0;
  }
}

JobSlot* JobIndex::with_id(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : *found;
}

JobFacts JobIndex::facts_of(const JobSlot& slot) const {
  JobFacts facts = slot.facts();
  if (moved_.empty()) return facts;
  if (const auto moved = moved_.find(&slot); moved != moved_.end()) facts.submitted = moved->second;
  return facts;
}

std::vector<JobIndex::TimeSlot>::const_iterator JobIndex::first_slot(base::Time time,
                                                                     bool after) const {
  return std::partition_point(by_time_.begin(), by_time_.end(), [&](const TimeSlot& slot) {
    return slot.submitted < time || (after && slot.submitted == time);
  });
}

void JobIndex::each_by_time(bool newest_first, std::optional<base::Time> after, FactTexts read,
                            const Visit& visit) const {
  const auto count = static_cast<ptrdiff_t>(by_time_.size());
  ptrdiff_t at = newest_first ? count - 1 : 0;
  if (after) at = first_slot(*after, !newest_first) - by_time_.begin() - (newest_first ? 1 : 0);
  visit_slots(at, newest_first ? -1 : count, newest_first ? -1 : 1, read, visit);
}

void JobIndex::each_of_part(bool newest_first, size_t part, size_t parts, FactTexts read,
                            const Visit& visit) const {
  const auto begin = static_cast<ptrdiff_t>(by_time_.size() * part / parts);
  const auto end = static_cast<ptrdiff_t>(by_time_.size() * (part + 1) / parts);
  if (newest_first) return visit_slots(end - 1, begin - 1, -1, read, visit);
  visit_slots(begin, end, 1, read, visit);
}

void JobIndex::visit_slots(ptrdiff_t at, ptrdiff_t end, ptrdiff_t step, FactTexts read,
                           const Visit& visit) const {
  const auto count = static_cast<ptrdiff_t>(by_time_.size());
  for (; at != end; at += step) {
    const auto slot_at = [&](ptrdiff_t place) -> const JobSlot* {
      return place >= 0 && place < count ? by_time_[static_cast<size_t>(place)].slot : nullptr;
    };
    read_ahead(slot_at(at + 2 * kReadAhead * step));
    read_texts_ahead(slot_at(at + kReadAhead * step), read);
    const JobSlot* const slot = slot_at(at);
    if (slot == nullptr) continue;
    JobFacts facts = slot->facts();
    facts.submitted = by_time_[static_cast<size_t>(at)].submitted;
    if (!visit(facts)) return;
  }
}

void JobIndex::each_by_name(const JobName& first, const Visit& visit) const {
  auto at = by_name_.lower_bound(first);
  while (at != by_name_.end() && visit(facts_of(**at))) ++at;
}

}  // namespace muster::control
