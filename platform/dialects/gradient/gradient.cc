#include "dialects/gradient/gradient.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "config/yaml.h"
#include "dialects/gradient/command_tree.h"
#include "dialects/gradient/commands.h"
#include "dialects/gradient/experiment.h"

namespace muster::dialects::gradient {

namespace {

const cli::Command& command_at(const cli::Command& root, const std::vector<std::string>& path) {
  const cli::Command* command = &root;
  for (const std::string& word : path) command = command->find_command(word);
  return *command;
}

/// A flag whose value was forgotten takes the next flag for it.
void report_swallowed_flags(const cli::Command& command, cli::Arguments& arguments) {
  for (const auto& [flag, values] : arguments.flags) {
    for (const std::string& value : values) {
      if (!value.starts_with("--") || command.find_flag(value) == nullptr) continue;
      arguments.faults.push_back(
          {.field = flag, .what = "needs a value; what follows it is the flag '" + value + "'"});
    }
  }
}

Result<void> read_options(const cli::Command& command, cli::Arguments& arguments) {
  const auto found = arguments.flags.find("--optionsFile");
  if (found == arguments.flags.end()) return {};
  const std::string& file = found->second.back();
  auto text = base::read_file(file, config::kMaxYamlBytes);
  if (!text) {
    base::Error error = std::move(text).error();
    error.code = base::ErrorCode::kInvalid;  // kNotFound would say that an experiment is missing
    return error;
  }
  return add_options(*text, file, command, arguments);
}

Result<int> write_options(const cli::Command& command, const cli::Arguments& arguments) {
  if (!arguments.faults.empty()) {
    return cli::usage_error(arguments.path, arguments.faults, "gradient");
  }
  // 0600: there may be a password among them.
  MUSTER_CHECK(base::write_file(arguments.flags.at("--createOptionsFile").back(),
                                options_text(command, arguments)));
  return cli::kExitDone;
}

bool creates(const std::vector<std::string>& path) {
  constexpr size_t kDepth = 3;
  return path.size() == kDepth && path[0] == "experiments" &&
         (path[1] == "create" || path[1] == "run");
}

Result<int> run_command_line(const std::vector<std::string>& words, const cli::Hooks& hooks) {
  const cli::Command root = command_tree();
  cli::Arguments arguments = cli::sort_arguments(root, words);
  if (arguments.has("--help")) {
    MUSTER_CHECK(cli::show(cli::help_text(root, arguments.path)));
    return cli::kExitDone;
  }
  if (arguments.path.empty() && arguments.has("--version")) arguments.path = {"version"};
  const cli::Command& command = command_at(root, arguments.path);
  report_swallowed_flags(command, arguments);
  MUSTER_CHECK(read_options(command, arguments));
  if (arguments.has("--createOptionsFile")) return write_options(command, arguments);
  MUSTER_TRY(const cli::Caller caller, cli::this_caller(hooks.context));
  cli::FlagReader reader(arguments);
  Invocation invocation{.path = arguments.path,
                        .arguments = arguments,
                        .reader = reader,
                        .caller = caller,
                        .hooks = hooks,
                        .words = words};
  return creates(arguments.path) ? create_or_run(invocation) : run_command(invocation);
}

}  // namespace

int run(const std::vector<std::string>& words, const cli::Hooks& hooks) {
  return cli::run_and_tell("gradient", [&] { return run_command_line(words, hooks); });
}

namespace {

using base::Error;
using base::ErrorCode;
using nlohmann::ordered_json;
using Type = config::YamlValue::Type;

constexpr std::string_view kDataset = "--dataset";
constexpr const char* kDatasets = "datasets";

bool is_option(const cli::Flag& flag) {
  return flag.name != "--help" && flag.name != "--optionsFile" &&
         flag.name != "--createOptionsFile";
}

/// "--datasetAwsEndpoint" -> "awsEndpoint".
std::string dataset_key(const std::string& flag) {
  std::string key = flag.substr(kDataset.size());
  key.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(key.front())));
  return key;
}

class OptionsReader {
 public:
  OptionsReader(const cli::Command& command, cli::Arguments& arguments)
      : command_(command), arguments_(arguments), given_(arguments.flags) {}

  base::Result<void> read(const config::YamlValue& root, const std::string& file) {
    if (root.type == Type::kMap) {
      fields_.map(root, "", keys());
    } else if (root.type != Type::kNull) {
      fields_.fault("", "must be a map of options and values, but is " + config::name_of(root.type),
                    root.line);
    }
    if (fields_.ok()) return {};
    std::vector<base::Fault> faults = fields_.sorted_faults();
    return Error{.code = ErrorCode::kInvalid,
                 .what = "'" + file + "' has " +
                         base::count_text(static_cast<int64_t>(faults.size()), "fault"),
                 .faults = std::move(faults)};
  }

 private:
  using Value = const config::YamlValue&;

  config::YamlFields::Keys keys() {
    config::YamlFields::Keys keys;
    for (const cli::Flag& flag : command_.flags) {
      if (!is_option(flag)) continue;
      keys.emplace_back(flag.name.substr(2), [this, &flag](Value value) { take(flag, value); });
    }
    if (command_.find_flag("--datasetUri") != nullptr) {
      keys.emplace_back(kDatasets, [this](Value value) { take_datasets(value); });
    }
    return keys;
  }

