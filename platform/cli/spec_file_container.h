// The keys of a job file that are about images and the containers that run them.
//
// Pure.
#pragma once

#include <string>

#include "cli/yaml_fields.h"
#include "job/spec.h"

namespace muster::cli {

/// user, registry, container, launch, replaces_entrypoint.
YamlFields::Keys container_keys(YamlFields& fields, job::JobSpec& spec);

/// A map of server, username and secret.
void read_login(YamlFields& fields, const std::string& field, const YamlValue& value,
                job::RegistryLogin& login);

}  // namespace muster::cli
