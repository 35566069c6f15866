// Whether the container engine can run jobs: which hosts there are, and whose engine answers there.
//
// look_at_containers() asks and blocks for some seconds at most; diagnose() is pure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/container/docker_values.h"
#include "engine/container/options.h"
#include "job/diagnosis.h"

namespace muster::engine::doctor {

struct HostFacts {
  std::string name;
  std::string endpoint;  ///< as it is written
  std::optional<DockerInfo> info;
  std::optional<base::Error> fault;  ///< why there is no info
  std::optional<DeclaredGpus> declared_gpus;
};

struct ContainerFacts {
  bool has_helper = false;
  std::filesystem::path programs;
  /// Errors: no host was found, or none can be read.
  base::Result<std::vector<HostFacts>> hosts = base::Error{};
};

/// `programs`: the folder of muster-shim, muster-helper and muster-rsh.
ContainerFacts look_at_containers(base::Result<std::vector<ContainerHostOptions>> hosts,
                                  const std::filesystem::path& programs);
job::Diagnosis diagnose(const ContainerFacts& facts);

}  // namespace muster::engine::doctor
