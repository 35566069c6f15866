#include "store/role_document.h"

#include <utility>

namespace muster::store {

using job::ContainerSpec;
using job::JobSpec;
using job::RegistryLogin;
using job::RoleSpec;
using job::SlurmSpec;
using job::Volume;
using Pairs = std::map<std::string, std::string>;
using Words = std::vector<std::string>;

namespace {

// Each adds what differs from its default.

void add(SparseMap& map, std::string_view key, const std::string& bytes) {
  if (!bytes.empty()) map.add(key, [&bytes](CborWriter& out) { out.bytes(bytes); });
}

void add(SparseMap& map, std::string_view key, const Words& words) {
  if (!words.empty()) map.add(key, [&words](CborWriter& out) { write_bytes_list(out, words); });
}

void add(SparseMap& map, std::string_view key, const Pairs& pairs) {
  if (!pairs.empty()) map.add(key, [&pairs](CborWriter& out) { write_pairs(out, pairs); });
}

void add(SparseMap& map, std::string_view key, int64_t number) {
  if (number != 0) map.add(key, [number](CborWriter& out) { out.number(number); });
}

void add_flag(SparseMap& map, std::string_view key, bool flag) {
  if (flag) map.add(key, [](CborWriter& out) { out.flag(true); });
}

void write_whole(CborWriter& out, const SparseMap& map) {
  out.map(map.count());
  map.write(out);
}

/// A part that says nothing beyond the defaults is left out.
void add(SparseMap& map, std::string_view key, SparseMap fields) {
  if (fields.count() == 0) return;
  map.add(key, [fields = std::move(fields)](CborWriter& out) { write_whole(out, fields); });
}

SparseMap fields_of(const RegistryLogin& login) {
  SparseMap fields;
  add(fields, "server", login.server);
  add(fields, "username", login.username);
  add(fields, "secret", login.secret);
  return fields;
}

RegistryLogin read_login(const CborValue& value) {
  RegistryLogin login;
  read_if_there(value, "server", login.server, bytes_of);
  read_if_there(value, "username", login.username, bytes_of);
  read_if_there(value, "secret", login.secret, bytes_of);
  return login;
}

SparseMap fields_of(const ContainerSpec& container) {
  SparseMap fields;
  if (container.pull != ContainerSpec().pull) {
    fields.add("pull", [&container](CborWriter& out) { out.text(job::to_string(container.pull)); });
  }
  add_flag(fields, "writable_root", container.writable_root);
  add_flag(fields, "new_privileges", container.new_privileges);
  add(fields, "capabilities", container.capabilities);
  add(fields, "shm_bytes", container.shm_bytes);
  return fields;
}

ContainerSpec read_container(const CborValue& value) {
  ContainerSpec container;
  read_if_there(value, "pull", container.pull,
                [](const CborValue& name) { return value_of(name, job::pull_policy_of); });
  read_if_there(value, "writable_root", container.writable_root, flag_of);
  read_if_there(value, "new_privileges", container.new_privileges, flag_of);
  read_if_there(value, "capabilities", container.capabilities, bytes_list_of);
  read_if_there(value, "shm_bytes", container.shm_bytes, number_of);
  return container;
}

SparseMap fields_of(const SlurmSpec& slurm) {
  SparseMap fields;
  add(fields, "partition", slurm.partition);
  add(fields, "account", slurm.account);
  add(fields, "qos", slurm.qos);
  add(fields, "reservation", slurm.reservation);
  add(fields, "constraint", slurm.constraint);
  return fields;
}

SlurmSpec read_slurm(const CborValue& value) {
  SlurmSpec slurm;
  read_if_there(value, "partition", slurm.partition, bytes_of);
  read_if_there(value, "account", slurm.account, bytes_of);
  read_if_there(value, "qos", slurm.qos, bytes_of);
  read_if_there(value, "reservation", slurm.reservation, bytes_of);
  read_if_there(value, "constraint", slurm.constraint, bytes_of);
  return slurm;
}

SparseMap fields_of(const RoleSpec& role) {
  SparseMap fields;
  add(fields, "image", role.image);
  add(fields, "user", role.user);
  add(fields, "registry", fields_of(role.registry));
  add(fields, "command", role.command);
  add(fields, "arguments", role.arguments);
  add(fields, "gpus", role.resources.gpus);
  add(fields, "gpu_share_milli", role.resources.gpu_share_milli);
  add(fields, "gpu_memory_bytes", role.resources.gpu_memory_bytes);
  add(fields, "cpu_milli", role.resources.cpu_milli);
  add(fields, "memory_bytes", role.resources.memory_bytes);
  add(fields, "environment", role.environment);
  return fields;
}

RoleSpec read_role(const CborValue& value) {
  RoleSpec role;
  read_if_there(value, "image", role.image, bytes_of);
  read_if_there(value, "user", role.user, bytes_of);
  read_if_there(value, "registry", role.registry, read_login);
  read_if_there(value, "command", role.command, bytes_list_of);
  read_if_there(value, "arguments", role.arguments, bytes_list_of);
  read_if_there(value, "gpus", role.resources.gpus, int_of);
  read_if_there(value, "gpu_share_milli", role.resources.gpu_share_milli, int_of);
  read_if_there(value, "gpu_memory_bytes", role.resources.gpu_memory_bytes, number_of);
  read_if_there(value, "cpu_milli", role.resources.cpu_milli, number_of);
  read_if_there(value, "memory_bytes", role.resources.memory_bytes, number_of);
  read_if_there(value, "environment", role.environment, pairs_of);
  return role;
}

void write_volume(CborWriter& out, const Volume& volume) {
  SparseMap fields;
  fields.add("kind", [&](CborWriter& inner) { inner.text(job::to_string(volume.kind)); });
  add(fields, "source", volume.source);
  add(fields, "target", volume.target);
  if (volume.read_only) fields.add("read_only", [](CborWriter& inner) { inner.flag(true); });
  write_whole(out, fields);
}

Volume read_volume(const CborValue& value) {
  Volume volume{.kind = value_of(value.at("kind"), job::volume_kind_of)};
  read_if_there(value, "source", volume.source, bytes_of);
  read_if_there(value, "target", volume.target, bytes_of);
  read_if_there(value, "read_only", volume.read_only, flag_of);
  return volume;
}

std::vector<Volume> volumes_of(const CborValue& value) {
  return list_of<Volume>(value, read_volume);
}

}  // namespace

void write_pairs(CborWriter& out, const Pairs& pairs) {
  out.list(pairs.size());
  for (const auto& [name, value] : pairs) out.list(2).text(name).bytes(value);
}

Pairs pairs_of(const CborValue& value) {
  Pairs pairs;
  for (const CborValue& entry : value.list()) {
    pairs[entry.list().at(0).text()] = bytes_of(entry.list().at(1));
  }
  return pairs;
}

SparseMap extras_of(const JobSpec& spec) {
  SparseMap extras;
  add(extras, "image", spec.image);
  add(extras, "user", spec.user);
  add(extras, "registry", fields_of(spec.registry));
  add(extras, "container", fields_of(spec.container));
  add(extras, "slurm", fields_of(spec.slurm));
  if (spec.launch != job::LaunchBy::kAuto) {
    extras.add("launch", [&spec](CborWriter& out) { out.text(job::to_string(spec.launch)); });
  }
  add_flag(extras, "keeps_entrypoint", !spec.replaces_entrypoint);
  add(extras, "arguments", spec.arguments);
  add(extras, "worker_command", spec.worker_command);
  add(extras, "leader", fields_of(spec.leader));
  add(extras, "leader_slots", spec.leader_slots);
  add_flag(extras, "allow_launcher_only", spec.allow_launcher_only);
  add(extras, "parameter_servers", spec.parameter_servers);
  add(extras, "parameter_server", fields_of(spec.parameter_server));
  add(extras, "evaluators", spec.evaluators);
  add(extras, "evaluator", fields_of(spec.evaluator));
  if (!spec.volumes.empty()) {
    extras.add("volumes", [&volumes = spec.volumes](CborWriter& out) {
      out.list(volumes.size());
      for (const Volume& volume : volumes) write_volume(out, volume);
    });
  }
  add_flag(extras, "held", spec.held);
  add_flag(extras, "input", spec.input);
  add_flag(extras, "terminal", spec.terminal);
  if (spec.keep_for) {
    extras.add("keep_for_ms",
               [keep = *spec.keep_for](CborWriter& out) { out.number(keep.count()); });
  }
  add(extras, "labels", spec.labels);
  add(extras, "annotations", spec.annotations);
  return extras;
}

void read_extras(const CborValue& value, JobSpec& spec) {
  read_if_there(value, "image", spec.image, bytes_of);
  read_if_there(value, "user", spec.user, bytes_of);
  read_if_there(value, "registry", spec.registry, read_login);
  read_if_there(value, "container", spec.container, read_container);
  read_if_there(value, "slurm", spec.slurm, read_slurm);
  read_if_there(value, "launch", spec.launch,
                [](const CborValue& name) { return value_of(name, job::launch_by_of); });
  bool keeps_entrypoint = false;
  read_if_there(value, "keeps_entrypoint", keeps_entrypoint, flag_of);
  spec.replaces_entrypoint = !keeps_entrypoint;
  read_if_there(value, "arguments", spec.arguments, bytes_list_of);
  read_if_there(value, "worker_command", spec.worker_command, bytes_list_of);
  read_if_there(value, "leader", spec.leader, read_role);
  read_if_there(value, "leader_slots", spec.leader_slots, int_of);
  read_if_there(value, "allow_launcher_only", spec.allow_launcher_only, flag_of);
  read_if_there(value, "parameter_servers", spec.parameter_servers, int_of);
  read_if_there(value, "parameter_server", spec.parameter_server, read_role);
  read_if_there(value, "evaluators", spec.evaluators, int_of);
  read_if_there(value, "evaluator", spec.evaluator, read_role);
  read_if_there(value, "volumes", spec.volumes, volumes_of);
  read_if_there(value, "held", spec.held, flag_of);
  read_if_there(value, "input", spec.input, flag_of);
  read_if_there(value, "terminal", spec.terminal, flag_of);
  read_if_there(value, "keep_for_ms", spec.keep_for, milliseconds_of);
  read_if_there(value, "labels", spec.labels, pairs_of);
  read_if_there(value, "annotations", spec.annotations, pairs_of);
}

}  // namespace muster::store
