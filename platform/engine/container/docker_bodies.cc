#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/json_text.h"
#include "base/text.h"
#include "engine/container/docker_json.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using nlohmann::json;

namespace {

constexpr int64_t kNanosecondsOfCpu = 1'000'000;  ///< a thousandth of a CPU, in a second
constexpr int64_t kCpuPeriod = 100'000;

/// JSON requires UTF-8, and texts must not be altered, so other texts are errors.
Result<std::string> to_text(const json& body, const std::string& what) {
  try {
    return body.dump();
  } catch (const json::type_error&) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = what + " contains text that is not UTF-8, which the engine cannot accept",
                 .advice = "encode it, e.g. in base64"};
  }
}

std::string variable_name_of(const std::string& variable) {
  return base::as_utf8(variable.substr(0, variable.find('=')));
}

/// The only such fault that users can cause; other texts are validated with the job.
Result<void> check_environment(const std::vector<std::string>& environment) {
  Error error{
      .code = ErrorCode::kInvalid,
      .what = "the environment contains values that are not UTF-8, which the engine cannot accept",
      .advice = "encode them, e.g. in base64"};
  for (const std::string& variable : environment) {
    if (base::is_utf8(variable)) continue;
    error.faults.push_back({.field = variable_name_of(variable), .what = "is not UTF-8"});
  }
  if (error.faults.empty()) return {};
  return error;
}

bool is_host(const ContainerConfig& config) {
  return config.network == "host";
}

/// "none": the shim keeps the output of its task.
json log_config() {
  return {{"Type", "none"}, {"Config", json::object()}};
}

/// Without noexec: programs compile code in /tmp and run it.
std::string tmpfs_options(const DockerMount& mount) {
  std::string options = "rw,exec,nosuid,nodev,mode=1777";
  if (mount.tmpfs_bytes > 0) options += ",size=" + std::to_string(mount.tmpfs_bytes);
  return options;
}

/// "0" -> "nvidia.com/gpu=0"
std::string cdi_name(const std::string& gpu) {
  return gpu.find('=') != std::string::npos ? gpu : "nvidia.com/gpu=" + gpu;
}

json device_requests(const ContainerConfig& config, const DockerInfo& engine) {
  const bool by_cdi = engine.has_cdi && !engine.has_nvidia_runtime;
  json ids = json::array();
  for (const std::string& gpu : config.gpus) ids.push_back(by_cdi ? cdi_name(gpu) : gpu);
  if (by_cdi) return {{{"Driver", "cdi"}, {"DeviceIDs", ids}}};
  // Any driver with the capability "gpu", because the driver's name differs between installations.
  return {{{"Driver", ""}, {"DeviceIDs", ids}, {"Capabilities", {{"gpu"}}}}};
}

void add_mounts(const ContainerConfig& config, json& body, json& host) {
  for (const DockerMount& mount : config.mounts) {
    if (mount.kind == DockerMount::Kind::kTmpfs) {
      host["Tmpfs"][mount.target] = tmpfs_options(mount);
    } else if (mount.kind == DockerMount::Kind::kVolume && mount.source.empty()) {
      body["Volumes"][mount.target] = json::object();
    } else {
      const bool is_bind = mount.kind == DockerMount::Kind::kBind;
      host["Mounts"].push_back({{"Type", is_bind ? "bind" : "volume"},
                                {"Source", mount.source},
                                {"Target", mount.target},
                                {"ReadOnly", mount.read_only}});
    }
  }
}

/// Enough for the threads and ranks of any training, and few enough that the host survives a fork
/// bomb. Podman's default is 2,048, Docker has no limit.
constexpr int kMostProcesses = 32'768;

int64_t most_processes(const ContainerConfig& config) {
  return config.processes > 0 ? config.processes : kMostProcesses;
}

void add_limits(const ContainerConfig& config, const DockerInfo& engine, json& host) {
  host["PidsLimit"] = most_processes(config);
  if (config.cpu_milli > 0) host["NanoCpus"] = config.cpu_milli * kNanosecondsOfCpu;
  if (config.memory_bytes > 0) host["Memory"] = config.memory_bytes;
  // Equal to the memory limit: no swap. By default engines add as much swap as memory.
  if (config.memory_bytes > 0 && engine.limits_swap) host["MemorySwap"] = config.memory_bytes;
  if (config.shm_bytes > 0) host["ShmSize"] = config.shm_bytes;
}

