// Who runs in the container of each role, and how whoever fetches its image logs in to a registry.
//
// A password never stands in a job. It is kept as a secret of the project, which is named after the
// account that it opens: whoever says the same again keeps no second one, and a new password holds
// for all that use the account. It stays when experiments go, as other secrets do.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/command/arguments.h"
#include "dialects/gradient/experiment.h"

namespace muster::dialects::gradient {

/// --containerUser, --registryUsername, --registryPassword and --registryUrl of every role that the
/// type of the experiment has.
void read_containers(const std::vector<std::string>& path, cli::FlagReader& reader,
                     Experiment& experiment);

/// "https://index.docker.io/v1/" -> "docker.io": the registry that an address means.
std::string registry_of_url(const std::string& url);

/// "REGISTRY_docker_io_ada": the secret that holds the password of this account.
std::string registry_secret(const std::string& server, const std::string& username);

}  // namespace muster::dialects::gradient
