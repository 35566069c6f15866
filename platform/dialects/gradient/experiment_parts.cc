#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json_text.h"
#include "base/text.h"
#include "dialects/gradient/command_tree.h"
#include "dialects/gradient/experiment.h"
#include "dialects/gradient/gradient.h"
#include "job/container.h"
#include "workspace/ignore_rules.h"

namespace muster::dialects::gradient {

namespace {

constexpr const char* kArtifacts = "/artifacts";

void read_variable(const std::string& name, const nlohmann::json& value, cli::FlagReader& reader,
                   job::JobSpec& spec) {
  constexpr std::string_view kSecret = "secret:";
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    if (text.starts_with(kSecret)) {
      spec.secrets.push_back({.name = text.substr(kSecret.size()), .variable = name, .file = {}});
    } else {
      spec.environment[name] = text;
    }
  } else if (value.is_number() || value.is_boolean()) {
    spec.environment[name] = base::json_text(value);
  } else {
    reader.fault("--experimentEnv", "the value of '" + name + "' is " +
                                        (value.is_null() ? "null" : base::json_text(value)) +
                                        "; give text, a number, true or false");
  }
}

std::string workspace_of(cli::FlagReader& reader) {
  return one_of({"--workspace", "--workspaceUrl", "--workspaceArchive"}, reader);
}

void read_workspace(cli::FlagReader& reader, Experiment& experiment) {
  const std::string where = workspace_of(reader);
  if (where.empty() || where == kNone) {
    for (const char* const flag :
         {"--workspaceRef", "--workspaceUsername", "--workspacePassword"}) {
      if (reader.has(flag)) reader.fault(flag, "needs --workspace URL");
    }
    return;
  }
  experiment.workspace =
      cli::spec::WorkspaceOptions{.source = {.where = where,
                                             .ref = reader.text("--workspaceRef"),
                                             .username = reader.text("--workspaceUsername"),
                                             .password = reader.text("--workspacePassword"),
                                             .flags = gradient_flag_names()},
                                  .ignore = workspace::split_patterns(reader.text("--ignoreFiles")),
                                  .program = "gradient"};
}

std::string below_workspace(const std::string& path) {
  auto absolute = (std::filesystem::path(kWorkspaceFolder) / path).lexically_normal().string();
  if (absolute.size() > 1 && absolute.ends_with('/')) absolute.pop_back();
  return absolute;
}

/// The folder of --artifactDirectory in its normal form, without a '/' at its end.
std::string artifact_folder(const cli::FlagReader& reader) {
  const std::string folder = reader.text("--artifactDirectory", kArtifacts);
  return folder.starts_with('/') ? below_workspace(folder) : folder;
}

/// The n-th value of a flag such as "--datasetAwsEndpoint"; "" if there is none.
std::string nth(const std::vector<std::string>& values, size_t index) {
  if (index >= values.size() || values[index] == kNone) return "";
  return values[index];
}

constexpr std::array<const char*, 10> kDatasetFlags{"--datasetUri",
                                                    "--datasetId",
                                                    "--datasetName",
                                                    "--datasetAwsAccessKeyId",
                                                    "--datasetAwsSecretAccessKey",
                                                    "--datasetAwsEndpoint",
                                                    "--datasetVersionId",
                                                    "--datasetEtag",
                                                    "--datasetVolumeKind",
                                                    "--datasetVolumeSize"};

/// The folder of a URI; empty, with a fault, if the URI is not a folder.
std::string dataset_folder(const std::string& uri, cli::FlagReader& reader) {
  constexpr std::string_view kFile = "file://";
  if (uri.starts_with(kFile)) return uri.substr(kFile.size());
  if (uri.find("://") == std::string::npos) return uri;
  const bool is_s3 = uri.starts_with("s3://");
  reader.fault("--datasetUri",
               "'" + uri + "' is not a local folder; download it first (" +
                   (is_s3 ? "aws s3 sync " + uri + " FOLDER" : "into FOLDER") +
                   ") and give --datasetUri FOLDER, or put it into /storage for all jobs");
  return "";
}

std::string dataset_name(const std::string& given, const std::string& folder) {
  if (!given.empty()) return given;
  const auto path = std::filesystem::path(folder + "/").lexically_normal().parent_path();
  return path.stem().string();
}

void read_dataset(size_t index, cli::FlagReader& reader, Experiment& experiment) {
  if (!nth(reader.texts("--datasetId"), index).empty()) {
    reader.fault("--datasetId", "'" + reader.texts("--datasetId")[index] +
                                    "' is unknown; give a folder with --datasetUri");
  }
  const std::string uri = nth(reader.texts("--datasetUri"), index);
  if (uri.empty()) return;
  const std::string folder = dataset_folder(uri, reader);
  if (folder.empty()) return;
  const std::string name = dataset_name(nth(reader.texts("--datasetName"), index), folder);
  const bool is_plain =
      !name.empty() && name.find('/') == std::string::npos && name != "." && name != "..";
  if (!is_plain) {
    return reader.fault("--datasetName",
                        "'" + name + "' is not a folder name; give a name without '/'");
  }
  const auto same = [&](const Dataset& other) { return other.name == name; };
  if (std::any_of(experiment.datasets.begin(), experiment.datasets.end(), same)) {
    return reader.fault(
        "--datasetName",
        "'" + name +
            "' is the name of two data sets; give them different names with --datasetName");
  }
  experiment.datasets.push_back({.uri = folder, .name = name});
  experiment.spec.volumes.push_back({.kind = job::Volume::Kind::kTree,
                                     .source = {},
                                     .target = data_folder(experiment.datasets.back()),
                                     .read_only = true});
}

/// Names may be tokens, so they are not stored either.
bool is_private(std::string_view flag) {
  return flag.ends_with("Password") || flag.ends_with("Username") ||
         flag.find("Aws") != std::string_view::npos;
}

bool is_kept(const cli::Flag& flag) {
  constexpr std::array<std::string_view, 14> kNotOfTheJob{"--apiKey",
                                                          "--optionsFile",
                                                          "--createOptionsFile",
                                                          "--help",
                                                          "--no-logs",
                                                          "--experimentType",
                                                          "--experimentTypeId",
                                                          "--workspace",
                                                          "--workspaceUrl",
                                                          "--workspaceArchive",
                                                          "--tag",
                                                          "--tags",
                                                          "--isPreemptible",
                                                          "--vpc"};
  const bool is_other =
      std::find(kNotOfTheJob.begin(), kNotOfTheJob.end(), flag.name) != kNotOfTheJob.end();
  return !is_other && !is_private(flag.name);
}

/// Whether the value only fills a position: in flags of data sets, "none" stands for no value.
bool is_placeholder(std::string_view flag, const std::vector<std::string>& values) {
  return flag.starts_with("--dataset") &&
         std::all_of(values.begin(), values.end(),
                     [](const std::string& value) { return value == kNone; });
}

/// Why a flag has no effect here; empty: it has an effect.
std::string why_nothing(std::string_view flag) {
  if (flag == "--vpc") return "has no effect";
  if (flag == "--isPreemptible") {
    return "has no effect: every experiment may run over its project's quota, and may be evicted";
  }
  if (flag == "--clusterId")
    return "has no effect: the current server decides where the experiment runs";
  if (flag == "--ports") return "is stored with the experiment, but opens no port";
  if (flag == "--modelType") return "is stored with the experiment, but registers no model";
  if (flag == "--tensorboard") return "is not supported; tensorboard --logdir reads the artifacts";
  if (flag.starts_with("--dataset") && flag != "--datasetUri" && flag != "--datasetName") {
    return "has no effect: a data set is a folder here";
  }
  return "";
}

std::vector<cli::Flag> flags_of(const std::vector<std::string>& path) {
  const cli::Command verb = path.at(1) == "run" ? run_command() : create_command();
  return verb.find_command(path.at(2))->flags;
}

}  // namespace

