#include "engine/container/task_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace muster::engine {

std::string encode(const ContainerRecord& record) {
  return nlohmann::json{{"host", record.host},
                        {"container", record.container},
                        {"artifacts", record.artifacts}}
             .dump() +
         "\n";
}

base::Result<ContainerRecord> decode_container_record(std::string_view text) {
  try {
    const auto read = nlohmann::json::parse(text);
    return ContainerRecord{.host = read.at("host"),
                           .container = read.at("container"),
                           .artifacts = read.value("artifacts", "")};
  } catch (const nlohmann::json::exception&) {
    return base::Error{.what = "cannot parse the record of a task's container"};
  }
}

std::shared_ptr<HeldTask> TaskTable::find(const TaskKey& key) const {
  const auto found = tasks_.find(key);
  return found == tasks_.end() ? nullptr : found->second;
}

std::shared_ptr<HeldTask> TaskTable::take(const TaskKey& key) {
  const auto taken = tasks_.extract(key);
  return taken.empty() ? nullptr : taken.mapped();
}

std::vector<std::shared_ptr<HeldTask>> TaskTable::all() const {
  std::vector<std::shared_ptr<HeldTask>> all;
  for (const auto& [key, task] : tasks_) all.push_back(task);
  return all;
}

bool TaskTable::has_tasks(const Gang& gang) const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [&](const auto& each) { return each.first.first == gang; });
}

void TaskTable::disconnect() const {
  for (const auto& [key, task] : tasks_) {
    if (task->follower) task->follower->hang_up();
  }
}

void TaskTable::report(const TaskKey& key, TaskNews what) const {
  if (listener_) listener_({.gang = key.first, .task = key.second, .what = std::move(what)});
}

}  // namespace muster::engine