/// Docker's list of hidden files can only be replaced as a whole, so nothing is added to it.
void add_security(const ContainerConfig& config, const DockerInfo& engine, json& host) {
  if (config.read_only_root) host["ReadonlyRootfs"] = true;
  if (config.no_new_privileges) host["SecurityOpt"].push_back("no-new-privileges");
  if (engine.is_podman && !config.hidden.empty()) {
    host["SecurityOpt"].push_back("mask=" + base::joined(config.hidden, ":"));
  }
  if (config.drop_all_capabilities) host["CapDrop"] = {"ALL"};
  if (!config.capabilities.empty()) host["CapAdd"] = config.capabilities;
}

void add_network(const ContainerConfig& config, json& body, json& host) {
  for (const auto& [name, address] : config.extra_hosts) {
    host["ExtraHosts"].push_back(name + ":" + address);
  }
  if (config.network.empty()) return;
  host["NetworkMode"] = config.network;
  if (is_host(config) || config.aliases.empty()) return;
  body["NetworkingConfig"]["EndpointsConfig"][config.network]["Aliases"] = config.aliases;
}

void add_program(const ContainerConfig& config, json& body) {
  if (!config.hostname.empty()) body["Hostname"] = config.hostname;
  if (!config.user.empty()) body["User"] = config.user;
  if (!config.folder.empty()) body["WorkingDir"] = config.folder;
  if (!config.entrypoint.empty()) body["Entrypoint"] = config.entrypoint;
  if (!config.command.empty()) body["Cmd"] = config.command;
  if (!config.environment.empty()) body["Env"] = config.environment;
  body["Labels"] = config.labels;
  body["Tty"] = false;
  body["OpenStdin"] = config.open_input;
  body["StdinOnce"] = config.open_input;
  body["AttachStdin"] = config.open_input;
  body["AttachStdout"] = true;
  body["AttachStderr"] = true;
}

// --- Podman's own request

json libpod_mounts(const ContainerConfig& config) {
  json mounts = json::array();
  for (const DockerMount& mount : config.mounts) {
    if (mount.kind == DockerMount::Kind::kVolume) continue;
    const bool is_bind = mount.kind == DockerMount::Kind::kBind;
    json options = json::array();
    if (is_bind) {
      options = {"rbind", mount.read_only ? "ro" : "rw"};
    } else {
      options = {"rw", "exec", "nosuid", "nodev", "mode=1777"};
      if (mount.tmpfs_bytes > 0) options.push_back("size=" + std::to_string(mount.tmpfs_bytes));
    }
    mounts.push_back({{"type", is_bind ? "bind" : "tmpfs"},
                      {"source", is_bind ? mount.source : "tmpfs"},
                      {"destination", mount.target},
                      {"options", options}});
  }
  return mounts;
}

json libpod_volumes(const ContainerConfig& config) {
  json volumes = json::array();
  for (const DockerMount& mount : config.mounts) {
    if (mount.kind != DockerMount::Kind::kVolume) continue;
    json volume{{"Dest", mount.target}, {"Options", {mount.read_only ? "ro" : "rw"}}};
    if (!mount.source.empty()) volume["Name"] = mount.source;
    volumes.push_back(volume);
  }
  return volumes;
}

json libpod_limits(const ContainerConfig& config, const DockerInfo& engine) {
  json limits{{"pids", {{"limit", most_processes(config)}}}};
  if (config.cpu_milli > 0) {
    limits["cpu"] = {{"period", kCpuPeriod}, {"quota", config.cpu_milli * kCpuPeriod / 1000}};
  }
  if (config.memory_bytes > 0) limits["memory"]["limit"] = config.memory_bytes;
  if (config.memory_bytes > 0 && engine.limits_swap) limits["memory"]["swap"] = config.memory_bytes;
  return limits;
}

json libpod_environment(const ContainerConfig& config) {
  json environment = json::object();
  for (const std::string& variable : config.environment) {
    const size_t end = variable.find('=');
    environment[variable.substr(0, end)] = end == std::string::npos ? "" : variable.substr(end + 1);
  }
  return environment;
}

void add_libpod_network(const ContainerConfig& config, json& body) {
  for (const auto& [name, address] : config.extra_hosts) {
    body["hostadd"].push_back(name + ":" + address);
  }
  if (config.network.empty()) return;
  body["netns"]["nsmode"] = is_host(config) ? "host" : "bridge";
  if (is_host(config)) return;
  body["networks"][config.network] = json::object();
  if (!config.aliases.empty()) body["networks"][config.network]["aliases"] = config.aliases;
}

