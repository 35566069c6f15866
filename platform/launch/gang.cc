#include "launch/gang.h"

#include "launch/devices.h"
#include "launch/program.h"

namespace muster::launch {

using job::Role;
using job::Task;

const ImageFacts* image_of(const Gang& gang, const Task& task) {
  const auto found = gang.site.image_facts.find(task.name);
  return found == gang.site.image_facts.end() ? nullptr : &found->second;
}

std::vector<std::string> argv_of(const Gang& gang, const Task& task) {
  const ImageFacts* const image = image_of(gang, task);
  return image != nullptr ? program_in_image(gang.job.spec, task.role, *image)
                          : program_of(gang.job.spec, task.role, gang.site.images);
}

std::string folder_of(const Gang& gang, const Task& task) {
  const ImageFacts* const image = image_of(gang, task);
  return image != nullptr ? folder_in_image(gang.job.spec, *image)
                          : folder_of(gang.job.spec, task.role, gang.site.images);
}

Variables set_variables_of(const Gang& gang, const Task& task) {
  const ImageFacts* const image = image_of(gang, task);
  if (image == nullptr) return set_variables(gang.job.spec, task.role, gang.site.images);
  Variables variables = set_variables_in_image(gang.job.spec, task.role);
  variables.insert(image->environment.begin(), image->environment.end());
  return variables;
}

std::vector<std::string> gpus_of(const Gang& gang, const Task& task) {
  return gang.site.gpus_of ? gang.site.gpus_of(task.node) : std::vector<std::string>();
}

Variables devices_of(const Gang& gang, const Task& task) {
  const std::vector<std::string> gpus = gpus_of(gang, task);
  if (gpus.empty() && !asks_for_gpus(gang.job.spec)) return {};
  return device_environment(task, gpus);
}

bool takes_ranks(const job::JobSpec& spec, Role role) {
  if (spec.kind != job::Kind::kMpi) return false;
  return role == Role::kWorker || (role == Role::kLauncher && spec.leader_slots > 0);
}

}  // namespace muster::launch
