#include "job/validate.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "job/array.h"
#include "job/checker.h"
#include "job/spec.h"
#include "job/spec_table.h"
#include "record/input.h"

namespace muster::job {

namespace {

// Linux host names have at most 64 bytes and DNS labels 63; "-launcher" or "-worker-999" must fit.
constexpr size_t kMaxJobName = 48;

// Jobs are kept in memory and sent as a whole, so the sum of their texts is bounded.
constexpr size_t kMostText = 256 << 10;

void check_job_names(const JobSpec& spec, Checker& check) {
  check.require(is_job_name(spec.name), "name",
                "'" + spec.name + "' is not a job name; use 1 to " + std::to_string(kMaxJobName) +
                    " of a-z, 0-9 and '-', with a letter or digit at both ends");
  check.require(is_dns_label(spec.project, 63), "project",
                "'" + spec.project + "' is not a project name; use a-z, 0-9 and '-'");
}

void check_size(const JobSpec& spec, Checker& check) {
  const size_t size = text_size(spec);
  check.require(size <= kMostText, "command",
                "is " + std::to_string(size) +
                    " bytes long together with the environment and the other texts; at most " +
                    std::to_string(kMostText) + " are allowed: put the rest in a file");
}

void check_places_and_times(const JobSpec& spec, Checker& check) {
  check.require(spec.folder.starts_with('/') && !has_nul(spec.folder), "folder",
                "'" + spec.folder + "' is not an absolute path");
  check.require(spec.start_timeout.count() > 0 && spec.start_timeout.count() <= kDayInMs,
                "start_timeout", "give a time between 1ms and 24h");
  constexpr int64_t kTenYears = 3650 * kDayInMs;
  check.require(
      !spec.keep_for || (spec.keep_for->count() >= 0 && spec.keep_for->count() <= kTenYears),
      "keep_for", "give a time between 0s and 3650d");
  check.require(spec.grace.count() >= 0 && spec.grace.count() <= kDayInMs, "grace",
                "give a time between 0s and 24h");
}

}  // namespace

bool is_job_name(std::string_view text) {
  return is_dns_label(text, kMaxJobName);
}

bool is_name_template(std::string_view text) {
  const size_t place = text.find(kNumberPlace);
  if (place == std::string_view::npos) return false;
  std::string name(text);
  return is_job_name(name.replace(place, kNumberPlace.size(), "1"));
}

std::vector<Fault> validate(const JobSpec& spec) {
  Checker check;
  check_job_names(spec, check);
  check_programs(spec, check);
  check_shape(spec, check);
  check_container(spec, check);
  check_slurm(spec.slurm, check);
  check_kubernetes(spec.kubernetes, check);
  check_pod_containers(spec, check);
  check_scheduling(spec, check);
  check_dependencies(spec, check);
  check_environments(spec, check);
  check_size(spec, check);
  check_secrets(spec, check);
  check_volumes(spec, check);
  check_labels(spec, check);
  check_places_and_times(spec, check);
  check_array(spec, check);
  return check.take();
}

namespace {

struct DependentFields {
  std::string_view field;
  std::vector<std::string_view> dependents;
};

const std::vector<DependentFields>& dependent_fields() {
  static const std::vector<DependentFields> all{
      {"kind",
       {"command", "worker_command", "workers", "leader", "leader_slots", "parameter_servers",
        "parameter_server", "evaluators", "evaluator", "chief_is_worker", "allow_launcher_only",
        "launch", "success", "scheduling.min_workers", "scheduling.resize",
        "kubernetes.containers"}},
      {"command", {"leader.command", "parameter_server.command", "evaluator.command"}},
      {"image",
       {"user", "registry", "container", "replaces_entrypoint", "command", "leader.command",
        "parameter_server.command", "evaluator.command"}},
      {"leader.image",
       {"container", "replaces_entrypoint", "command", "leader.command", "leader.user",
        "leader.registry"}},
      {"parameter_server.image",
       {"container", "replaces_entrypoint", "parameter_server.command", "parameter_server.user",
        "parameter_server.registry"}},
      {"evaluator.image",
       {"container", "replaces_entrypoint", "evaluator.command", "evaluator.user",
        "evaluator.registry"}},
      {"workers", {"scheduling.min_workers"}},
      {"parameter_servers", {"scheduling.resize"}},
      {"scheduling.min_workers", {"scheduling.resize"}},
      {"volumes", {"kubernetes.containers"}},
      {"kubernetes.claims", {"kubernetes.containers"}},
  };
  return all;
}

}  // namespace

void add_dependents(std::vector<Fault>& unread, std::string_view prefix) {
  const size_t count = unread.size();
  for (size_t i = 0; i < count; ++i) {
    const std::string unread_field = unread[i].field;
    for (const auto& [field, dependents] : dependent_fields()) {
      const std::string read = std::string(prefix).append(field);
      const bool is_unread =
          record::is_within(unread_field, read) || record::is_within(read, unread_field);
      if (!is_unread) continue;
      for (const std::string_view dependent : dependents) {
        unread.push_back({.field = std::string(prefix).append(dependent)});
      }
    }
  }
}

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

size_t size_of(const PodContainer& container) {
  return container.name.size() + container.image.size() + size_of(container.command) +
         size_of(container.arguments) + size_of(container.environment) + container.folder.size() +
         container.user.size() + size_of(container.mounts);
}

size_t size_of(const KubernetesSpec& options) {
  size_t containers = 0;
  for (const PodContainer& each : options.containers) containers += size_of(each);
  return containers + size_of(options.node_selector) + size_of(options.tolerations) +
         options.priority_class.size() + options.service_account.size() +
         options.runtime_class.size() + size_of(options.image_pull_secrets) +
         size_of(options.claims) + size_of(options.devices) + size_of(options.labels) +
         size_of(options.annotations);
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
         size_of(spec.container.capabilities) + size_of(spec.slurm) + size_of(spec.kubernetes) +
         size_of(spec.command) + size_of(spec.arguments) + size_of(spec.worker_command) +
         size_of_roles(spec) + size_of(spec.volumes) + size_of(spec.labels) +
         size_of(spec.annotations) + size_of(spec.environment);
}

}  // namespace muster::job
