#include "job/text_size.h"

#include "job/role_specs.h"

namespace muster::job {

namespace {

size_t size_of(const std::vector<std::string>& words) {
  size_t size = 0;
  for (const std::string& word : words) size += word.size() + 1;
  return size;
}

size_t size_of(const std::map<std::string, std::string>& pairs) {
  size_t size = 0;
  for (const auto& [name, value] : pairs) size += name.size() + value.size() + 2;
  return size;
}

size_t size_of(const RegistryLogin& login) {
  return login.server.size() + login.username.size() + login.secret.size();
}

size_t size_of(const SlurmSpec& slurm) {
  return slurm.partition.size() + slurm.account.size() + slurm.qos.size() +
         slurm.reservation.size() + slurm.constraint.size();
}

size_t size_of(const RoleSpec& role) {
  return role.image.size() + role.user.size() + size_of(role.registry) + size_of(role.command) +
         size_of(role.arguments) + size_of(role.environment);
}

size_t size_of_roles(const JobSpec& spec) {
  size_t size = 0;
  for (const NamedRole& named : roles_of(spec)) size += size_of(named.role);
  return size;
}

size_t size_of(const std::vector<Volume>& volumes) {
  size_t size = 0;
  for (const Volume& volume : volumes) size += volume.source.size() + volume.target.size() + 2;
  return size;
}

}  // namespace

size_t text_size(const JobSpec& spec) {
  return spec.folder.size() + spec.image.size() + spec.user.size() + size_of(spec.registry) +
         size_of(spec.container.capabilities) + size_of(spec.slurm) + size_of(spec.command) +
         size_of(spec.arguments) + size_of(spec.worker_command) + size_of_roles(spec) +
         size_of(spec.volumes) + size_of(spec.labels) + size_of(spec.annotations) +
         size_of(spec.environment);
}

}  // namespace muster::job
