#include "engine/kubernetes/gangs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/json_text.h"
#include "base/log.h"
#include "base/random.h"

namespace muster::engine::kubernetes {

using Json = nlohmann::json;

namespace {

std::string pod_record_text(const lent::HeldGang& gang) {
  const auto& pods = static_cast<const PodGang&>(gang);
  Json object{{"owner_uid", pods.uid}, {"has_others", pods.has_others}};
  for (const AllocatedPlace& place : pods.places) {
    object["places"].push_back(
        {{"task", place.task}, {"node", place.node}, {"devices", place.devices}});
  }
  lent::add_to(object, gang.record);
  return base::json_text(object) + "\n";
}

struct PodRecord {
  lent::GangRecord common;
  std::string uid;
  bool has_others = true;
  std::vector<AllocatedPlace> places;
};

base::Result<PodRecord> decode_pod_record(const std::string& text) {
  const base::Error unreadable{.code = base::ErrorCode::kInvalid,
                               .what = "cannot read the record of a gang on Kubernetes"};
  try {
    const Json read = base::parse_json_or_throw(text);
    auto common = lent::gang_record_of(read);
    if (!common) return unreadable;
    PodRecord record{.common = *std::move(common),
                     .uid = read.at("owner_uid"),
                     .has_others = read.value("has_others", true),
                     .places = {}};
    for (const Json& place : read.value("places", Json::array())) {
      record.places.push_back({.task = place.at("task"),
                               .node = place.at("node"),
                               .devices = place.at("devices").get<std::vector<int>>()});
    }
    return record;
  } catch (const Json::exception&) {
    return unreadable;
  }
}

/// A substitute for a record that cannot be read, with a seat for each task that was started. The
/// random key is not the gang's, so no muster-node can connect with it.
base::Result<lent::GangRecord> record_by_folders(const std::filesystem::path& attempt_folder) {
  MUSTER_TRY(const std::vector<std::string> tasks, lent::started_tasks_in(attempt_folder));
  lent::GangRecord record;
  record.key = base::SystemRandom().bytes<std::tuple_size_v<rsh::Key>>();
  for (const std::string& task : tasks) {
    record.seats.push_back(
        {.task = task, .index = static_cast<int>(record.seats.size()), .started = true});
  }
  return record;
}

}  // namespace

bool PodGang::has_started_tasks() const {
  return std::any_of(record.seats.begin(), record.seats.end(),
                     [](const lent::Seat& seat) { return seat.started; });
}

bool PodGang::has_running_tasks() const {
  return std::any_of(tasks.begin(), tasks.end(), [&](const auto& named) {
    return seat_of(*named.second).started && !named.second->is_reported;
  });
}

bool PodGang::needs_pod(const std::string& task_name) const {
  const auto pod = pods.find(task_name);
  const TaskPointer held = task(task_name);
  const bool is_needed =
      (pod != pods.end() && pod->second.is_desired) || (held != nullptr && seat_of(*held).started);
  return is_needed || !has_started_tasks();
}

lent::GangTable::Options pod_table_options(std::filesystem::path jobs) {
  return {.jobs = std::move(jobs), .record_file = kPodRecordFile, .encode = pod_record_text};
}

PodGangPointer PodGangTable::keep(const GangId& gang, lent::GangRecord record) {
  auto held = std::make_shared<PodGang>(gang, std::move(record));
  shared_.add(held);
  by_name_[gang_name(owner_, gang)] = held;
  return held;
}

base::Result<void> PodGangTable::load() {
  MUSTER_TRY(const std::vector<lent::FoundRecord> all,
             lent::records_in(shared_.jobs_folder(), kPodRecordFile));
  for (const lent::FoundRecord& found : all) {
    auto record = decode_pod_record(found.text);
    if (!record) {
      MUSTER_TRY(lent::GangRecord by_folders, record_by_folders(found.path.parent_path()));
      base::log_error("'" + found.path.string() + "': " + record.error().what +
                      (by_folders.seats.empty()
                           ? "; none of its tasks had started: its pods are deleted"
                           : "; its tasks continue, but this server cannot reach them"));
      const PodGangPointer gang = keep(found.gang, std::move(by_folders));
      gang->is_unreadable = gang->is_unsaved = true;
      continue;
    }
    const PodGangPointer gang = keep(found.gang, std::move(record->common));
    gang->uid = record->uid;
    gang->has_others = record->has_others;
    gang->places = std::move(record->places);
  }
  return {};
}

PodGangPointer PodGangTable::add(const GangId& gang, const rsh::Key& key) {
  lent::GangRecord record;
  record.key = key;
  return keep(gang, std::move(record));
}

HeldPod& PodGangTable::add_task(const PodGangPointer& gang, const std::string& task) {
  if (gang->tasks.count(task) == 0) {
    auto held = std::make_shared<lent::HeldTask>();
    held->name = task;
    held->seat = gang->record.seats.size();
    gang->record.seats.push_back(
        {.task = task, .index = static_cast<int>(gang->record.seats.size())});
    gang->tasks[task] = std::move(held);
  }
  return gang->pods[task];
}

void PodGangTable::remove(const PodGangPointer& gang) {
  by_name_.erase(gang_name(owner_, gang->gang));
  shared_.remove(gang);
}

std::vector<PodGangPointer> PodGangTable::all() const {
  std::vector<PodGangPointer> all;
  for (const auto& [name, gang] : shared_.all()) all.push_back(in_kubernetes(gang));
  return all;
}

PodGangPointer PodGangTable::find_by_pod_name(std::string_view pod) const {
  for (size_t dash = pod.rfind('-'); dash != std::string_view::npos && dash > 0;
       dash = pod.rfind('-', dash - 1)) {
    if (auto gang = find_by_name(std::string(pod.substr(0, dash)))) return gang;
  }
  return nullptr;
}

PodGangPointer PodGangTable::find_by_name(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second.lock();
}

}  // namespace muster::engine::kubernetes
