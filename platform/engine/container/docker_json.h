// The JSON of the Engine API: bodies of requests, and parsers of answers.
//
// Pure. Parsers tolerate missing members, because engines and versions differ. kInternal: the
// answer is not JSON, or lacks an essential member.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/container/docker_values.h"

namespace muster::engine {

using base::Result;

// --- requests

/// The body of POST /containers/create. kInvalid: a text is not UTF-8, which JSON requires; the
/// error names the text.
Result<std::string> create_body(const ContainerConfig& config, const DockerInfo& engine);
/// The body of Podman's own POST /libpod/containers/create. Podman accepts CDI device names only
/// there, and silently ignores the GPUs of Docker's request.
Result<std::string> libpod_create_body(const ContainerConfig& config, const DockerInfo& engine);
Result<std::string> exec_body(const DockerExec& exec);
std::string exec_start_body(bool terminal);
std::string network_body(const std::string& name, const std::map<std::string, std::string>& labels);
std::string volume_body(const std::string& name, const std::map<std::string, std::string>& labels);
/// The query parameter "filters". `types`: types of events.
std::string filters(const std::vector<std::string>& labels,
                    const std::vector<std::string>& types = {});
/// The header with the login for a registry: base64url of JSON.
std::string registry_auth(const RegistryAccess& access);

// --- answers

/// Parses GET /info into `info`, except the version of the API and `is_podman`.
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
/// Parses the header X-Docker-Container-Path-Stat.
Result<PathFacts> read_path_facts(std::string_view base64);

/// An engine's description of an error. Only Podman has a separate `cause`.
struct EngineWords {
  std::string message;
  std::string cause;
};
/// A body that is not JSON becomes the message.
EngineWords read_words(std::string_view body);

/// The name that images use: "amd64" for "x86_64".
std::string architecture_name(std::string_view text);

// --- parsing JSON of other programs: a missing or null member counts as empty, a member of the
// wrong type is an error

/// The member `key`, or null.
const nlohmann::json& at(const nlohmann::json& object, std::string_view key);

/// For std::string, bool, int, int64_t, uint32_t, and vectors and maps of std::string.
/// REQUIRES: called within read_json(), because it throws on a wrong type.
template <class Value>
Value value_at(const nlohmann::json& object, std::string_view key);

/// Calls `read` with the parsed document. kInternal, naming `what`: the text is not JSON, or `read`
/// found a wrong type.
base::Result<void> parse_json(std::string_view text, const std::string& what,
                              const std::function<void(const nlohmann::json&)>& read);

/// The value that `read` makes of the document.
template <class Value, class Read>
base::Result<Value> read_json(std::string_view text, const std::string& what, Read read) {
  std::optional<base::Result<Value>> value;
  const auto parsed =
      parse_json(text, what, [&](const nlohmann::json& whole) { value.emplace(read(whole)); });
  if (!parsed) return parsed.error();
  return *std::move(value);
}

}  // namespace muster::engine
