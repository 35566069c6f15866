// The `secrets` of a job file:
//
//   secrets:
//     - API_KEY                       as the variable API_KEY
//     - {name: CA, file: ca.pem}      as /generated/secrets/ca.pem
//
// Pure.
#pragma once

#include <vector>

#include "cli/yaml_document.h"
#include "cli/yaml_fields.h"
#include "job/spec.h"

namespace muster::cli {

void read_secrets(YamlFields& fields, const YamlValue& value, std::vector<job::SecretUse>& secrets);

}  // namespace muster::cli
