#include "engine/kubernetes/kubeconfig.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "base/bytes.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/yaml.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Fault;
using base::Result;
using base::YamlEntry;
using base::YamlValue;

namespace {

constexpr std::string_view kExecExtension = "client.authentication.k8s.io/exec";

/// Reads the tree of one file, and collects faults with their paths and lines.
class ConfigReader {
 public:
  explicit ConfigReader(const std::filesystem::path& file) : folder_(file.parent_path()) {}

  Kubeconfig read(const YamlValue& root) {
    Kubeconfig config;
    if (root.type == YamlValue::Type::kNull) return config;
    if (root.type != YamlValue::Type::kMap) {
      fault("", root.line, "is not a map; a kubeconfig has clusters, users and contexts");
      return config;
    }
    const std::string kind = text(root, "", "kind");
    if (!kind.empty() && kind != "Config") {
      fault("kind", line_of(root, "kind"), "is " + base::in_quotes(kind) + ", not 'Config'");
    }
    config.current_context = text(root, "", "current-context");
    named(root, "clusters", "cluster", config.clusters,
          [this](const YamlValue& value, const std::string& path) { return cluster(value, path); });
    named(root, "users", "user", config.users,
          [this](const YamlValue& value, const std::string& path) { return user(value, path); });
    named(root, "contexts", "context", config.contexts,
          [this](const YamlValue& value, const std::string& path) { return context(value, path); });
    return config;
  }

  std::vector<Fault> take_faults() { return std::move(faults_); }

 private:
  void fault(const std::string& field, int line, std::string what) {
    faults_.push_back({.field = field, .what = std::move(what), .line = line});
  }

  /// The value of a key; nullptr if it is missing or null. A repeated key is a fault.
  const YamlValue* member(const YamlValue& map, const std::string& path, std::string_view key) {
    const YamlValue* found = nullptr;
    for (const YamlEntry& entry : map.map) {
      if (entry.key != key) continue;
      if (found != nullptr) fault(inner(path, key), entry.line, "is given twice");
      found = &entry.value;
    }
    return found == nullptr || found->type == YamlValue::Type::kNull ? nullptr : found;
  }

  static std::string inner(const std::string& path, std::string_view key) {
    return path.empty() ? std::string(key) : path + "." + std::string(key);
  }
  static int line_of(const YamlValue& map, std::string_view key) {
    for (const YamlEntry& entry : map.map) {
      if (entry.key == key) return entry.line;
    }
    return map.line;
  }

  std::string text(const YamlValue& map, const std::string& path, std::string_view key) {
    const YamlValue* value = member(map, path, key);
    if (value == nullptr) return "";
    if (value->type == YamlValue::Type::kScalar) return value->scalar;
    fault(inner(path, key), value->line, "is not a text");
    return "";
  }

  bool flag(const YamlValue& map, const std::string& path, std::string_view key) {
    const std::string value = text(map, path, key);
    if (value.empty() || value == "false") return false;
    if (value == "true") return true;
    fault(inner(path, key), line_of(map, key), "is neither true nor false");
    return false;
  }

  const YamlValue* map_in(const YamlValue& map, const std::string& path, std::string_view key) {
    const YamlValue* value = member(map, path, key);
    if (value == nullptr || value->type == YamlValue::Type::kMap) return value;
    fault(inner(path, key), value->line, "is not a map");
    return nullptr;
  }

  /// The elements of a list with their paths.
  std::vector<std::pair<const YamlValue*, std::string>> list(const YamlValue& map,
                                                             const std::string& path,
                                                             std::string_view key) {
    std::vector<std::pair<const YamlValue*, std::string>> elements;
    const YamlValue* value = member(map, path, key);
    if (value == nullptr) return elements;
    if (value->type != YamlValue::Type::kList)
      fault(inner(path, key), value->line, "is not a list");
    for (const YamlValue& element : value->list) {
      elements.emplace_back(&element,
                            inner(path, key) + "[" + std::to_string(elements.size()) + "]");
    }
    return elements;
  }

  std::vector<std::string> texts(const YamlValue& map, const std::string& path,
                                 std::string_view key) {
    std::vector<std::string> found;
    for (const auto& [element, where] : list(map, path, key)) {
      if (element->type == YamlValue::Type::kScalar) {
        found.push_back(element->scalar);
      } else {
        fault(where, element->line, "is not a text");
      }
    }
    return found;
  }