void add_libpod_program(const ContainerConfig& config, json& body) {
  body["name"] = config.name;
  body["image"] = config.image;
  if (!config.hostname.empty()) body["hostname"] = config.hostname;
  if (!config.user.empty()) body["user"] = config.user;
  if (!config.folder.empty()) body["work_dir"] = config.folder;
  if (!config.entrypoint.empty()) body["entrypoint"] = config.entrypoint;
  if (!config.command.empty()) body["command"] = config.command;
  body["env"] = libpod_environment(config);
  body["labels"] = config.labels;
  body["stdin"] = config.open_input;
  body["log_configuration"] = {{"driver", "none"}};
}

void add_libpod_security(const ContainerConfig& config, json& body) {
  body["read_only_filesystem"] = config.read_only_root;
  body["no_new_privileges"] = config.no_new_privileges;
  if (config.drop_all_capabilities) body["cap_drop"] = {"ALL"};
  if (!config.capabilities.empty()) body["cap_add"] = config.capabilities;
  if (!config.hidden.empty()) body["mask"] = config.hidden;
}

}  // namespace

Result<std::string> create_body(const ContainerConfig& config, const DockerInfo& engine) {
  MUSTER_CHECK(check_environment(config.environment));
  json body{{"Image", config.image}};
  json host{{"LogConfig", log_config()}};
  add_program(config, body);
  // Disables the image's health check, which would run programs beside the task. Podman would
  // misread Docker's form, and ask systemd to run it.
  if (!engine.is_podman) body["Healthcheck"] = {{"Test", {"NONE"}}};
  add_mounts(config, body, host);
  add_limits(config, engine, host);
  add_security(config, engine, host);
  add_network(config, body, host);
  if (!config.gpus.empty()) host["DeviceRequests"] = device_requests(config, engine);
  body["HostConfig"] = std::move(host);
  return to_text(body, "container '" + config.name + "'");
}

Result<std::string> libpod_create_body(const ContainerConfig& config, const DockerInfo& engine) {
  MUSTER_CHECK(check_environment(config.environment));
  json body = json::object();
  add_libpod_program(config, body);
  add_libpod_security(config, body);
  add_libpod_network(config, body);
  body["mounts"] = libpod_mounts(config);
  body["volumes"] = libpod_volumes(config);
  body["resource_limits"] = libpod_limits(config, engine);
  if (config.shm_bytes > 0) body["shm_size"] = config.shm_bytes;
  for (const std::string& gpu : config.gpus) body["devices"].push_back({{"path", cdi_name(gpu)}});
  return to_text(body, "container '" + config.name + "'");
}

Result<std::string> exec_body(const DockerExec& exec) {
  MUSTER_CHECK(check_environment(exec.environment));
  json body{{"Cmd", exec.argv},          {"Env", exec.environment}, {"Tty", exec.terminal},
            {"AttachStdin", exec.input}, {"AttachStdout", true},    {"AttachStderr", true}};
  if (!exec.user.empty()) body["User"] = exec.user;
  if (!exec.folder.empty()) body["WorkingDir"] = exec.folder;
  return to_text(body, "the command");
}

std::string exec_start_body(bool terminal) {
  return base::json_text(json{{"Detach", false}, {"Tty", terminal}});
}

std::string network_body(const std::string& name,
                         const std::map<std::string, std::string>& labels) {
  // Without CheckDuplicate older engines create a second network of the same name.
  return base::json_text(
      json{{"Name", name}, {"Driver", "bridge"}, {"CheckDuplicate", true}, {"Labels", labels}});
}

std::string volume_body(const std::string& name, const std::map<std::string, std::string>& labels) {
  return base::json_text(json{{"Name", name}, {"Labels", labels}});
}

std::string filters(const std::vector<std::string>& labels, const std::vector<std::string>& types) {
  json body = json::object();
  if (!labels.empty()) body["label"] = labels;
  if (!types.empty()) body["type"] = types;
  return base::json_text(body);
}

std::string registry_auth(const RegistryAccess& access) {
  const json body{{"username", access.username},
                  {"password", access.password},
                  {"serveraddress", access.server}};
  return base::to_base64_for_urls(base::json_text(body));
}

}  // namespace muster::engine
