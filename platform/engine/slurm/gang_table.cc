#include "engine/slurm/gang_table.h"

#include <utility>

#include "base/log.h"

namespace muster::engine::slurm {

lent::GangTable::Options table_options(std::filesystem::path jobs) {
  return {.jobs = std::move(jobs),
          .record_file = kRecordFile,
          .encode = [](const lent::HeldGang& gang) {
            return encode(GangRecord{gang.record, static_cast<const HeldGang&>(gang).job});
          }};
}

Result<void> GangTable::load(const std::string& owner) {
  MUSTER_TRY(auto records, gang_records_in(shared_.jobs_folder()));
  for (auto& [gang, record] : records) {
    if (!record) {
      MUSTER_CHECK(add_unreadable(owner, gang, record.error()));
      continue;
    }
    Stage stage = Stage::kQueued;
    if (record->job.id == 0) stage = Stage::kUnsure;
    if (record->common.given) stage = Stage::kAllocated;
    add(gang, *std::move(record), stage);
  }
  return {};
}

/// A gang without a started task has nothing to lose: its Slurm job is cancelled as an unknown one.
Result<void> GangTable::add_unreadable(const std::string& owner, const GangId& gang,
                                       const base::Error& error) {
  MUSTER_TRY(GangRecord record, substitute_record(owner, gang, attempt_folder(gang)));
  const bool has_tasks = !record.common.seats.empty();
  base::log_error("'" + gang_record_in(attempt_folder(gang)).string() + "': " + error.what +
                  (has_tasks ? "; its tasks continue, but this server cannot reach them"
                             : "; none of its tasks had started: its Slurm job is cancelled"));
  if (!has_tasks) return {};
  const GangPointer held = add(gang, std::move(record), Stage::kAllocated);
  held->is_unreadable = held->is_unsaved = true;
  return {};
}

GangPointer GangTable::add(const GangId& gang, GangRecord record, Stage stage) {
  auto held = std::make_shared<HeldGang>(gang, std::move(record), stage);
  shared_.add(held);
  return held;
}

std::vector<GangPointer> GangTable::all() const {
  std::vector<GangPointer> all;
  for (const auto& [name, gang] : shared_.all()) all.push_back(in_slurm(gang));
  return all;
}

std::vector<GangPointer> GangTable::attempts_of(const std::string& job_id) const {
  std::vector<GangPointer> attempts;
  const auto& all = shared_.all();
  for (auto each = all.lower_bound({job_id, 0}); each != all.end() && each->first.job_id == job_id;
       ++each) {
    attempts.push_back(in_slurm(each->second));
  }
  return attempts;
}

GangPointer GangTable::current_of(const GangId& caller) const {
  GangPointer current;
  for (const GangPointer& held : attempts_of(caller.job_id)) {
    if (held->job.submitted_attempt == caller.attempt) current = held;
  }
  return current;
}

GangPointer GangTable::requeued_before(const GangId& gang) const {
  GangPointer before;
  for (const GangPointer& held : attempts_of(gang.job_id)) {
    if (!(held->gang < gang)) break;
    const bool is_free =
        held->record.queued_again && !held->record.given_back && held->stage != Stage::kOver;
    if (is_free) before = held;
  }
  return before;
}

bool GangTable::is_taken_over(const HeldGang& gang) const {
  if (gang.job.id == 0) return false;
  for (const GangPointer& other : attempts_of(gang.gang.job_id)) {
    if (other.get() != &gang && other->job.id == gang.job.id && !other->record.given_back &&
        other->gang.attempt > gang.gang.attempt) {
      return true;
    }
  }
  return false;
}

void GangTable::save_durably(const GangPointer& gang, std::function<void(Result<void>)> done) {
  gang->stage = Stage::kUnsaved;
  shared_.save_durably(gang, std::move(done));
}

}  // namespace muster::engine::slurm