  /// A list of {name: ..., KEY: {...}}.
  template <class Entry, class Read>
  void named(const YamlValue& root, const std::string& key, const std::string& content,
             std::map<std::string, Entry>& into, Read read) {
    for (const auto& [element, path] : list(root, "", key)) {
      if (element->type != YamlValue::Type::kMap) {
        fault(path, element->line, "is not a map with a name");
        continue;
      }
      const std::string name = text(*element, path, "name");
      if (name.empty()) fault(path + ".name", element->line, "is missing");
      static const YamlValue kEmpty{.type = YamlValue::Type::kMap};
      const YamlValue* value = map_in(*element, path, content);
      Entry entry = read(value == nullptr ? kEmpty : *value, path + "." + content);
      if (!into.emplace(name, std::move(entry)).second) {
        fault(path + ".name", line_of(*element, "name"),
              "is " + base::in_quotes(name) + ", which another of the " + key + " has");
      }
    }
  }

  /// KEY (a path) and KEY-data (base64 of the content), of which the latter wins.
  PemSource pem(const YamlValue& map, const std::string& path, const std::string& key) {
    PemSource source;
    const std::string data = text(map, path, key + "-data");
    if (!data.empty()) {
      // yaml-cpp keeps the line breaks of a folded text as blanks.
      std::string compact = data;
      std::erase_if(compact, [](char letter) { return letter == ' ' || letter == '\n'; });
      const auto decoded = base::from_base64(compact);
      if (decoded && !decoded->empty()) {
        source.text = *decoded;
      } else {
        fault(inner(path, key + "-data"), line_of(map, key + "-data"), "is not base64");
      }
    }
    source.file = file_in(map, path, key);
    return source;
  }

  std::filesystem::path file_in(const YamlValue& map, const std::string& path,
                                std::string_view key) {
    const std::string given = text(map, path, key);
    if (given.empty()) return {};
    return (folder_ / given).lexically_normal();
  }

  ClusterEntry cluster(const YamlValue& map, const std::string& path) {
    ClusterEntry entry{.server = text(map, path, "server"),
                       .tls_server_name = text(map, path, "tls-server-name"),
                       .skips_verification = flag(map, path, "insecure-skip-tls-verify"),
                       .authorities = pem(map, path, "certificate-authority"),
                       .proxy_url = text(map, path, "proxy-url")};
    if (entry.skips_verification && entry.authorities.is_given()) {
      fault(inner(path, "insecure-skip-tls-verify"), line_of(map, "insecure-skip-tls-verify"),
            "cannot be used together with a certificate authority");
    }
    for (const auto& [extension, where] : list(map, path, "extensions")) {
      if (extension->type != YamlValue::Type::kMap ||
          text(*extension, where, "name") != kExecExtension) {
        continue;
      }
      const YamlValue* value = member(*extension, where, "extension");
      if (value != nullptr) entry.exec_config = base::json_text(as_json(*value));
    }
    return entry;
  }

  /// Numbers and booleans become texts, because the tree does not distinguish `5` from `"5"`.
  static nlohmann::json as_json(const YamlValue& value) {
    switch (value.type) {
      case YamlValue::Type::kScalar:
        return base::as_utf8(value.scalar);
      case YamlValue::Type::kList: {
        nlohmann::json list = nlohmann::json::array();
        for (const YamlValue& element : value.list) list.push_back(as_json(element));
        return list;
      }
      case YamlValue::Type::kMap: {
        nlohmann::json map = nlohmann::json::object();
        for (const YamlEntry& entry : value.map) {
          map[base::as_utf8(entry.key)] = as_json(entry.value);
        }
        return map;
      }
      default:
        return nullptr;
    }
  }

  UserEntry user(const YamlValue& map, const std::string& path) {
    UserEntry entry{.certificate = pem(map, path, "client-certificate"),
                    .key = pem(map, path, "client-key"),
                    .token = text(map, path, "token"),
                    .token_file = file_in(map, path, "tokenFile")};
    if (entry.certificate.is_given() != entry.key.is_given()) {
      fault(path, map.line,
            entry.key.is_given() ? "has a client-key but no client-certificate"
                                 : "has a client-certificate but no client-key");
    }
    if (const YamlValue* provider = map_in(map, path, "auth-provider")) {
      entry.unsupported =
          "auth-provider " + base::in_quotes(text(*provider, inner(path, "auth-provider"), "name"));
    }
    if (member(map, path, "username") != nullptr || member(map, path, "password") != nullptr) {
      entry.unsupported = "username and password";
    }
    if (const YamlValue* exec = map_in(map, path, "exec")) {
      entry.exec = plugin(*exec, inner(path, "exec"));
    }
    entry.impersonation = impersonation(map, path);
    return entry;
  }

