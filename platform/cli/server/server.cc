#include "cli/server/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/files.h"
#include "base/json_text.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/connection/server_start.h"
#include "config/server_keys.h"
#include "http/tls.h"

namespace muster::cli::server {

namespace {

std::string upper(std::string text) {
  for (char& letter : text) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return text;
}

}  // namespace

Flag flag_of(const config::ServerKey& key) {
  // For a type in several words, such as "text or json", the help shows the choices.
  const bool is_word = key.type.find(' ') == std::string::npos;
  return {.name = key.flag,
          .value = is_word ? upper(key.type) : "VALUE",
          .help = key.help + " (default: " + key.fallback + ")",
          .choices = key.choices,
          .offer = key.choices.empty() ? offer_of(key.offer) : Offer::kChoices,
          .repeats = key.repeats,
          .group =
              key.name.substr(0, key.name.find('.') == std::string::npos ? 0 : key.name.find('.'))};
}

config::ServerSource read_server_variables(const Caller& caller) {
  config::ServerSource source{.folder = caller.folder};
  for (const config::ServerKey& key : config::server_keys()) {
    const auto variable = caller.environment.find(key.variable);
    if (variable != caller.environment.end() && !variable->second.empty()) {
      source.settings.push_back({key.name, key.variable, variable->second});
    }
  }
  return source;
}

config::ServerSource read_server_source(const Caller& caller, const FlagReader& reader) {
  config::ServerSource source = read_server_variables(caller);
  if (reader.has("--config")) {
    source.file = (source.folder / reader.text("--config")).lexically_normal();
    source.file_was_named = true;
  }
  for (const config::ServerKey& key : config::server_keys()) {
    if (!key.flag.empty() && reader.has(key.flag)) {
      source.settings.push_back({key.name, key.flag, base::joined(reader.texts(key.flag), ",")});
    }
  }
  return source;
}

config::ServeOptions read_server_flags(const config::ServerSource& source, FlagReader& reader) {
  config::ServeOptions options;
  for (base::Fault& fault : apply_settings(source, options)) {
    reader.fault(std::move(fault.field), std::move(fault.what));
  }
  options.takes_over = reader.has("--take-over");
  options.accepts_lost_jobs = reader.has("--accept-lost-jobs");
  options.ready_fd = reader.number("--ready-fd", -1);
  return options;
}

namespace {

/// Only what chooses the server has an effect.
void check_stop(Reading& in, const config::ServerSource& source) {
  for (const config::ServerSetting& setting : source.settings) {
    if (setting.named.starts_with("--") && setting.named != "--state-dir") {
      in.reader.fault(setting.named, "cannot be used with --stop");
    }
  }
}

/// The new server reads the environment and the file, but no flags.
void check_restart(Reading& in, const config::ServerSource& source) {
  if (source.file_was_named) in.reader.fault("--config", "cannot be used with --restart");
  for (const config::ServerSetting& setting : source.settings) {
    if (setting.named.starts_with("--")) {
      in.reader.fault(setting.named,
                      "cannot be used with --restart: set it in server.yaml or by its variable");
    }
  }
}

Call read_server(Reading& in) {
  ServerCommand command{.source = read_server_source(in.caller, in.reader)};
  command.options = read_server_flags(command.source, in.reader);
  if (in.reader.has("--stop")) command.what = ServerCommand::What::kStop;
  if (in.reader.has("--fingerprint")) command.what = ServerCommand::What::kShowFingerprint;
  if (in.reader.has("--restart")) command.what = ServerCommand::What::kRestart;
  for (const auto& [flag, other] : {std::pair{"--fingerprint", "--stop"},
                                    {"--fingerprint", "--restart"},
                                    {"--restart", "--stop"},
                                    {"--take-over", "--fingerprint"},
                                    {"--take-over", "--restart"},
                                    {"--take-over", "--stop"},
                                    {"--accept-lost-jobs", "--fingerprint"},
                                    {"--accept-lost-jobs", "--restart"},
                                    {"--accept-lost-jobs", "--stop"}}) {
    if (in.reader.has(flag) && in.reader.has(other)) {
      in.reader.fault(flag, std::string("cannot be used with ") + other);
    }
  }
  if (command.what == ServerCommand::What::kStop) check_stop(in, command.source);
  if (command.what == ServerCommand::What::kRestart) check_restart(in, command.source);
  return command;
}

/// A flag for each key of the configuration.
Flags key_flags() {
  Flags flags;
  for (const config::ServerKey& key : config::server_keys()) {
    if (!key.flag.empty()) flags.push_back(flag_of(key));
  }
  return flags;
}

}  // namespace

Command server_command() {
  return {
      .name = "server",
      .help = "run a server in the foreground; other commands start a server if none runs",
      .read = read_server,
      .flags = Flags{{.name = "--config",
                      .value = "FILE",
                      .help = "configuration file (YAML), overridden by flags (default: "
                              "$XDG_CONFIG_HOME/muster/server.yaml)",
                      .offer = Offer::kFiles}} +
               key_flags() +
               Flags{{.name = "--fingerprint",
                      .help = "print the fingerprint of the server's certificate, for logins"},
                     {.name = "--stop", .help = "stop the running server; jobs continue"},
                     {.name = "--restart",
                      .help = "restart the server that another command has started, so that it "
                              "reads server.yaml and the environment again; jobs continue"},
                     {.name = "--take-over",
                      .help = "use the state folder although its server was started with "
                              "another --config, with --listen, or on PostgreSQL"},
                     {.name = "--accept-lost-jobs",
                      .help = "start although the folder of the jobs has no trace of the running "
                              "jobs: they count as lost"},
                     {.name = "--ready-fd", .value = "N", .hidden = true}},
      .example = "muster server --listen 0.0.0.0:7443"};
}

namespace {

/// Whether the process of `pidfd` ends within some seconds.
bool ends_soon(const base::UniqueFd& pidfd) {
  constexpr std::chrono::milliseconds kBound{10'000};
  pollfd entry{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(kBound.count())) == 1;
}

Result<int> stop_server(const config::ServeOptions& options) {
  MUSTER_TRY(const config::Paths paths, config::paths_here(options.state_folder));
  MUSTER_TRY(const bool answers, server_answers(paths));
  if (!answers) {
    MUSTER_CHECK(show("no server is running\n"));
    return kExitDone;
  }
  api::Client client(paths.socket);
  MUSTER_TRY(const api::ServerInfo info, client.info());
  // Opened before the server is asked to stop: afterwards, another process may have the number.
  const auto pidfd = base::open_pidfd(info.pid);
  MUSTER_CHECK(client.shut_down());
  const bool ended = !pidfd || ends_soon(*pidfd);
  MUSTER_CHECK(show(ended ? "the server has stopped; running jobs continue\n"
                          : "the server stops when it has answered the open requests\n"));
  return kExitDone;
}

/// Tasks of another engine could not be managed.
Result<void> check_engine(api::Client& client, const api::ServerInfo& info,
                          const std::string& engine) {
  if (info.engine.empty() || info.engine == engine) return {};
  const api::JobQuery query{.phases = {job::Phase::kStarting, job::Phase::kRunning}, .limit = 1};
  MUSTER_TRY(const api::JobPage page, client.list(query));
  if (page.jobs.empty()) return {};
  return base::Error{.code = base::ErrorCode::kConflict,
                     .what = "job '" + page.jobs.front().spec.name + "' runs on the engine '" +
                             info.engine + "', and a server with the engine '" + engine +
                             "' could not manage it",
                     .advice = "restart the server when its jobs have ended"};
}

Result<void> stop_and_wait(const config::Paths& paths) {
  api::Client client(paths.socket);
  MUSTER_TRY(const api::ServerInfo info, client.info());
  const auto pidfd = base::open_pidfd(info.pid);
  MUSTER_CHECK(client.shut_down());
  if (!pidfd || ends_soon(*pidfd)) return {};
  return base::Error{.code = base::ErrorCode::kTimeout,
                     .what = "the server answers its open requests before it stops",
                     .advice = "repeat the command in a moment"};
}

/// `engine`: of the new server; empty: that of the running one.
Result<int> restart_server(const config::ServeOptions& options, const std::string& engine) {
  MUSTER_TRY(const config::Paths paths, config::paths_here(options.state_folder));
  MUSTER_TRY(const bool answers, server_answers(paths));
  if (!answers) {
    MUSTER_CHECK(ensure_server(paths, engine));
    MUSTER_CHECK(show("no server was running; it has started\n"));
    return kExitDone;
  }
  api::Client client(paths.socket);
  MUSTER_TRY(const api::ServerInfo info, client.info());
  if (!info.on_demand) {
    return base::Error{.code = base::ErrorCode::kConflict,
                       .what =
                           "the server was started by 'muster server', not by a command that "
                           "needed it",
                       .advice =
                           "restart it as it was started: with its flags, or by the service "
                           "manager"};
  }
  if (!engine.empty()) MUSTER_CHECK(check_engine(client, info, engine));
  MUSTER_CHECK(replace_server(paths, engine, [&] { return stop_and_wait(paths); }));
  MUSTER_CHECK(show("the server has restarted; jobs continue\n"));
  return kExitDone;
}

Result<int> show_fingerprint(const config::ServerSource& source,
                             const config::ServeOptions& options) {
  MUSTER_TRY(const config::Paths paths, config::paths_here(options.state_folder));
  const auto certificate = base::read_file(config::certificate_file(source, options, paths));
  if (!certificate) {
    return base::Error{
        .code = certificate.error().code,
        .what = certificate.error().what,
        .advice =
            "a server that is started with --listen creates a certificate if none is configured; "
            "if one is configured, name the server's file: muster server --fingerprint --config "
            "FILE"};
  }
  MUSTER_TRY(const std::string fingerprint, http::fingerprint_of(*certificate));
  MUSTER_CHECK(show(http::readable_fingerprint(fingerprint) + "\n"));
  return kExitDone;
}

}  // namespace

Result<int> execute(const ServerCommand& command, const Hooks& hooks) {
  const config::ServerSource source = config::with_usual_file(command.source);
  MUSTER_TRY(config::ServeOptions options, config::read_server_options(source));
  if (command.what == ServerCommand::What::kStop) return stop_server(options);
  if (command.what == ServerCommand::What::kRestart) {
    const bool is_chosen =
        options.engine != config::ServeOptions().engine ||
        std::any_of(source.settings.begin(), source.settings.end(),
                    [](const config::ServerSetting& setting) { return setting.key == "engine"; });
    return restart_server(options, is_chosen ? options.engine : "");
  }
  if (command.what == ServerCommand::What::kShowFingerprint) {
    return show_fingerprint(source, options);
  }
  options.takes_over = command.options.takes_over;
  options.accepts_lost_jobs = command.options.accepts_lost_jobs;
  options.ready_fd = command.options.ready_fd;
  return hooks.serve(options, [source] { return config::read_server_options(source); });
}

// store: backup, restore, check, and setting unreadable records aside.

namespace {

/// Instead of a file: standard output of a backup, standard input of a restored one.
constexpr const char* kPipe = "-";

template <StoreCommand::What what>
Call read_store_words(Reading& in) {
  StoreCommand command{
      .what = what, .source = read_server_source(in.caller, in.reader), .output = in.output()};
  read_server_flags(command.source, in.reader);
  if (what == StoreCommand::What::kCheck) return command;
  if (what == StoreCommand::What::kSetAside) {
    if (in.arguments.names.empty()) {
      in.reader.fault("NAME", "is missing; `muster store check` names the unreadable records");
    } else {
      command.record = in.arguments.names.front();
    }
    return command;
  }
  if (in.arguments.names.empty()) {
    in.reader.fault("FILE", "is missing; name the backup");
  } else if (in.arguments.names.front() == kPipe) {
    command.file = kPipe;
  } else {
    // A relative path of the backup is resolved in the caller's folder, not in the server's.
    command.file = (command.source.folder / in.arguments.names.front()).lexically_normal();
  }
  return command;
}

/// The flags that choose a store: by name, or by the server's configuration.
Flags store_flags() {
  Flags flags = {{.name = "--config",
                  .value = "FILE",
                  .help = "configuration file of the server that owns the store",
                  .offer = Offer::kFiles}};
  for (const config::ServerKey& key : config::server_keys()) {
    const bool names_a_store =
        key.name == "store" || key.name == "store_password_file" || key.name == "state_dir";
    if (names_a_store) flags.push_back(flag_of(key));
  }
  return flags;
}

Positionals backup_file() {
  return {.name = "FILE", .least = 1, .most = 1, .offer = Offer::kFiles};
}

}  // namespace

Command store_command() {
  return {
      .name = "store",
      .help = "back up, restore, check and repair the database of a server",
      .commands = {{.name = "backup",
                    .help = "write the store to a file, even while the server runs; to standard "
                            "output if FILE is -",
                    .read = read_store_words<StoreCommand::What::kBackup>,
                    .positionals = backup_file(),
                    .flags = store_flags() + output_flag(),
                    .example = "muster store backup muster-backup.db"},
                   {.name = "restore",
                    .help = "restore a backup into an empty database; from standard input if "
                            "FILE is -",
                    .read = read_store_words<StoreCommand::What::kRestore>,
                    .positionals = backup_file(),
                    .flags = store_flags() + output_flag(),
                    .example = "muster store restore muster-backup.db"},
                   {.name = "check",
                    .help = "read the whole store and report damaged records",
                    .read = read_store_words<StoreCommand::What::kCheck>,
                    .flags = store_flags() + output_flag(),
                    .example = "muster store check"},
                   {.name = "set-aside",
                    .help = "move an unreadable record aside so that the server can start",
                    .read = read_store_words<StoreCommand::What::kSetAside>,
                    .positionals = {.name = "NAME", .least = 1, .most = 1},
                    .flags = store_flags() + output_flag(),
                    .example = "muster store set-aside default/train"}}};
}

namespace {

using nlohmann::ordered_json;

std::string report_text(const StoreReport& report) {
  std::vector<std::pair<std::string, std::string>> lines{
      {"SCHEMA", std::to_string(report.schema_version)}};
  for (const auto& [what, count] : report.counts) lines.emplace_back(what, std::to_string(count));
  std::string text = fields(lines);
  if (!report.faults.empty()) text += "\ndamaged:\n";
  for (const std::string& fault : report.faults) text += "  " + fault + "\n";
  if (!report.set_aside.empty()) text += "\nset aside:\n";
  for (const std::string& record : report.set_aside) text += "  " + record + "\n";
  return text;
}

std::string json_of(const StoreReport& report) {
  ordered_json counts = ordered_json::object();
  for (const auto& [what, count] : report.counts) counts[what] = count;
  const ordered_json json = {{"schema_version", report.schema_version},
                             {"counts", std::move(counts)},
                             {"faults", report.faults},
                             {"set_aside", report.set_aside}};
  return base::json_text(json) + "\n";
}

/// Waits until `fd` is readable. False: Ctrl-C.
Result<bool> await_bytes(int fd, Interrupts& interrupts) {
  std::array<pollfd, 2> entries{pollfd{.fd = fd, .events = POLLIN, .revents = 0},
                                pollfd{.fd = interrupts.fd(), .events = POLLIN, .revents = 0}};
  while (::poll(entries.data(), entries.size(), -1) < 0) {
    if (errno != EINTR) return base::system_error("cannot wait for the backup", errno);
  }
  return !interrupts.take();
}

/// `interrupts`: null, or Ctrl-C ends the copy. False: Ctrl-C.
Result<bool> copy_all(int from, int to, Interrupts* interrupts) {
  std::array<char, 1 << 16> buffer{};
  while (true) {
    if (interrupts != nullptr) {
      MUSTER_TRY(const bool goes_on, await_bytes(from, *interrupts));
      if (!goes_on) return false;
    }
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count == 0) return true;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::system_error("cannot read the backup", errno);
    MUSTER_CHECK(base::write_all(to, {buffer.data(), static_cast<size_t>(count)}));
  }
}

/// A file for a backup that goes through a pipe, because a database cannot. Removed at the end.
/// REQUIRES: an Interrupts outlives it, so that Ctrl-C does not end this process before that.
class PassingFile {
 public:
  PassingFile() = default;
  PassingFile(const PassingFile&) = delete;
  PassingFile& operator=(const PassingFile&) = delete;
  ~PassingFile() { remove(); }