  /// What a key says: nothing where its value is null.
  void take(const cli::Flag& flag, Value value) {
    if (value.type == Type::kNull) return;
    const std::string key = flag.name.substr(2);
    if (flag.name.starts_with(kDataset) && fields_.has(kDatasets)) return says_both(key, value);
    std::vector<std::string> values;
    if (flag.is_switch()) {
      if (read_switch(key, value)) values = {"true"};
    } else if (flag.repeats) {
      values = read_list(key, value);
    } else if (value.type == Type::kMap) {
      values = {json_of(key, value).dump()};
    } else if (std::string text; fields_.text(key, value, text)) {
      if (!flag.value_optional || text != "false") values = {text};
    }
    if (!values.empty()) give(flag.name, std::move(values));
  }

  bool read_switch(const std::string& key, Value value) {
    std::optional<bool> read;
    fields_.flag(key, value, read);
    return read.value_or(false);
  }

  std::vector<std::string> read_list(const std::string& key, Value value) {
    if (value.type == Type::kScalar) return {value.scalar};
    std::vector<std::string> values;
    if (!fields_.is(key, value, Type::kList)) return values;
    for (size_t i = 0; i < value.list.size(); ++i) {
      std::string text = kNone;
      const Value item = value.list[i];
      if (item.type != Type::kNull) fields_.text(key + "[" + std::to_string(i) + "]", item, text);
      values.push_back(std::move(text));
    }
    return values;
  }

  /// Scalars stay the text they are: what becomes of them is text, too.
  ordered_json json_of(const std::string& path, Value value) {
    if (value.type == Type::kScalar) return value.scalar;
    if (value.type == Type::kNull) return nullptr;
    ordered_json json = value.type == Type::kList ? ordered_json::array() : ordered_json::object();
    for (const config::YamlValue& item : value.list) json.push_back(json_of(path, item));
    for (const config::YamlEntry& entry : value.map) {
      const std::string field = path + "." + entry.key;
      if (json.contains(entry.key)) fields_.fault(field, "is given twice", entry.line);
      json[entry.key] = json_of(field, entry.value);
    }
    return json;
  }

  void take_datasets(Value value) {
    if (value.type == Type::kNull) return;
    for (const auto& [flag, values] : arguments_.flags) {
      const bool from_file = flag.starts_with(kDataset) && !given_.contains(flag);
      if (from_file) return says_both(flag.substr(2), value);
    }
    if (!fields_.is(kDatasets, value, Type::kList)) return;
    for (size_t i = 0; i < value.list.size(); ++i) take_dataset(i, value.list[i]);
  }

  void take_dataset(size_t index, Value value) {
    const std::string field = std::string(kDatasets) + "[" + std::to_string(index) + "]";
    if (!fields_.is(field, value, Type::kMap)) return;
    std::map<std::string, std::string> said;
    config::YamlFields::Keys keys;
    for (const cli::Flag& flag : command_.flags) {
      if (!flag.name.starts_with(kDataset)) continue;
      const std::string key = dataset_key(flag.name);
      keys.emplace_back(key, [this, field, key, name = flag.name, &said](Value part) {
        if (part.type == Type::kNull) return;
        fields_.text(field + "." + key, part, said[name]);
      });
    }
    fields_.map(value, field + ".", keys);
    // Positions count: what this one lacks is filled up.
    for (const cli::Flag& flag : command_.flags) {
      if (!flag.name.starts_with(kDataset) || datasets_are_given()) continue;
      const auto found = said.find(flag.name);
      arguments_.flags[flag.name].push_back(found == said.end() ? kNone : found->second);
    }
  }

  bool datasets_are_given() const {
    return std::any_of(given_.begin(), given_.end(),
                       [](const auto& flag) { return flag.first.starts_with(kDataset); });
  }

  void says_both(const std::string& key, Value value) {
    fields_.fault(key, "does not go with the list 'datasets'; say it there", value.line);
  }

  void give(const std::string& flag, std::vector<std::string> values) {
    if (!given_.contains(flag)) arguments_.flags[flag] = std::move(values);
  }

  const cli::Command& command_;
  cli::Arguments& arguments_;
  const std::map<std::string, std::vector<std::string>> given_;  ///< on the command line
  config::YamlFields fields_;
};

ordered_json json_of(const cli::Flag& flag, const cli::Arguments& arguments) {
  const auto found = arguments.flags.find(flag.name);
  if (flag.is_switch()) return found != arguments.flags.end();
  if (found == arguments.flags.end()) return nullptr;
  if (flag.repeats) return found->second;
  return found->second.back();
}

}  // namespace

base::Result<void> add_options(std::string_view text, const std::string& file,
                               const cli::Command& command, cli::Arguments& arguments) {
  const auto root = config::parse_yaml(text);
  if (!root) {
    Error error = root.error();
    error.what = "'" + file + "' is no YAML that can be used";
    return error;
  }
  return OptionsReader(command, arguments).read(*root, file);
}

std::string options_text(const cli::Command& command, const cli::Arguments& arguments) {
  ordered_json json = ordered_json::object();
  for (const cli::Flag& flag : command.flags) {
    if (is_option(flag) && !flag.hidden) json[flag.name.substr(2)] = json_of(flag, arguments);
  }
  return cli::json_to_yaml(json.dump());
}

}  // namespace muster::dialects::gradient
