// The table of a server's keys: its variables, the documentation and the packaged file agree with it.
#include "config/server_keys.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/connection/connection.h"
#include "config/server_config.h"
#include "config/test_server_config.h"
#include "record/value.h"

namespace muster::cli::server {

namespace {

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

TEST(SettingsOfVariables, HaveEveryVariableOfAServer) {
  std::set<std::string> variables;
  for (const config::ServerKey& key : config::server_keys()) {
    if (key.variable.starts_with("MUSTER_")) variables.insert(key.variable);
  }
  variables.erase("MUSTER_STATE_DIR");  // chooses the server

  std::set<std::string> found;
  for (const auto& [variable, value] : config::settings_of_variables({})) found.insert(variable);

  EXPECT_EQ(found, variables);
}

TEST(SettingsOfVariables, ContainNoPassword) {
  const auto shown = [](const char* store) {
    return config::settings_of_variables({.store = store}).at("MUSTER_STORE");
  };
  EXPECT_EQ(shown("postgres://ada:secret@db:5432/muster?password=secret"),
            "postgres://ada@db:5432/muster");
  EXPECT_EQ(shown("postgres://ada@db:5432/muster"), "postgres://ada@db:5432/muster");
  EXPECT_EQ(shown("/var/lib/muster.db"), "/var/lib/muster.db");
}

TEST(IgnoredSettings, AreThoseThatDifferFromTheServersInMeaning) {
  const std::map<std::string, std::string> server = config::settings_of_variables(
      {.log_quota = int64_t{1} << 30, .engine = "process", .declared_gpus = "4"});
  const auto ignored = [&](Environment environment) {
    std::string text;
    for (const IgnoredSetting& each : ignored_settings(environment, server)) {
      text += each.variable + "=" + each.requested.value_or("?") + " not " + each.present + "; ";
    }
    return text;
  };

  EXPECT_EQ(ignored({{"MUSTER_DECLARE_GPUS", "4"}, {"MUSTER_LOG_QUOTA", "1024Mi"}, {"HOME", "/"}}),
            "");
  EXPECT_EQ(ignored({{"MUSTER_DECLARE_GPUS", "8"}, {"MUSTER_ENGINE", "container"}}),
            "MUSTER_DECLARE_GPUS=8 not 4; MUSTER_ENGINE=container not process; ");
  EXPECT_EQ(ignored({{"MUSTER_LOG_QUOTA", "many"}}), "MUSTER_LOG_QUOTA=? not 1Gi; ");
  EXPECT_TRUE(ignored_settings({{"MUSTER_ENGINE", "slurm"}}, {}).empty())
      << "an older server does not report its settings";
}

TEST(IgnoredSettings, ContainNoPassword) {
  const auto requested = [](const std::string& store) {
    const auto server = config::settings_of_variables({.store = "/var/lib/muster.db"});
    const auto ignored = ignored_settings({{"MUSTER_STORE", store}}, server);
    return ignored.size() == 1 ? ignored.front().requested.value_or("invalid") : "not one setting";
  };
  EXPECT_EQ(requested("postgres://ada:secret@db2/muster"), "postgres://ada@db2/muster");
  EXPECT_EQ(requested("mysql://ada:secret@db2/muster"), "invalid");
}

TEST(ServerKeys, HaveAUniqueNameAndAFlagExceptForTablesAndTheHook) {
  std::set<std::string> names;
  std::set<std::string> flags;
  for (const config::ServerKey& key : config::server_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    // Commands that run in the server's name, and lists whose entries contain commas, can be set
    // only in the file.
    const bool has_no_flag = key.type == "table" || key.type == "list";
    EXPECT_EQ(key.flag.empty(), has_no_flag) << key.name;
    EXPECT_TRUE(has_no_flag || flags.insert(key.flag).second) << key.flag;
    EXPECT_FALSE(key.type.empty() || key.fallback.empty() || key.help.empty()) << key.name;
  }
}

TEST(ServerKeys, NameEachOfTheirChoices) {
  for (const config::ServerKey& key : config::server_keys()) {
    const std::string row = key.type + "\n" + key.fallback + "\n" + key.help;
    for (const std::string& choice : key.choices) {
      EXPECT_NE(row.find(choice), std::string::npos) << key.name << " lacks " << choice;
    }
  }
}

/// Sets one key to a text, in otherwise default options.
config::ServeOptions with_value(const config::ServerKey& key, const std::string& text) {
  config::ServeOptions options;
  const auto value = record::ValueTree::of(nlohmann::json(text));
  const record::Path path(key.name);
  std::vector<base::Fault> faults;
  key.read({record::Input{value.root(), path, faults, record::Form::kHuman}, "/"}, options);
  EXPECT_TRUE(faults.empty()) << key.name << ": " << text;
  return options;
}

TEST(ServerKeys, HaveTheDefaultsThatTheyName) {
  // Their default is not in the options: other code chooses it where nothing is set.
  const std::set<std::string> chosen_elsewhere{"state_dir", "tasks.subids",
                                               "kubernetes.gpu_resources"};
  for (const config::ServerKey& key : config::server_keys()) {
    // "auto: own where the server can"; a default in several words is a description, not a value.
    const std::string value =
        key.choices.empty() ? key.fallback : key.fallback.substr(0, key.fallback.find(':'));
    const bool is_value = value.find(' ') == std::string::npos && value != "none";
    if (!is_value || chosen_elsewhere.contains(key.name)) continue;
    EXPECT_TRUE(key.same(with_value(key, value), config::ServeOptions())) << key.name;
  }
}

/// "| `listen` | address | the unix socket only | `--listen` | no | TLS address |"
std::string row_of(const config::ServerKey& key) {
  std::string flag = key.flag.empty() ? "" : "`" + key.flag + "`";
  if (!key.variable.empty()) flag += ", `$" + key.variable + "`";
  return "| `" + key.name + "` | " + key.type + " | " + key.fallback + " | " + flag + " | " +
         (key.reloads ? "yes" : "no") + " | " + key.help + " |";
}

TEST(ServerKeys, AppearInTheDocumentationAsTheyAre) {
  const std::string page =
      text_of_file(std::filesystem::path(MUSTER_SOURCE) / "docs/configuration.md");
  std::string rows;
  for (const config::ServerKey& key : config::server_keys()) {
    rows += row_of(key) + "\n";
    EXPECT_NE(page.find(row_of(key) + "\n"), std::string::npos) << "lacks\n" << row_of(key);
  }
  size_t rows_of_page = 0;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) rows_of_page += line.starts_with("| `");
  EXPECT_EQ(rows_of_page, config::server_keys().size()) << "the table is\n" << rows;
}

/// The example, with its keys uncommented.
std::string uncommented(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find_first_not_of(' ');
    const bool is_key = first + 1 < line.size() && line[first] == '#' && line[first + 1] != ' ';
    if (is_key) line.erase(first, 1);
    result += line + "\n";
  }
  return result;
}

TEST(PackagedConfig, IsValidAsItIsAndWithEveryKeyUncommented) {
  const std::string text =
      text_of_file(std::filesystem::path(MUSTER_SOURCE) / "packaging/muster.yaml");
  EXPECT_EQ(config::server_config_faults(text), "");
  const std::string all = uncommented(text);
  EXPECT_EQ(config::server_config_faults(all), "") << all;
  for (const config::ServerKey& key : config::server_keys()) {
    const bool is_in_group = key.name.find('.') != std::string::npos;
    const std::string line = (is_in_group ? "\n  " : "\n") +
                             key.name.substr(is_in_group ? key.name.find('.') + 1 : 0) + ":";
    EXPECT_NE(all.find(line), std::string::npos) << "the example lacks " << key.name;
  }
}

}  // namespace

}  // namespace muster::cli::server
