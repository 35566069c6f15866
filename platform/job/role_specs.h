// What a spec says of single roles, as a list: for whoever asks the same of each.
//
// Pure.
#pragma once

#include <algorithm>
#include <array>

#include "job/spec.h"

namespace muster::job {

struct NamedRole {
  const char* field;  ///< of the spec: "parameter_server"
  const RoleSpec& role;
};

/// Of every kind of job; one that the spec says nothing of has all its defaults. `spec` must
/// outlive them.
inline std::array<NamedRole, 3> roles_of(const JobSpec& spec) {
  return {{{"leader", spec.leader},
           {"parameter_server", spec.parameter_server},
           {"evaluator", spec.evaluator}}};
}

/// Whether any task of the job is said to run in an image.
inline bool names_an_image(const JobSpec& spec) {
  const auto roles = roles_of(spec);
  return !spec.image.empty() || std::any_of(roles.begin(), roles.end(), [](const NamedRole& named) {
    return !named.role.image.empty();
  });
}

}  // namespace muster::job
