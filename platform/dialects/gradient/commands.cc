#include "dialects/gradient/commands.h"

#include <unistd.h>

#include <array>
#include <iostream>
#include <set>
#include <string_view>
#include <utility>

#include "access/identity.h"
#include "base/text.h"
#include "cli/command/help.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/connection/commands.h"
#include "dialects/gradient/command_parts.h"
#include "dialects/gradient/command_tree.h"

namespace muster::dialects::gradient {

namespace {

using Act = Result<int> (*)(Asked&);

constexpr std::array<std::pair<std::string_view, Act>, 28> kCommands{{
    {"experiments list", list_experiments},
    {"experiments details", show_experiment},
    {"experiments start", start_experiment},
    {"experiments stop", stop_experiment},
    {"experiments delete", delete_experiment},
    {"experiments logs", show_logs},
    {"experiments tags add", add_tags},
    {"experiments tags remove", remove_tags},
    {"experiments metrics get", get_metrics},
    {"experiments metrics list", list_metrics},
    {"experiments metrics stream", stream_metrics},
    {"projects create", create_project},
    {"projects list", list_projects},
    {"projects details", show_project},
    {"projects delete", delete_project},
    {"clusters list", list_clusters},
    {"clusters machineTypes list", list_machine_types},
    {"jobs list", list_jobs},
    {"jobs artifacts list", list_artifacts},
    {"jobs artifacts get", get_artifacts},
    {"jobs artifacts download", get_artifacts},
    {"jobs logs", show_job_logs},
    {"secrets set", set_secret},
    {"secrets list", list_secrets},
    {"secrets delete", delete_secret},
    {"apiKey", keep_key},
    {"logout", log_out},
    {"version", show_version},
}};

std::string trimmed_item(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1));
}

/// Of an answer 401 alone (api/client.cc): the server does not take the key, and another mends it.
bool is_wrong_key(const base::Error& error) {
  return base::detail_of<access::NotLoggedIn>(error) != nullptr;
}

Result<int> told_as_gradient(const base::Error& error, const std::string& doing,
                             const std::string& entity) {
  if (is_wrong_key(error)) {
    note(doing + "Incorrect API Key provided\nForbidden");
    return cli::exit_code_of(error);
  }
  if (error.code == base::ErrorCode::kNotFound) {
    note(doing + entity + " not found\nObject not found");
    return cli::exit_code_of(error);
  }
  return error;
}

}  // namespace

Result<int> run_other(Asked& asked) {
  const std::string path = base::joined(asked.path, " ");
  for (const auto& [known, act] : kCommands) {
    if (known == path) return act(asked);
  }
  if (!asked.reader.ok()) return faults_of(asked);
  // A command that only holds others.
  std::cerr << cli::help_text(command_tree(), asked.path) << std::flush;
  return cli::kExitUsage;
}

std::string required(Asked& asked, const std::string& flag, const std::string& what) {
  const std::string value = asked.reader.text(flag);
  if (value.empty()) asked.reader.fault(flag, "is missing; " + what);
  return value;
}

int number_from(Asked& asked, const std::string& flag, int fallback, int least) {
  const int number = asked.reader.number(flag, fallback);
  if (number >= least) return number;
  asked.reader.fault(
      flag, "is " + std::to_string(number) + "; it must be " + std::to_string(least) + " or more");
  return fallback;
}

std::vector<std::string> words_of(const Asked& asked, const std::string& flag,
                                  const std::string& list) {
  std::vector<std::string> said = asked.reader.texts(flag);
  if (!list.empty()) {
    for (const std::string& text : asked.reader.texts(list)) {
      for (std::string& word : base::split(text, ',')) said.push_back(std::move(word));
    }
  }
  std::set<std::string> words;
  for (const std::string& word : said) words.insert(trimmed_item(word));
  words.erase("");
  return {words.begin(), words.end()};
}

base::Error faults_of(const Asked& asked) {
  return cli::usage_error(asked.path, asked.reader.faults(), "gradient");
}

Result<job::Job> get_job(cli::Connection& connection, const std::string& id) {
  return connection.call([&](api::Client& client) { return client.get(id); });
}

Result<void> say(const std::string& line) {
  return cli::show(line + "\n");
}

void note(const std::string& line) {
  std::cerr << (cli::terminal_of(STDERR_FILENO).is_terminal ? cli::safe_lines(line) : line)
            << std::endl;
}

Result<int> with_server(Asked& asked, const std::string& doing, const std::string& entity,
                        const std::function<Result<int>(cli::Connection&)>& act) {
  if (!asked.reader.ok()) return faults_of(asked);
  auto connection = connect(asked);
  if (!connection) return told_as_gradient(connection.error(), doing, entity);
  auto code = act(*connection);
  return code ? code : told_as_gradient(code.error(), doing, entity);
}

}  // namespace muster::dialects::gradient
