#include "dialects/gradient/commands.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "access/identity.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "dialects/gradient/command_tree.h"
#include "job/obstacle.h"

namespace muster::dialects::gradient {

namespace {

using Act = Result<int> (*)(Invocation&);

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

/// True only for status 401 (api/client.cc): the server refuses the key, and another key would
/// help.
bool is_wrong_key(const base::Error& error) {
  return base::detail_of<access::NotLoggedIn>(error) != nullptr;
}

Result<int> report_as_gradient(const base::Error& error, const std::string& doing,
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

Result<int> run_command(Invocation& invocation) {
  const std::string path = base::joined(invocation.path, " ");
  for (const auto& [known, act] : kCommands) {
    if (known == path) return act(invocation);
  }
  if (!invocation.reader.ok()) return faults_of(invocation);
  // A command that only groups others.
  std::cerr << cli::help_text(command_tree(), invocation.path) << std::flush;
  return cli::kExitUsage;
}

std::string required(Invocation& invocation, const std::string& flag, const std::string& what) {
  const std::string value = invocation.reader.text(flag);
  if (value.empty()) invocation.reader.fault(flag, "is missing; " + what);
  return value;
}

std::vector<std::string> words_of(const Invocation& invocation, const std::string& flag,
                                  const std::string& list) {
  std::vector<std::string> items = invocation.reader.texts(flag);
  if (!list.empty()) {
    for (const std::string& text : invocation.reader.texts(list)) {
      for (std::string& word : base::split(text, ',')) items.push_back(std::move(word));
    }
  }
  std::set<std::string> words;
  for (const std::string& word : items) words.insert(trimmed_item(word));
  words.erase("");
  return {words.begin(), words.end()};
}

base::Error faults_of(const Invocation& invocation) {
  return cli::usage_error(invocation.path, invocation.reader.faults(), "gradient");
}

base::Error for_gradient(base::Error error) {
  const auto* const obstacle = base::detail_of<job::Obstacle>(error);
  if (obstacle == nullptr) return error;
  using Kind = job::Obstacle::Kind;
  switch (obstacle->kind) {
    case Kind::kSeveralProjects:
      error.advice = "give its ID, which 'gradient experiments list' shows";
      break;
    case Kind::kNoSecret:
      error.advice = "gradient secrets set project --name NAME adds one";
      for (base::Fault& fault : error.faults) fault.field.clear();  // it names a field of the API
      break;
    case Kind::kUnendedJobs:
      error.advice =
          "stop them first: 'gradient experiments list' shows them, and 'gradient experiments stop "
          "--id ID' stops one";
      break;
    case Kind::kEnded:
      error.advice = "create it again to run it again";
      break;
    case Kind::kOtherProject:
      break;  // no command of Gradient names both an experiment and its project
  }
  return error;
}

job::Job for_gradient(job::Job job) {
  if (!job.failure) return job;
  const auto* const astray = std::get_if<job::RanksAstray>(&job.failure->cause);
  if (astray != nullptr && astray->fault == job::RanksAstray::Fault::kNoneInAWorker) {
    job.failure->advice = "start the program by mpirun in --masterCommand (mpirun -np " +
                          std::to_string(job.spec.workers * job.spec.slots_per_worker) +
                          " PROGRAM), or create a singlenode experiment";
  }
  return job;
}

Result<job::Job> get_job(cli::Connection& connection, const std::string& id) {
  return connection.call([&](api::Client& client) { return client.get(id); });
}

Result<void> print_line(const std::string& line) {
  return cli::show(line + "\n");
}

void note(const std::string& line) {
  std::cerr << (cli::terminal_of(STDERR_FILENO).is_terminal ? cli::safe_lines(line) : line)
            << std::endl;
}

Result<int> with_server(Invocation& invocation, const std::string& doing, const std::string& entity,
                        const std::function<Result<int>(cli::Connection&)>& act) {
  if (!invocation.reader.ok()) return faults_of(invocation);
  auto connection = connect(invocation);
  if (!connection) return report_as_gradient(connection.error(), doing, entity);
  auto code = act(*connection);
  return code ? code : report_as_gradient(code.error(), doing, entity);
}

namespace {

using base::Result;

/// 0: unknown.
size_t rows_of_terminal(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

Result<void> print(const std::string& text) {
  auto written = base::write_all(STDOUT_FILENO, text);
  if (written) return {};
  base::Error error = std::move(written).error();
  error.code = base::ErrorCode::kInternal;  // kUnavailable would mean the server
  return error;
}

/// $PAGER is a command line; the user's shell interprets it.
std::vector<std::string> pager_command() {
  const char* const pager = std::getenv("PAGER");
  const bool is_set = pager != nullptr && *pager != '\0';
  return {"/bin/sh", "-c", is_set ? pager : "exec less -R"};
}

/// Passes `text` to a pager and waits until the user quits it. False: there is no pager.
Result<bool> show_in_pager(const std::string& text) {
  // The pager handles Ctrl-C. A pager that ends early closes the pipe, which is not an error.
  cli::Interrupts interrupts;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_error("cannot make a pipe", errno);
  base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  MUSTER_TRY(const base::Child child,
             base::spawn({.argv = pager_command(),
                          .environment = base::current_environment(),
                          .descriptors = {{read_end.get(), STDIN_FILENO},
                                          {STDOUT_FILENO, STDOUT_FILENO},
                                          {STDERR_FILENO, STDERR_FILENO}}}));
  read_end.reset();
  static_cast<void>(base::write_all(write_end.get(), text));
  write_end.reset();
  MUSTER_TRY(const int status, base::wait_for(child));
  constexpr int kNotFound = 127;
  return !(WIFEXITED(status) && WEXITSTATUS(status) == kNotFound);
}

}  // namespace

Result<void> show_table(const AsciiTable& table) {
  const cli::Terminal terminal = cli::terminal_of(STDOUT_FILENO);
  const std::string text = table.to_string(terminal.colour);
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  const size_t rows = terminal.is_terminal ? rows_of_terminal(STDOUT_FILENO) : 0;
  if (rows == 0 || lines <= rows) return print(text);
  const auto shown = show_in_pager(text);
  return shown && *shown ? Result<void>() : print(text);
}

}  // namespace muster::dialects::gradient
