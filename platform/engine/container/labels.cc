#include "engine/container/labels.h"

#include <cctype>

#include "base/units.h"

namespace muster::engine {

namespace {

/// Escaped parts contain no '.', and the escape character itself is always escaped.
std::string escaped(std::string_view part) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char letter : part) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x80 && (std::isalnum(byte) != 0 || letter == '-')) {
      text += letter;
    } else {
      text.append({'_', kDigits[byte >> 4U], kDigits[byte & 15U]});
    }
  }
  return text;
}

std::string label_value(const Labels& labels, const char* name) {
  const auto found = labels.find(name);
  return found == labels.end() ? "" : found->second;
}

}  // namespace

Labels labels_of_job(const std::string& owner, const std::string& job_id) {
  return {{kOwnerLabel, owner}, {kJobLabel, job_id}};
}

Labels labels_of_gang(const std::string& owner, const GangId& gang) {
  Labels labels = labels_of_job(owner, gang.job_id);
  labels.emplace(kAttemptLabel, std::to_string(gang.attempt));
  return labels;
}

Labels labels_of_task(const std::string& owner, const GangId& gang, const std::string& task) {
  Labels labels = labels_of_gang(owner, gang);
  labels.emplace(kTaskLabel, task);
  return labels;
}

std::vector<std::string> as_filters(const Labels& labels) {
  std::vector<std::string> filters;
  for (const auto& [name, value] : labels) filters.push_back(name + "=" + value);
  return filters;
}

std::string job_of(const std::string& owner, const Labels& labels) {
  return label_value(labels, kOwnerLabel) == owner ? label_value(labels, kJobLabel) : "";
}

std::optional<GangId> gang_of(const std::string& owner, const Labels& labels) {
  const std::string job = job_of(owner, labels);
  const auto attempt = base::number_of<int>(label_value(labels, kAttemptLabel));
  if (job.empty() || !attempt) return std::nullopt;
  return GangId{job, *attempt};
}

std::optional<LabelledTask> task_of(const std::string& owner, const Labels& labels) {
  const auto gang = gang_of(owner, labels);
  std::string task = label_value(labels, kTaskLabel);
  if (!gang || task.empty()) return std::nullopt;
  return LabelledTask{.gang = *gang, .task = std::move(task)};
}

std::string network_name(const GangId& gang) {
  return "muster-" + escaped(gang.job_id) + "-" + std::to_string(gang.attempt);
}

std::string container_name(const GangId& gang, std::string_view task) {
  return network_name(gang) + "-" + escaped(task);
}

std::string volume_name(const std::string& job_id, std::string_view what) {
  return "muster-" + escaped(job_id) + "-" + escaped(what);
}

std::string storage_name(const std::string& owner, const std::string& project,
                         std::string_view storage) {
  return "muster-storage-" + escaped(owner) + "." + escaped(project) + "." + escaped(storage);
}

std::string numbered_name(const std::string& name, int tries) {
  return tries == 0 ? name : name + "-" + std::to_string(tries + 1);
}

}  // namespace muster::engine
