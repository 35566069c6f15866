#include "engine/container/docker_json.h"

#include <cstdint>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/bytes.h"
#include "base/json_text.h"
#include "base/units.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using nlohmann::json;

namespace {

using Texts = std::vector<std::string>;
using TextMap = std::map<std::string, std::string>;

/// Bits of Go's os.FileMode for the kind of a file.
constexpr uint32_t kGoFolder = 1U << 31U;
constexpr uint32_t kGoSetuid = 1U << 23U;
constexpr uint32_t kGoSetgid = 1U << 22U;
constexpr uint32_t kGoSticky = 1U << 20U;

Error nonsense(const std::string& what) {
  return {.code = ErrorCode::kInternal, .what = what};
}

/// Names of containers begin with a slash, for historical reasons.
std::string plain_name(std::string name) {
  if (name.starts_with('/')) name.erase(0, 1);
  return name;
}

/// Parses decimals after the point, up to nine digits.
std::chrono::nanoseconds fraction_of(std::string_view digits) {
  int64_t value = 0;
  for (size_t i = 0; i < 9; ++i) value = value * 10 + (i < digits.size() ? digits[i] - '0' : 0);
  return std::chrono::nanoseconds(value);
}

/// "Z", "+02:00"
std::optional<std::chrono::minutes> zone_of(std::string_view text) {
  if (text == "Z") return std::chrono::minutes(0);
  if (text.size() != 6 || text[3] != ':') return std::nullopt;
  const auto hours = base::number_of<int>(text.substr(1, 2));
  const auto minutes = base::number_of<int>(text.substr(4, 2));
  if (!hours || !minutes || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  return std::chrono::minutes((*hours * 60 + *minutes) * (text[0] == '-' ? -1 : 1));
}

/// Parses RFC 3339. nullopt for the year 1, which engines use for events that have not happened.
std::optional<base::Time> rfc3339_time_of(const std::string& text) {
  std::tm parts{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr || parts.tm_year < 0) return std::nullopt;
  std::string_view left(rest);
  std::chrono::nanoseconds fraction{};
  if (left.starts_with('.')) {
    const size_t end = std::min(left.find_first_not_of("0123456789", 1), left.size());
    fraction = fraction_of(left.substr(1, end - 1));
    left.remove_prefix(end);
  }
  const auto zone = zone_of(left);
  if (!zone) return std::nullopt;
  return base::Time(std::chrono::seconds(::timegm(&parts))) + fraction - *zone;
}

/// Maps states that only Podman distinguishes to Docker's.
std::string docker_state(std::string state) {
  if (state == "configured" || state == "initialized") return "created";
  if (state == "stopped") return "exited";  // but not cleaned up behind
  if (state == "stopping") return "running";
  return state;
}

ContainerState listed_container(const json& entry) {
  ContainerState state{.id = value_at<std::string>(entry, "Id"),
                       .name = {},
                       .state = docker_state(value_at<std::string>(entry, "State")),
                       .error = {},
                       .labels = value_at<TextMap>(entry, "Labels")};
  const auto names = value_at<Texts>(entry, "Names");
  if (!names.empty()) state.name = plain_name(names.front());
  return state;
}

Named named_in(const json& list) {
  Named found;
  for (const json& entry : list) {
    found.emplace_back(value_at<std::string>(entry, "Name"), value_at<TextMap>(entry, "Labels"));
  }
  return found;
}

/// Values may have any type; only texts are used.
TextMap texts_in(const json& object) {
  TextMap texts;
  for (const auto& [key, value] : object.items()) {
    if (value.is_string()) texts[key] = value.get<std::string>();
  }
  return texts;
}

/// Maps Podman's own names of actions, which some of its versions send, to Docker's.
std::string docker_action(const std::string& action) {
  if (action == "died") return "die";
  if (action == "remove") return "destroy";
  return action;
}

}  // namespace

std::string architecture_name(std::string_view text) {
  if (text == "x86_64") return "amd64";
  if (text == "aarch64") return "arm64";
  return std::string(text);
}

Result<void> read_info(std::string_view text, DockerInfo& info) {
  return read_json<void>(
      text, "the engine's description of its host", [&](const json& body) -> Result<void> {
        info.version = value_at<std::string>(body, "ServerVersion");
        info.os = value_at<std::string>(body, "OSType");
        info.architecture = architecture_name(value_at<std::string>(body, "Architecture"));
        info.host_name = value_at<std::string>(body, "Name");
        info.cpus = value_at<int>(body, "NCPU");
        info.memory_bytes = value_at<int64_t>(body, "MemTotal");
        info.has_nvidia_runtime = !at(at(body, "Runtimes"), "nvidia").is_null();
        info.has_cdi = !value_at<Texts>(body, "CDISpecDirs").empty();
        info.limits_swap = value_at<bool>(body, "SwapLimit");
        return {};
      });
}

Result<DockerImage> read_image(std::string_view text) {
  return read_json<DockerImage>(
      text, "the engine's description of the image", [](const json& body) -> Result<DockerImage> {
        const json& config = at(body, "Config");
        DockerImage image{
            .id = value_at<std::string>(body, "Id"),
            .architecture = architecture_name(value_at<std::string>(body, "Architecture")),
            .os = value_at<std::string>(body, "Os"),
            .user = value_at<std::string>(config, "User"),
            .folder = value_at<std::string>(config, "WorkingDir"),
            .entrypoint = value_at<Texts>(config, "Entrypoint"),
            .command = value_at<Texts>(config, "Cmd"),
            .environment = value_at<Texts>(config, "Env")};
        if (image.id.empty()) return nonsense("the engine's description of the image lacks its id");
        return image;
      });
}

Result<std::string> read_id(std::string_view text) {
  return read_json<std::string>(
      text, "the engine's answer to a creation", [](const json& body) -> Result<std::string> {
        auto id = value_at<std::string>(body, "Id");
        if (id.empty()) return nonsense("the engine's answer to a creation lacks the id");
        return id;
      });
}

Result<ContainerState> read_container(std::string_view text) {
  return read_json<ContainerState>(
      text, "the engine's description of the container",
      [](const json& body) -> Result<ContainerState> {
        const json& state = at(body, "State");
        ContainerState found{
            .id = value_at<std::string>(body, "Id"),
            .name = plain_name(value_at<std::string>(body, "Name")),
            .state = docker_state(value_at<std::string>(state, "Status")),
            .exit_code = value_at<int>(state, "ExitCode"),
            .out_of_memory = value_at<bool>(state, "OOMKilled"),
            .error = value_at<std::string>(state, "Error"),
            .finished = rfc3339_time_of(value_at<std::string>(state, "FinishedAt")),
            .labels = value_at<TextMap>(at(body, "Config"), "Labels")};
        if (found.id.empty() || found.state.empty()) {
          return nonsense("the engine's description of the container lacks its id or state");
        }
        return found;
      });
}

Result<std::vector<ContainerState>> read_containers(std::string_view text) {
  using List = std::vector<ContainerState>;
  return read_json<List>(text, "the engine's list of containers",
                         [](const json& body) -> Result<List> {
                           if (!body.is_array())
                             return nonsense("the engine's list of containers is not a list");
                           List found;
                           for (const json& entry : body) found.push_back(listed_container(entry));
                           return found;
                         });
}

Result<DockerExit> read_exec(std::string_view text) {
  return read_json<DockerExit>(text, "the engine's report about the command",
                               [](const json& body) -> Result<DockerExit> {
                                 return DockerExit{.running = value_at<bool>(body, "Running"),
                                                   .code = value_at<int>(body, "ExitCode")};
                               });
}

Result<Named> read_networks(std::string_view text) {
  return read_json<Named>(text, "the engine's list of networks",
                          [](const json& body) -> Result<Named> { return named_in(body); });
}

Result<Named> read_volumes(std::string_view text) {
  return read_json<Named>(
      text, "the engine's list of volumes",
      [](const json& body) -> Result<Named> { return named_in(at(body, "Volumes")); });
}

Result<DockerEvent> read_event(std::string_view text) {
  return read_json<DockerEvent>(
      text, "the engine's event", [](const json& body) -> Result<DockerEvent> {
        const json& actor = at(body, "Actor");
        DockerEvent event{.action = docker_action(value_at<std::string>(body, "Action")),
                          .id = value_at<std::string>(actor, "ID"),
                          .attributes = texts_in(at(actor, "Attributes"))};
        const auto code = event.attributes.find("containerExitCode");
        if (code != event.attributes.end()) event.attributes.emplace("exitCode", code->second);
        return event;
      });
}

Result<PathFacts> read_path_facts(std::string_view base64) {
  const auto text = base::from_base64(base64);
  if (!text) return nonsense("the engine's description of the file is not base64");
  return read_json<PathFacts>(*text, "the engine's description of the file",
                              [](const json& body) -> Result<PathFacts> {
                                const auto mode = value_at<uint32_t>(body, "mode");
                                PathFacts facts{.name = value_at<std::string>(body, "name"),
                                                .size = value_at<int64_t>(body, "size"),
                                                .mode = mode & 0777U,
                                                .is_folder = (mode & kGoFolder) != 0,
                                                .link = value_at<std::string>(body, "linkTarget")};
                                if ((mode & kGoSetuid) != 0) facts.mode |= 04000U;
                                if ((mode & kGoSetgid) != 0) facts.mode |= 02000U;
                                if ((mode & kGoSticky) != 0) facts.mode |= 01000U;
                                return facts;
                              });
}

EngineWords read_words(std::string_view body) {
  const auto words = read_json<EngineWords>(
      body, "the engine's error", [](const json& error) -> Result<EngineWords> {
        return EngineWords{.message = value_at<std::string>(error, "message"),
                           .cause = value_at<std::string>(error, "cause")};
      });
  if (words && !words->message.empty()) return *words;
  while (body.ends_with('\n') || body.ends_with('\r')) body.remove_suffix(1);
  return {.message = std::string(body), .cause = {}};
}

const json& at(const json& object, std::string_view key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

template <class Value>
Value value_at(const json& object, std::string_view key) {
  const json& found = at(object, key);
  return found.is_null() ? Value() : found.get<Value>();
}

template std::string value_at(const json&, std::string_view);
template bool value_at(const json&, std::string_view);
template int value_at(const json&, std::string_view);
template int64_t value_at(const json&, std::string_view);
template uint32_t value_at(const json&, std::string_view);
template std::vector<std::string> value_at(const json&, std::string_view);
template std::map<std::string, std::string> value_at(const json&, std::string_view);

base::Result<void> parse_json(std::string_view text, const std::string& what,
                              const std::function<void(const json&)>& read) {
  try {
    read(base::parse_json_or_throw(text));
    return {};
  } catch (const json::exception& error) {
    return base::Error{.code = base::ErrorCode::kInternal,
                       .what = what + " cannot be read: " + error.what()};
  }
}

}  // namespace muster::engine
