// The JSON of an engine's API: what is asked of it, and what it answers.
//
// Pure. What is read tolerates what is missing, as engines and versions differ in it; kInternal: an
// answer that is no JSON, or lacks what it is about.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/container/docker_values.h"

namespace muster::engine {

using base::Result;

// --- what is asked ---

/// How containers are made by POST /containers/create. kInvalid: a text of it is no UTF-8, which
/// JSON cannot carry; says which.
Result<std::string> create_body(const ContainerConfig& config, const DockerInfo& engine);
/// The same by Podman's own POST /libpod/containers/create: the only one by which it gives devices
/// by their CDI names; of Docker's form it leaves out the GPUs without a word.
Result<std::string> libpod_create_body(const ContainerConfig& config, const DockerInfo& engine);
Result<std::string> exec_body(const DockerExec& exec);
std::string exec_start_body(bool terminal);
std::string network_body(const std::string& name, const std::map<std::string, std::string>& labels);
std::string volume_body(const std::string& name, const std::map<std::string, std::string>& labels);
/// The query's "filters". `types`: of events.
std::string filters(const std::vector<std::string>& labels,
                    const std::vector<std::string>& types = {});
/// The header by which an engine speaks to a registry: base64url of JSON.
std::string registry_auth(const RegistryAccess& access);

// --- what is answered ---

/// Of GET /info: all but the version of the API, and whose engine it is.
Result<void> read_info(std::string_view text, DockerInfo& info);
Result<DockerImage> read_image(std::string_view text);
Result<std::string> read_id(std::string_view text);
Result<ContainerState> read_container(std::string_view text);
Result<std::vector<ContainerState>> read_containers(std::string_view text);
Result<DockerExit> read_exec(std::string_view text);

using Named = std::vector<std::pair<std::string, std::map<std::string, std::string>>>;
Result<Named> read_networks(std::string_view text);
Result<Named> read_volumes(std::string_view text);

Result<DockerEvent> read_event(std::string_view text);
/// Of the header X-Docker-Container-Path-Stat.
Result<PathFacts> read_path_facts(std::string_view base64);

/// What an engine says of what it refuses. Podman tells `cause` from the sentence.
struct EngineWords {
  std::string message;
  std::string cause;
};
/// Where the body is no JSON, it is the message.
EngineWords read_words(std::string_view body);

/// As images have it: "amd64" of "x86_64".
std::string architecture_name(std::string_view text);

}  // namespace muster::engine