std::string one_of(const std::vector<std::string>& flags, cli::FlagReader& reader) {
  std::string first_value;
  std::string first;
  for (const std::string& flag : flags) {
    if (!reader.has(flag)) continue;
    const std::string value = reader.text(flag);
    if (first.empty()) {
      first = flag;
      first_value = value;
    } else if (value != first_value) {
      reader.fault(flag, "'" + value + "' differs from " + first + " '" + first_value +
                             "'; both set the same value, so give only one");
    }
  }
  return first_value;
}

std::string data_folder(const Dataset& dataset) {
  return "/data/" + dataset.name;
}

void read_environment(cli::FlagReader& reader, job::JobSpec& spec) {
  if (reader.has("--experimentEnv")) {
    const nlohmann::json json = base::parse_json(reader.text("--experimentEnv"));
    if (!json.is_object()) {
      reader.fault("--experimentEnv", "'" + reader.text("--experimentEnv") +
                                          "' is not a JSON object such as '{\"EPOCHS\": 5}'");
    } else {
      for (const auto& [name, value] : json.items()) read_variable(name, value, reader, spec);
    }
  }
  spec.environment.emplace("HOME", kWorkspaceFolder);
}

void read_places(cli::FlagReader& reader, Experiment& experiment) {
  read_workspace(reader, experiment);
  job::JobSpec& spec = experiment.spec;
  spec.folder = below_workspace(reader.text("--workingDirectory"));
  const std::string artifacts = artifact_folder(reader);
  if (!artifacts.starts_with('/')) {
    reader.fault("--artifactDirectory", "'" + artifacts + "' is not an absolute path");
  }
  spec.volumes = {{.kind = job::Volume::Kind::kTree, .source = {}, .target = kWorkspaceFolder},
                  {.kind = job::Volume::Kind::kStorage, .source = "storage", .target = "/storage"},
                  {.kind = job::Volume::Kind::kArtifacts, .source = {}, .target = artifacts}};
}

