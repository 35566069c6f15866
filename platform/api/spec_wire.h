// A spec within other documents: what the files of the wire that are about specs and jobs share.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/fields.h"
#include "api/json_writer.h"
#include "job/spec.h"

namespace muster::api {

void write_spec(JsonWriter& json, const job::JobSpec& spec);
void read_spec(Fields& fields, job::JobSpec& spec);

void write_scheduling(JsonWriter& json, const job::Scheduling& scheduling);
void read_scheduling(Fields& fields, job::Scheduling& scheduling);

// role_wire.cc

void write_pairs(JsonWriter& json, std::string_view name,
                 const std::map<std::string, std::string>& pairs);

void write_resources(JsonWriter& json, const job::Resources& resources);
void read_resources(Fields& fields, job::Resources& resources);

/// Nothing where all has its default.
void write_role_if_any(JsonWriter& json, std::string_view name, const job::RoleSpec& role);
void read_role(Fields& fields, job::RoleSpec& role);

void write_volumes_if_any(JsonWriter& json, const std::vector<job::Volume>& volumes);
/// The field "volumes" of `fields`.
void read_volumes(Fields& fields, std::vector<job::Volume>& volumes);

// container_wire.cc

/// The field "registry": how whoever fetches the image logs in.
void write_login_if_any(JsonWriter& json, const job::RegistryLogin& login);
void read_login(Fields& fields, job::RegistryLogin& login);

/// Who runs in the image, who fetches it, what its containers may, how ranks are started.
void write_containers(JsonWriter& json, const job::JobSpec& spec);
void read_containers(Fields& fields, job::JobSpec& spec);

// slurm_wire.cc

/// The field "slurm": what is said to Slurm of a job.
void write_slurm_if_any(JsonWriter& json, const job::SlurmSpec& slurm);
void read_slurm(Fields& fields, job::SlurmSpec& slurm);

}  // namespace muster::api
