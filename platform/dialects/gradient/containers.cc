#include "dialects/gradient/containers.h"

#include <algorithm>

#include "dialects/gradient/experiment_parts.h"
#include "job/container.h"

namespace muster::dialects::gradient {

namespace {

/// A role's flags, and what of the spec they set.
struct Role {
  std::string name;  ///< "worker"; empty: of a single node
  std::string& image;
  std::string& user;
  job::RegistryLogin& registry;

  /// "RegistryUrl" -> "--workerRegistryUrl", or "--registryUrl".
  std::string flag(const std::string& part) const {
    if (!name.empty()) return "--" + name + part;
    return std::string("--") + static_cast<char>(part[0] - 'A' + 'a') + part.substr(1);
  }
};

std::vector<Role> roles_of(bool is_single, Experiment& experiment) {
  job::JobSpec& spec = experiment.spec;
  const Role workers{.name = is_single ? "" : "worker",
                     .image = spec.image,
                     .user = spec.user,
                     .registry = spec.registry};
  const auto own = [](const std::string& name, job::RoleSpec& role) {
    return Role{.name = name, .image = role.image, .user = role.user, .registry = role.registry};
  };
  switch (experiment.type) {
    case Experiment::Type::kMpi:
      return {workers, own("master", spec.leader)};
    case Experiment::Type::kGrpc:
      return {workers, own("parameterServer", spec.parameter_server)};
    case Experiment::Type::kSingle:
      break;
  }
  return {workers};
}

void read_user(const Role& role, cli::FlagReader& reader) {
  std::vector<std::string> names{role.flag("ContainerUser")};
  if (role.name == "parameterServer") names.emplace_back("--parameterServerRegistryContainerUser");
  role.user = one_of(names, reader);
}

/// Notes the password where it will be kept. Two roles may use one account.
void note_password(const Role& role, const std::string& password, cli::FlagReader& reader,
                   Experiment& experiment) {
  const std::string& secret = role.registry.secret;
  auto& kept = experiment.passwords;
  const auto known = std::find_if(kept.begin(), kept.end(), [&](const RegistryPassword& other) {
    return other.secret == secret;
  });
  const std::string flag = role.flag("RegistryPassword");
  if (known == kept.end()) {
    kept.push_back({.flag = flag, .secret = secret, .password = password});
  } else if (known->password != password) {
    reader.fault(flag, "is another than " + known->flag + ", of the same user");
  }
}

void read_registry(const Role& role, cli::FlagReader& reader, Experiment& experiment) {
  const std::string username = reader.text(role.flag("RegistryUsername"));
  const std::string password = reader.text(role.flag("RegistryPassword"));
  const std::string url = reader.text(role.flag("RegistryUrl"));
  if (username.empty() && password.empty()) {
    if (url.empty()) return;
    experiment.notes.push_back(role.flag("RegistryUrl") +
                               " does nothing without a user and a password: the name of the "
                               "image says where it is");
    return;
  }
  for (const auto& [part, value] :
       {std::pair("RegistryUsername", username), std::pair("RegistryPassword", password)}) {
    if (value.empty()) reader.fault(role.flag(part), "is missing; a registry asks for both");
  }
  if (username.empty() || password.empty()) return;
  const std::string server = url.empty() ? "" : registry_of_url(url);
  const std::string where = server.empty() ? job::registry_of_image(role.image) : server;
  role.registry = {
      .server = server, .username = username, .secret = registry_secret(where, username)};
  note_password(role, password, reader, experiment);
}

}  // namespace

std::string registry_of_url(const std::string& url) {
  constexpr std::string_view kScheme = "://";
  const size_t scheme = url.find(kScheme);
  std::string host = scheme == std::string::npos ? url : url.substr(scheme + kScheme.size());
  host = host.substr(0, host.find('/'));
  return host == "index.docker.io" || host == "registry-1.docker.io" ? "docker.io" : host;
}

std::string registry_secret(const std::string& server, const std::string& username) {
  constexpr size_t kLongest = 128;
  std::string name = "REGISTRY_" + server + "_" + username;
  for (char& letter : name) {
    const bool fits = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                      (letter >= '0' && letter <= '9');
    if (!fits) letter = '_';
  }
  return name.substr(0, kLongest);
}

void read_containers(const std::vector<std::string>& path, cli::FlagReader& reader,
                     Experiment& experiment) {
  // Where there is none, that is told, and nothing more.
  experiment.spec.container.writable_root = !experiment.spec.image.empty();
  for (const Role& role : roles_of(path.at(2) == "singlenode", experiment)) {
    read_user(role, reader);
    read_registry(role, reader, experiment);
  }
}

}  // namespace muster::dialects::gradient