  /// In the state folder, which has room for databases, or else in the folder for temporary files.
  Result<void> create(const config::ServeOptions& options) {
    std::error_code failed;
    std::filesystem::path parent = std::filesystem::temp_directory_path(failed);
    const auto paths = config::paths_here(options.state_folder);
    if (paths && ::access(paths->state_folder.c_str(), W_OK) == 0) parent = paths->state_folder;
    std::string name = parent / "backup-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      return base::system_error("cannot create a folder in '" + parent.string() + "'", errno);
    }
    folder_ = name;
    return {};
  }
  std::string path() const { return folder_ / "muster.db"; }
  const std::filesystem::path& folder() const { return folder_; }

  void remove() {
    if (!folder_.empty()) (void)base::remove_tree(std::exchange(folder_, {}));
  }

 private:
  std::filesystem::path folder_;
};

/// Waits until `ended` is readable. Ctrl-C ends this process before that, without `folder`.
void exit_at_interrupt(const Interrupts& interrupts, int ended,
                       const std::filesystem::path& folder) {
  std::array<pollfd, 2> entries{pollfd{.fd = ended, .events = POLLIN, .revents = 0},
                                pollfd{.fd = interrupts.fd(), .events = POLLIN, .revents = 0}};
  while (::poll(entries.data(), entries.size(), -1) < 0) {
    if (errno != EINTR) return;
  }
  if (entries[0].revents != 0) return;
  (void)base::remove_tree(folder);
  (void)base::remove_tree(folder);  // again: a copy that continues may have added a file meanwhile
  ::_exit(kExitInterrupted);
}

/// Calls `copy`, which takes minutes for a large database. Ctrl-C meanwhile ends this process
/// without `file`.
template <class Copy>
Result<StoreReport> copy_until_interrupted(const Copy& copy, const PassingFile& file,
                                           const Interrupts& interrupts) {
  const base::UniqueFd ended(::eventfd(0, EFD_CLOEXEC));
  if (!ended) return base::system_error("cannot wait for the end of the copy", errno);
  std::jthread watch;
  try {
    watch = std::jthread([&] { exit_at_interrupt(interrupts, ended.get(), file.folder()); });
  } catch (const std::system_error& error) {
    return base::system_error("cannot start a thread", error.code().value());
  }
  Result<StoreReport> report = copy();
  (void)::eventfd_write(ended.get(), 1);
  return report;
}

/// Nothing: Ctrl-C.
using PipedReport = std::optional<StoreReport>;

Result<PipedReport> backup_to_output(const config::ServeOptions& options, const Hooks& hooks) {
  std::optional<Interrupts> interrupts(std::in_place);
  PassingFile file;  // gone when `interrupts` is reset
  MUSTER_CHECK(file.create(options));
  const auto copy = [&] { return hooks.backup_store(options, file.path()); };
  MUSTER_TRY(StoreReport report, copy_until_interrupted(copy, file, *interrupts));
  const base::UniqueFd content(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
  if (!content) return base::system_error("cannot open '" + file.path() + "'", errno);
  // The open file needs no name: nothing remains if a closed pipe or Ctrl-C ends the copy.
  file.remove();
  if (interrupts->take()) return PipedReport();
  interrupts.reset();
  MUSTER_CHECK(copy_all(content.get(), STDOUT_FILENO, nullptr));
  return PipedReport(std::move(report));
}

Result<PipedReport> restore_from_input(const config::ServeOptions& options, const Hooks& hooks) {
  Interrupts interrupts;
  PassingFile file;
  MUSTER_CHECK(file.create(options));
  const base::UniqueFd content(
      ::open(file.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!content) return base::system_error("cannot create '" + file.path() + "'", errno);
  MUSTER_TRY(const bool is_whole, copy_all(STDIN_FILENO, content.get(), &interrupts));
  if (!is_whole) return PipedReport();
  const auto copy = [&] { return hooks.restore_store(options, file.path()); };
  MUSTER_TRY(StoreReport report, copy_until_interrupted(copy, file, interrupts));
  return PipedReport(std::move(report));
}

/// A backup has the tokens of its time, and a token is revoked by its removal.
void warn_of_tokens(const StoreReport& report) {
  for (const auto& [name, count] : report.counts) {
    if (name != "tokens" || count == 0) continue;
    std::cerr << (count == 1 ? "the token" : "all " + std::to_string(count) + " tokens")
              << " of the backup can be used again, also if revoked after the backup was made: "
                 "check the list with muster token list\n";
  }
}

bool is_piped_backup(const StoreCommand& command) {
  return command.what == StoreCommand::What::kBackup && command.file == kPipe;
}

Result<StoreReport> report_without_pipe(const StoreCommand& command,
                                        const config::ServeOptions& options, const Hooks& hooks) {
  switch (command.what) {
    case StoreCommand::What::kBackup:
      return hooks.backup_store(options, command.file);
    case StoreCommand::What::kRestore:
      return hooks.restore_store(options, command.file);
    case StoreCommand::What::kSetAside:
      return hooks.set_record_aside(options, command.record);
    case StoreCommand::What::kCheck:
      break;
  }
  return hooks.check_store(options);
}

Result<PipedReport> report_of(const StoreCommand& command, const config::ServeOptions& options,
                              const Hooks& hooks) {
  if (is_piped_backup(command)) return backup_to_output(options, hooks);
  const bool is_piped = command.what == StoreCommand::What::kRestore && command.file == kPipe;
  if (is_piped) return restore_from_input(options, hooks);
  MUSTER_TRY(StoreReport report, report_without_pipe(command, options, hooks));
  return PipedReport(std::move(report));
}

}  // namespace

Result<int> execute(const StoreCommand& command, const Hooks& hooks) {
  MUSTER_TRY(const config::ServeOptions options,
             config::read_server_options(config::with_usual_file(command.source)));
  MUSTER_TRY(const PipedReport report, report_of(command, options, hooks));
  if (!report) return kExitInterrupted;
  if (is_piped_backup(command)) {
    std::cerr << report_text(*report);  // standard output is the backup
  } else {
    MUSTER_CHECK(show(command.output, report_text(*report), json_of(*report)));
  }
  if (command.what == StoreCommand::What::kRestore) warn_of_tokens(*report);
  return report->faults.empty() ? kExitDone : kExitFailed;
}

}  // namespace muster::cli::server