void read_datasets(cli::FlagReader& reader, Experiment& experiment) {
  const size_t count =
      std::max(reader.texts("--datasetUri").size(), reader.texts("--datasetId").size());
  size_t most = 0;
  for (const char* const flag : kDatasetFlags) most = std::max(most, reader.texts(flag).size());
  if (most > count) {
    return reader.fault("", "Too many dataset parameter sets (" + std::to_string(most) + ") for " +
                                std::to_string(count) +
                                " dataset URIs. Forgot to add one more dataset URI?");
  }
  for (size_t i = 0; i < count; ++i) read_dataset(i, reader, experiment);
}

void read_tags(cli::FlagReader& reader, job::JobSpec& spec) {
  std::vector<std::string> tags = reader.texts("--tag");
  const auto more = workspace::split_patterns(reader.text("--tags"));
  tags.insert(tags.end(), more.begin(), more.end());
  for (const std::string& tag : tags) spec.labels.emplace(tag, "");
}

void read_model(cli::FlagReader& reader, Experiment& experiment) {
  if (reader.has("--modelPath")) {
    if (reader.has("--modelType")) return;
    return reader.fault("",
                        "You have specified modelPath without modelType. Please specify modelType "
                        "as well.");
  }
  // By default, a single node stores its model among its artifacts.
  const bool is_single = experiment.type == Experiment::Type::kSingle;
  if (is_single && reader.has("--artifactDirectory")) {
    experiment.spec.environment.emplace("PS_MODEL_PATH", artifact_folder(reader));
  }
}

void keep_words(const std::vector<std::string>& path, const cli::FlagReader& reader,
                Experiment& experiment) {
  auto& kept = experiment.spec.annotations;
  for (const cli::Flag& flag : flags_of(path)) {
    const std::vector<std::string> values = reader.texts(flag.name);
    if (!reader.has(flag.name) || is_placeholder(flag.name, values)) continue;
    std::string text;
    for (const std::string& value : values) {
      text += (text.empty() ? "" : ",") + value;
    }
    if (is_kept(flag)) kept[kAnnotation + flag.name.substr(2)] = text;
    const std::string why = why_nothing(flag.name);
    if (!why.empty()) experiment.notes.push_back(flag.name + " " + why);
  }
  if (experiment.workspace) {
    kept[std::string(kAnnotation) + "workspace"] = experiment.workspace->source.where;
  }
}

namespace {

/// A role's flags, and the members of the spec that they set.
struct Role {
  std::string name;  ///< "worker"; empty: a single node
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

/// Records the password for storage as a secret. Two roles may use the same account.
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
    reader.fault(flag, "differs from " + known->flag + ", for the same user");
  }
}

void read_registry(const Role& role, cli::FlagReader& reader, Experiment& experiment) {
  const std::string username = reader.text(role.flag("RegistryUsername"));
  const std::string password = reader.text(role.flag("RegistryPassword"));
  const std::string url = reader.text(role.flag("RegistryUrl"));
  if (username.empty() && password.empty()) {
    if (url.empty()) return;
    experiment.notes.push_back(role.flag("RegistryUrl") +
                               " has no effect without a user and a password: the name of the "
                               "image contains the registry");
    return;
  }
  for (const auto& [part, value] :
       {std::pair("RegistryUsername", username), std::pair("RegistryPassword", password)}) {
    if (value.empty()) reader.fault(role.flag(part), "is missing; a registry needs both");
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
  // Without a container, only its absence is reported.
  experiment.spec.container.writable_root = !experiment.spec.image.empty();
  for (const Role& role : roles_of(path.at(2) == "singlenode", experiment)) {
    read_user(role, reader);
    read_registry(role, reader, experiment);
  }
}

}  // namespace muster::dialects::gradient
