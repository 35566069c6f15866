#include "engine/slurm/gang_table.h"

#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/log.h"

namespace muster::engine::slurm {

namespace fs = std::filesystem;

void GangTable::load() {
  for (auto& [gang, record] : gang_records_in(jobs_)) {
    Stage stage = Stage::kQueued;
    if (record.slurm_job == 0) stage = Stage::kUnsure;
    if (record.given) stage = Stage::kAllocated;
    add(gang, std::move(record), stage);
  }
}

GangPointer GangTable::add(const GangId& gang, GangRecord record, Stage stage) {
  auto held = std::make_shared<HeldGang>();
  held->gang = gang;
  held->record = std::move(record);
  held->stage = stage;
  for (size_t i = 0; i < held->record.seats.size(); ++i) {
    auto task = std::make_shared<HeldTask>();
    task->name = held->record.seats[i].task;
    task->seat = i;
    held->tasks[task->name] = std::move(task);
  }
  gangs_[gang] = held;
  return held;
}

void GangTable::remove(const GangPointer& gang) {
  std::error_code ignored;
  fs::remove(gang_record_in(attempt_folder(gang->gang)), ignored);
  gangs_.erase(gang->gang);
}

GangPointer GangTable::find(const GangId& gang) const {
  const auto found = gangs_.find(gang);
  return found == gangs_.end() ? nullptr : found->second;
}

TaskPointer GangTable::find(const GangId& gang, const std::string& task) const {
  const GangPointer held = find(gang);
  if (held == nullptr) return nullptr;
  const auto found = held->tasks.find(task);
  return found == held->tasks.end() ? nullptr : found->second;
}

GangPointer GangTable::current_of(const GangId& caller) const {
  GangPointer current;
  for (auto each = gangs_.lower_bound(caller);
       each != gangs_.end() && each->first.job_id == caller.job_id; ++each) {
    if (each->second->record.submitted_attempt == caller.attempt) current = each->second;
  }
  return current;
}

GangPointer GangTable::requeued_before(const GangId& gang) const {
  GangPointer before;
  for (auto each = gangs_.lower_bound({gang.job_id, 0}); each != gangs_.end() && each->first < gang;
       ++each) {
    const HeldGang& held = *each->second;
    const bool is_free =
        held.record.queued_again && !held.record.given_back && held.stage != Stage::kOver;
    if (is_free) before = each->second;
  }
  return before;
}

bool GangTable::is_taken_over(const HeldGang& gang) const {
  if (gang.record.slurm_job == 0) return false;
  for (auto each = gangs_.lower_bound({gang.gang.job_id, 0});
       each != gangs_.end() && each->first.job_id == gang.gang.job_id; ++each) {
    const HeldGang& other = *each->second;
    if (&other != &gang && other.record.slurm_job == gang.record.slurm_job &&
        !other.record.given_back && other.gang.attempt > gang.gang.attempt) {
      return true;
    }
  }
  return false;
}

// --- records

void GangTable::save(const GangPointer& gang) {
  gang->is_saved = true;
  const fs::path folder = attempt_folder(gang->gang);
  if (gang->stage == Stage::kUnsaved || find(gang->gang) != gang) return;
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) return;  // its job was removed
  const auto written = base::write_file(gang_record_in(folder), encode(gang->record));
  if (!written) base::log_error(written.error().what);
}

void GangTable::save_soon(const GangPointer& gang) {
  if (!std::exchange(gang->is_saved, false)) return;
  loop_.post([this, gang, weak = std::weak_ptr(alive_)] {
    if (weak.lock() && !gang->is_saved) save(gang);
  });
}

void GangTable::save_durably(const GangPointer& gang, std::function<void(Result<void>)> done) {
  const fs::path folder = attempt_folder(gang->gang);
  if (auto made = base::make_private_folder(folder); !made) return done(std::move(made));
  gang->stage = Stage::kUnsaved;
  writer_.keep(gang_record_in(folder), gang->record, std::move(done));
}

// --- folders

fs::path GangTable::attempt_folder(const GangId& gang) const {
  return job_folder(gang.job_id) / std::to_string(gang.attempt);
}

TaskFolder GangTable::folder_of(const GangId& gang, std::string_view task) const {
  return {attempt_folder(gang) / task};
}

}  // namespace muster::engine::slurm
