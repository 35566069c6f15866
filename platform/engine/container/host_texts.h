// The hosts of a container engine, as a configuration has them: names and texts.
//
// Reads no more than its arguments say, and whether certificates are there.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/container/endpoint.h"
#include "engine/container/options.h"

namespace muster::engine {

struct HostTexts {
  std::map<std::string, std::string> endpoints;  ///< by name; empty: the engine of this machine
  std::map<std::string, std::string> addresses;
  std::map<std::string, std::string> gpus;
  std::filesystem::path certificates;
  std::string own_name;  ///< of this machine, where no host is named
  std::string own_gpus;
};

/// With their names, endpoints, addresses and GPUs; the rest as it is by itself.
///
/// Errors: kInvalid with a fault for each text that cannot be read, and for each host that others
/// could not reach; those of find_endpoint().
Result<std::vector<ContainerHostOptions>> read_hosts(const HostTexts& texts,
                                                     const Surroundings& here);

/// Files and folders of this machine by which whoever has them may do anything with the hosts'
/// engines.
std::vector<std::filesystem::path> ways_in(const std::vector<ContainerHostOptions>& hosts);

/// What tells this server's containers from those of others: made once, and kept in the folder of
/// its jobs.
Result<std::string> owner_of(const std::filesystem::path& jobs_folder);

}  // namespace muster::engine
