#include "engine/lent/gang_table.h"

#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/log.h"

namespace muster::engine::lent {

namespace fs = std::filesystem;

HeldGang::HeldGang(GangId name, GangRecord its_record)
    : gang(std::move(name)), record(std::move(its_record)) {
  for (size_t i = 0; i < record.seats.size(); ++i) {
    auto task = std::make_shared<HeldTask>();
    task->name = record.seats[i].task;
    task->seat = i;
    tasks[task->name] = std::move(task);
  }
}

void GangTable::remove(const GangPointer& gang) {
  std::error_code ignored;
  fs::remove(record_of(gang->gang), ignored);
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

// --- records

void GangTable::save(const GangPointer& gang) {
  gang->is_saved = true;
  if (gang->is_unsaved || find(gang->gang) != gang) return;
  std::error_code ignored;
  if (!fs::exists(attempt_folder(gang->gang), ignored)) return;  // its job was removed
  const auto written = base::write_file(record_of(gang->gang), options_.encode(*gang));
  if (!written) base::log_error(written.error().what);
}

void GangTable::save_soon(const GangPointer& gang) {
  if (!std::exchange(gang->is_saved, false)) return;
  loop_.post([this, gang, weak = std::weak_ptr(alive_)] {
    if (weak.lock() && !gang->is_saved) save(gang);
  });
}

void GangTable::save_durably(const GangPointer& gang, std::function<void(Result<void>)> done) {
  if (auto made = base::make_private_folder(attempt_folder(gang->gang)); !made) {
    return done(std::move(made));
  }
  gang->is_unsaved = true;
  writer_.keep(record_of(gang->gang), options_.encode(*gang),
               [gang, done = std::move(done)](Result<void> kept) {
                 gang->is_unsaved = false;
                 done(std::move(kept));
               });
}

// --- folders

fs::path GangTable::attempt_folder(const GangId& gang) const {
  return job_folder(gang.job_id) / std::to_string(gang.attempt);
}

fs::path GangTable::record_of(const GangId& gang) const {
  return attempt_folder(gang) / options_.record_file;
}

TaskFolder GangTable::folder_of(const GangId& gang, std::string_view task) const {
  return {attempt_folder(gang) / task};
}

}  // namespace muster::engine::lent