  Impersonation impersonation(const YamlValue& map, const std::string& path) {
    Impersonation as{.user = text(map, path, "as"),
                     .uid = text(map, path, "as-uid"),
                     .groups = texts(map, path, "as-groups")};
    if (const YamlValue* extra = map_in(map, path, "as-user-extra")) {
      const std::string where = inner(path, "as-user-extra");
      for (const YamlEntry& entry : extra->map) {
        as.extra[entry.key] = texts(*extra, where, entry.key);
      }
    }
    const bool has_lists =
        as.groups.size() > 1 || std::any_of(as.extra.begin(), as.extra.end(),
                                            [](const auto& one) { return one.second.size() > 1; });
    if (has_lists) {
      fault(inner(path, "as-groups"), map.line,
            "more than one group, or more than one value in as-user-extra, is not supported");
    }
    if (as.user.empty() && (!as.uid.empty() || !as.groups.empty() || !as.extra.empty())) {
      fault(inner(path, "as"), map.line, "is missing: as-uid, as-groups and as-user-extra need it");
    }
    return as;
  }

  ExecPlugin plugin(const YamlValue& map, const std::string& path) {
    ExecPlugin plugin{.command = text(map, path, "command"),
                      .arguments = texts(map, path, "args"),
                      .api_version = text(map, path, "apiVersion"),
                      .install_hint = text(map, path, "installHint"),
                      .needs_cluster = flag(map, path, "provideClusterInfo")};
    if (plugin.command.empty()) fault(inner(path, "command"), map.line, "is missing");
    // As in kubectl, a relative path is relative to the file, and a name is searched in PATH.
    if (plugin.command.find('/') != std::string::npos) {
      plugin.command = (folder_ / plugin.command).lexically_normal();
    }
    const bool is_v1 = plugin.api_version == "client.authentication.k8s.io/v1";
    if (!is_v1 && plugin.api_version != "client.authentication.k8s.io/v1beta1") {
      fault(inner(path, "apiVersion"), line_of(map, "apiVersion"),
            plugin.api_version.empty()
                ? "is missing: client.authentication.k8s.io/v1 or v1beta1"
                : "is " + base::in_quotes(plugin.api_version) +
                      "; supported are client.authentication.k8s.io/v1 and v1beta1");
    }
    for (const auto& [variable, where] : list(map, path, "env")) {
      if (variable->type != YamlValue::Type::kMap) {
        fault(where, variable->line, "is not a map of name and value");
        continue;
      }
      plugin.environment.emplace_back(text(*variable, where, "name"),
                                      text(*variable, where, "value"));
    }
    plugin.interactive = interactive_mode(map, path, is_v1);
    return plugin;
  }

  ExecPlugin::Interactive interactive_mode(const YamlValue& map, const std::string& path,
                                           bool is_required) {
    using Interactive = ExecPlugin::Interactive;
    const std::string mode = text(map, path, "interactiveMode");
    if (mode == "Never") return Interactive::kNever;
    if (mode == "Always") return Interactive::kAlways;
    if (mode.empty() && is_required) {
      fault(inner(path, "interactiveMode"), map.line, "is missing: Never, IfAvailable or Always");
    } else if (!mode.empty() && mode != "IfAvailable") {
      fault(inner(path, "interactiveMode"), line_of(map, "interactiveMode"),
            "is " + base::in_quotes(mode) + ", not Never, IfAvailable or Always");
    }
    return Interactive::kIfAvailable;
  }

  ContextEntry context(const YamlValue& map, const std::string& path) {
    ContextEntry entry{.cluster = text(map, path, "cluster"),
                       .user = text(map, path, "user"),
                       .space = text(map, path, "namespace")};
    if (entry.cluster.empty()) fault(inner(path, "cluster"), map.line, "is missing");
    return entry;
  }

  std::filesystem::path folder_;
  std::vector<Fault> faults_;
};

Error invalid_config(const std::string& source, std::vector<Fault> faults) {
  std::stable_sort(faults.begin(), faults.end(),
                   [](const Fault& a, const Fault& b) { return a.line < b.line; });
  return {.code = ErrorCode::kInvalid,
          .what = "kubeconfig " + base::in_quotes(source) + " is invalid",
          .advice = "`kubectl config view` shows how kubectl reads it",
          .faults = std::move(faults)};
}

template <class Entry>
std::string names_in(const std::map<std::string, Entry>& entries) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries) names.push_back(base::in_quotes(name));
  return names.empty() ? "none" : base::listed(names);
}

template <class Entry>
std::vector<std::string> keys_of(const std::map<std::string, Entry>& entries) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries) names.push_back(name);
  return names;
}

}  // namespace

Result<Kubeconfig> parse_kubeconfig(std::string_view text, const std::filesystem::path& file) {
  auto tree = base::parse_yaml(text);
  if (!tree) return invalid_config(file, std::move(tree).error().faults);
  ConfigReader reader(file);
  Kubeconfig config = reader.read(*tree);
  config.source = file;
  if (auto faults = reader.take_faults(); !faults.empty()) {
    return invalid_config(file, std::move(faults));
  }
  return config;
}

