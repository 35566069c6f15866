#include "config/server_config.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "base/units.h"
#include "config/paths.h"
#include "config/server_keys.h"
#include "config/yaml.h"
#include "record/field.h"

namespace muster::config {

namespace fs = std::filesystem;

namespace {

using base::Error;
using base::ErrorCode;
using base::Fault;

// one more byte, so that the parser reports the excess
constexpr size_t kMostConfig = kMaxYamlBytes + 1;

/// "limits" of "limits.request_rate"; empty for a top-level key.
std::string group_of(const std::string& name) {
  const size_t dot = name.find('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

/// The names in a group; at the top level, also the names of the groups.
std::vector<std::string> names_in(const std::string& group) {
  std::vector<std::string> names;
  for (const ServerKey& key : server_keys()) {
    const std::string its_group = group_of(key.name);
    if (its_group == group) {
      names.push_back(key.name.substr(group.empty() ? 0 : group.size() + 1));
    } else if (group.empty() && (names.empty() || names.back() != its_group)) {
      names.push_back(its_group);
    }
  }
  return names;
}

const ServerKey* find_key(const std::string& name) {
  const auto found = std::find_if(server_keys().begin(), server_keys().end(),
                                  [&](const ServerKey& key) { return key.name == name; });
  return found == server_keys().end() ? nullptr : &*found;
}

class ConfigReader {
 public:
  ConfigReader(fs::path folder, bool file_was_named, const ServeOptions& defaults)
      : folder_(std::move(folder)), file_was_named_(file_was_named), options_(defaults) {}

  Result<ServeOptions> read(const YamlValue& root, const std::string& source) {
    FieldLines lines;
    const auto document = record::ValueTree::of(human_document(root, lines, faults_));
    const record::Path top;
    const record::Input whole{document.root(), top, faults_, record::Form::kHuman};
    if (!document.root().is_null()) read_group(whole, "");
    if (faults_.empty()) return options_;
    locate(faults_, lines, root.line);
    return Error{.code = ErrorCode::kInvalid,
                 .what = "'" + source + "' has " +
                         base::count_text(static_cast<int64_t>(faults_.size()), "fault"),
                 .advice = "every key is in docs/configuration.md",
                 .faults = std::move(faults_)};
  }

 private:
  /// `group`: "limits"; empty: the whole file.
  void read_group(const record::Input& input, const std::string& group) {
    record::read_pairs(input, [&](const std::string& name, const record::Input& value) {
      const std::vector<std::string> known = names_in(group);
      const std::string full = group.empty() ? name : group + "." + name;
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        value.note("unknown key" + record::did_you_mean(name, known));
      } else if (const ServerKey* key = find_key(full)) {
        read_key(*key, value);
      } else if (!value.value.is_null()) {  // null: all keys of the group are commented out
        read_group(value, name);
      }
    });
  }

  void read_key(const ServerKey& key, const record::Input& value) {
    if (!key.only_named_files || file_was_named_) return key.read({value, folder_}, options_);
    value.note(
        "belongs in a file that --config names. Commands do not read this file and would look for "
        "the server elsewhere; set $" +
        key.variable + ", which both read");
  }

  fs::path folder_;
  bool file_was_named_;
  ServeOptions options_;
  std::vector<Fault> faults_;
};

/// Reports each host of `table` that is missing in container_hosts.
void add_strangers(const std::string& field, const std::map<std::string, std::string>& table,
                   const ServeOptions& options, std::vector<Fault>& faults) {
  for (const auto& [name, value] : table) {
    if (options.container_hosts.contains(name)) continue;
    faults.push_back({.field = field + "." + name, .what = "is not a host of container_hosts"});
  }
}

/// "containers" of "container".
std::string tasks_of(const std::string& engine) {
  if (engine == "slurm") return "Slurm";
  return engine == "kubernetes" ? "Kubernetes" : engine + "s";
}

/// Faults of options for an engine that is not in use.
std::vector<Fault> faults_of_engines(const ServeOptions& options) {
  std::vector<Fault> faults;
  for (const ServerKey& key : server_keys()) {
    if (key.engine.empty() || key.engine == options.engine || key.same(options, {})) continue;
    faults.push_back({.field = key.name,
                      .what = "is for " + tasks_of(key.engine) + ": engine: " + key.engine +
                              " (--engine " + key.engine + ")"});
  }
  return faults;
}

std::vector<Fault> faults_of_slurm(const ServeOptions& options) {
  if (!options.slurm_rest.empty() || options.engine != "slurm") return {};
  std::vector<Fault> faults;
  const auto need_rest = [&](bool is_set, const std::string& key) {
    if (is_set) faults.push_back({.field = key, .what = "is for slurmrestd: slurm.rest"});
  };
  need_rest(!options.slurm_rest_user.empty(), "slurm.rest_user");
  need_rest(!options.slurm_token_command.empty(), "slurm.token_command");
  return faults;
}

std::vector<Fault> faults_of_hosts(const ServeOptions& options) {
  std::vector<Fault> faults;
  add_strangers("host_addresses", options.host_addresses, options, faults);
  add_strangers("host_gpus", options.host_gpus, options, faults);
  return faults;
}

/// A range must have an address for a job, beside the network's own, the server's and the one for all.
std::vector<Fault> faults_of_internet_range(const ServeOptions& options) {
  constexpr int kSmallest = 30;
  const bool is_used = options.engine == "process" && !options.listen.empty() &&
                       options.task_network == TaskNetwork::kOwn && options.task_internet;
  const std::string& range = options.task_internet_range;
  const auto bits = base::number_of<int>(std::string_view(range).substr(range.find('/') + 1));
  if (!is_used || !bits || *bits <= kSmallest) return {};
  return {{.field = "tasks.internet_range",
           .what = "'" + range + "' has no address for a job: give a network of /30 or larger"}};
}

/// A user who chooses another engine by a flag or a variable need not remove the configured
/// engine's options from the file.
void forget_other_engines(const ServerSource& source, ServeOptions& options) {
  const auto is_engine = [](const ServerSetting& setting) { return setting.key == "engine"; };
  const auto chosen = std::find_if(source.settings.rbegin(), source.settings.rend(), is_engine);
  if (chosen == source.settings.rend() || chosen->text == options.engine) return;
  for (const ServerKey& key : server_keys()) {
    if (!key.engine.empty() && key.engine != chosen->text) key.copy({}, options);
  }
  if (chosen->text != "container") options.host_addresses = options.host_gpus = {};
}

ConfigStamp stamp_of(const fs::path& file) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  return error ? ConfigStamp{.file = file} : ConfigStamp{.file = file, .written = written};
}

Result<ServeOptions> read_file_of(const ServerSource& source) {
  std::error_code error;
  const bool is_there = !source.file.empty() && fs::exists(source.file, error);
  if (!is_there && !source.file_was_named) return ServeOptions{};
  const auto text = base::read_file(source.file, kMostConfig);
  if (!text) {
    Error unreadable = text.error();
    unreadable.code = ErrorCode::kInvalid;  // kNotFound would mean that a job is missing
    return unreadable;
  }
  return parse_server_config(*text, source.file.string(), source.file.parent_path(),
                             source.file_was_named);
}

}  // namespace

Result<ServeOptions> parse_server_config(std::string_view text, const std::string& source,
                                         const fs::path& folder, bool file_was_named,
                                         const ServeOptions& defaults) {
  auto root = parse_yaml(text);
  if (!root) {
    Error error = std::move(root).error();
    error.what = "'" + source + "' is not valid YAML";
    return error;
  }
  return ConfigReader(folder, file_was_named, defaults).read(*root, source);
}

std::vector<Fault> apply_settings(const ServerSource& source, ServeOptions& options) {
  std::vector<Fault> faults;
  for (const ServerSetting& setting : source.settings) {
    const auto value = record::ValueTree::of(nlohmann::json(setting.text));
    const record::Path path(setting.named);
    const record::Input input{value.root(), path, faults, record::Form::kHuman};
    find_key(setting.key)->read({input, source.folder}, options);
  }
  return faults;
}

std::vector<Fault> contradictions(const ServeOptions& options) {
  std::vector<Fault> faults;
  if (options.tls_certificate.has_value() != options.tls_key.has_value()) {
    const bool lacks_key = options.tls_certificate.has_value();
    faults.push_back({.field = lacks_key ? "tls.certificate" : "tls.key",
                      .what = lacks_key ? "requires tls.key" : "requires tls.certificate"});
  }
  if (options.store_password_file && !options.store.starts_with("postgres")) {
    faults.push_back({.field = "store_password_file",
                      .what = "requires a store such as postgres://USER@HOST/DATABASE"});
  }
  for (std::vector<Fault> more : {faults_of_engines(options), faults_of_hosts(options),
                                  faults_of_slurm(options), faults_of_internet_range(options)}) {
    for (Fault& fault : more) faults.push_back(std::move(fault));
  }
  return faults;
}

namespace {

/// A database without its password and options.
std::string shown_store(const std::string& store) {
  const size_t scheme = store.find("://");
  if (scheme == std::string::npos) return store;
  std::string shown = store.substr(0, store.find('?'));
  const size_t begin = scheme + 3;
  const size_t at = shown.find('@', begin);
  const size_t colon = shown.find(':', begin);
  if (at != std::string::npos && colon < at) shown.erase(colon, at - colon);
  return shown;
}

}  // namespace

std::map<std::string, std::string> settings_of_variables(const ServeOptions& options) {
  return {{"MUSTER_ENGINE", options.engine},
          {"MUSTER_DECLARE_GPUS", options.declared_gpus},
          {"MUSTER_LOG_QUOTA", base::format_bytes(options.log_quota)},
          {"MUSTER_TASK_INTERNET", options.task_internet ? "true" : "false"},
          {"MUSTER_STORE", shown_store(options.store)}};
}

ServerSource with_usual_file(ServerSource source) {
  const fs::path folder = config_folder_here();
  if (!source.file_was_named && !folder.empty()) source.file = folder / "server.yaml";
  return source;
}

bool has_changed(const ConfigStamp& stamp) {
  return stamp != stamp_of(stamp.file);
}

Result<ServeOptions> read_server_options(const ServerSource& source) {
  // Taken before the file is read: a later write counts as a change.
  const ConfigStamp stamp = stamp_of(source.file);
  MUSTER_TRY(ServeOptions options, read_file_of(source));
  options.config = stamp;
  options.config_was_named = source.file_was_named;
  forget_other_engines(source, options);
  std::vector<Fault> faults = apply_settings(source, options);
  for (Fault& fault : contradictions(options)) faults.push_back(std::move(fault));
  if (faults.empty()) return options;
  return Error{.code = ErrorCode::kInvalid,
               .what = "the configuration of the server has settings that cannot be used together",
               .faults = std::move(faults)};
}

ServerOrigin origin_of(const ServeOptions& options, bool is_service) {
  return {.config = options.config_was_named ? options.config.file.string() : "",
          .listens = !options.listen.empty(),
          .on_postgres = options.store.starts_with("postgres"),
          .is_service = is_service,
          .certificate = options.tls_certificate.value_or("").string()};
}

ServerOrigin origin_there(const ServeOptions& options, bool is_service,
                          const ServerOrigin& recorded) {
  ServerOrigin own = origin_of(options, is_service);
  const bool read_it = options.config.written && recorded.config == options.config.file.string();
  if (own.config.empty() && read_it) own.config = recorded.config;
  return own;
}

const record::Table& table_of(const ServerOrigin*) {
  using record::field;
  static const record::Table table =
      record::table<ServerOrigin>(
          "ServerOrigin",
          {field<&ServerOrigin::config>("config"), field<&ServerOrigin::listens>("listens"),
           field<&ServerOrigin::on_postgres>("on_postgres"),
           field<&ServerOrigin::is_service>("is_service"),
           field<&ServerOrigin::certificate>("certificate")})
          .as_answer(record::Unknown::kIgnored);
  return table;
}

namespace {

/// "is started with --config /etc/muster/muster.yaml"
std::string start_text(const ServerOrigin& origin) {
  if (!origin.config.empty()) return "is started with --config " + origin.config;
  std::vector<std::string> parts;
  if (origin.listens) parts.emplace_back("listens for a team");
  if (origin.on_postgres) parts.emplace_back("has its database in PostgreSQL");
  return base::joined(parts, " and ");
}

std::string start_advice(const ServerOrigin& origin) {
  const std::string command =
      origin.config.empty() ? "" : "muster server --config " + origin.config;
  if (origin.is_service) {
    return "start its service, as with: systemctl start muster" +
           (command.empty() ? "" : " (it runs: " + command + ")");
  }
  if (!command.empty()) return "start it: " + command;
  return "start it with the settings that it had, such as: muster server " +
         std::string(origin.listens ? "--listen HOST:PORT" : "--store postgres://USER@HOST/NAME");
}

}  // namespace

Result<void> check_origin(const fs::path& state_folder, const ServerOrigin& recorded,
                          const ServerOrigin& own) {
  const bool lacks_something = (!recorded.config.empty() && own.config.empty()) ||
                               (recorded.listens && !own.listens) ||
                               (recorded.on_postgres && !own.on_postgres);
  if (!lacks_something) return {};
  return Error{.code = ErrorCode::kConflict,
               .what = "the server of '" + state_folder.string() + "' " + start_text(recorded),
               .advice = start_advice(recorded) +
                         "; if another server is to have the folder: muster server --take-over",
               .detail = std::make_shared<StartedOtherwise>()};
}

ServerOrigin recorded_origin(const fs::path& file) {
  constexpr size_t kMost = 64 << 10;
  const auto text = base::read_file(file, kMost);
  if (!text && text.error().code == ErrorCode::kNotFound) return {};
  const auto origin =
      text ? record::from_json<ServerOrigin>(*text, "origin") : Result<ServerOrigin>(text.error());
  return origin ? *origin : ServerOrigin{.listens = true};
}

Result<void> note_origin(const fs::path& file, const ServerOrigin& origin) {
  std::error_code error;
  if (origin.is_private()) {
    fs::remove(file, error);
    return error ? base::system_error("cannot remove '" + file.string() + "'", error.value())
                 : Result<void>();
  }
  if (recorded_origin(file) == origin && fs::exists(file, error)) return {};
  return base::write_file(file, record::to_json(origin) + "\n");
}

fs::path certificate_file(const ServerSource& source, const ServeOptions& options,
                          const Paths& paths) {
  const bool is_named =
      source.file_was_named ||
      std::any_of(source.settings.begin(), source.settings.end(),
                  [](const ServerSetting& setting) { return setting.key == "tls.certificate"; });
  const ServerOrigin recorded = recorded_origin(paths.server_origin());
  if (is_named || recorded.is_private()) {
    return options.tls_certificate.value_or(paths.certificate());
  }
  return recorded.certificate.empty() ? paths.certificate() : fs::path(recorded.certificate);
}

ConfigChanges changes_between(const ServeOptions& before, const ServeOptions& after) {
  ConfigChanges changes;
  for (const ServerKey& key : server_keys()) {
    if (key.same(before, after)) continue;
    (key.reloads ? changes.taken_over : changes.need_restart).push_back(key.name);
  }
  return changes;
}

ServeOptions with_reloaded(const ServeOptions& before, const ServeOptions& after) {
  ServeOptions result = before;
  for (const ServerKey& key : server_keys()) {
    if (key.reloads) key.copy(after, result);
  }
  result.config = after.config;
  return result;
}

}  // namespace muster::config