Kubeconfig merged(const std::vector<Kubeconfig>& files) {
  Kubeconfig all;
  for (const Kubeconfig& file : files) {
    if (all.current_context.empty()) all.current_context = file.current_context;
    all.clusters.insert(file.clusters.begin(), file.clusters.end());
    all.users.insert(file.users.begin(), file.users.end());
    all.contexts.insert(file.contexts.begin(), file.contexts.end());
    all.source += (all.source.empty() ? "" : ":") + file.source;
  }
  return all;
}

std::vector<std::filesystem::path> kubeconfig_paths(const std::string& variable,
                                                    const std::filesystem::path& home) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& path : base::split(variable, ':')) {
    if (!path.empty() && std::find(paths.begin(), paths.end(), path) == paths.end()) {
      paths.emplace_back(path);
    }
  }
  if (paths.empty()) paths.push_back(home / ".kube" / "config");
  return paths;
}

Result<Kubeconfig> load_kubeconfig(const std::vector<std::filesystem::path>& paths) {
  std::vector<Kubeconfig> files;
  std::optional<Error> fault;
  for (const std::filesystem::path& path : paths) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    MUSTER_TRY(const std::string text, base::read_file(path, base::kMaxYamlBytes));
    auto file = parse_kubeconfig(text, std::filesystem::absolute(path, ignored));
    if (file) {
      files.push_back(*std::move(file));
    } else if (!fault) {
      fault = std::move(file).error();
    } else {
      // The faults of a second file: its name goes with each of them.
      for (Fault each : file.error().faults) {
        each.field = path.string() + ": " + each.field;
        fault->faults.push_back(std::move(each));
      }
    }
  }
  if (fault) return *std::move(fault);
  if (!files.empty()) return merged(files);
  std::vector<std::string> names;
  for (const std::filesystem::path& path : paths) names.push_back(base::in_quotes(path.string()));
  return Error{.code = ErrorCode::kNotFound,
               .what = "no kubeconfig: " + base::listed(names, "and") +
                       (names.size() == 1 ? " does not exist" : " do not exist"),
               .advice = "set KUBECONFIG to the file that your cluster's administrator gave you"};
}

Result<ChosenContext> choose_context(const Kubeconfig& config, const std::string& name) {
  const std::string context_name = name.empty() ? config.current_context : name;
  const std::string in = " of kubeconfig " + base::in_quotes(config.source);
  if (context_name.empty()) {
    return Error{.code = ErrorCode::kNotFound,
                 .what = "kubeconfig " + base::in_quotes(config.source) + " has no current context",
                 .advice = "choose a context: it has " + names_in(config.contexts)};
  }
  const auto context = config.contexts.find(context_name);
  if (context == config.contexts.end()) {
    const std::string similar = base::nearest(context_name, keys_of(config.contexts));
    return Error{.code = ErrorCode::kNotFound,
                 .what = "context " + base::in_quotes(context_name) + in + " does not exist",
                 .advice = similar.empty() ? "it has " + names_in(config.contexts)
                                           : "did you mean " + base::in_quotes(similar) + "?"};
  }
  ChosenContext chosen{.name = context_name, .space = "default", .source = config.source};
  if (!context->second.space.empty()) chosen.space = context->second.space;
  Error error{.code = ErrorCode::kInvalid,
              .what = "context " + base::in_quotes(context_name) + in + " cannot be used"};
  const auto cluster = config.clusters.find(context->second.cluster);
  if (cluster == config.clusters.end()) {
    error.faults.push_back({.field = "cluster",
                            .what = base::in_quotes(context->second.cluster) +
                                    " is not among the clusters: " + names_in(config.clusters)});
  } else {
    chosen.cluster = cluster->second;
    if (chosen.cluster.server.empty()) {
      error.faults.push_back({.field = "cluster.server", .what = "is missing"});
    }
  }
  const auto user = config.users.find(context->second.user);
  if (context->second.user.empty())
    return error.faults.empty() ? Result<ChosenContext>(chosen) : error;
  if (user == config.users.end()) {
    error.faults.push_back({.field = "user",
                            .what = base::in_quotes(context->second.user) +
                                    " is not among the users: " + names_in(config.users)});
  } else if (!user->second.unsupported.empty()) {
    error.faults.push_back({.field = "user",
                            .what = base::in_quotes(context->second.user) + " uses " +
                                    user->second.unsupported + ", which Muster does not support"});
    error.advice = "use a client certificate, a token, or an exec plug-in";
  } else {
    chosen.user = user->second;
  }
  if (!error.faults.empty()) return error;
  return chosen;
}

}  // namespace muster::engine::kubernetes
