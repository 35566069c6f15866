// The connection to the server of a context, and what commands share. A local server is started if
// none runs, and again if the connection is lost (it exits when idle, and may be killed; jobs
// continue without it). A shared server is never started here.
//
// Blocking; I/O. Not thread-safe. Results go to standard output, everything else to standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/client.h"
#include "base/result.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/contexts.h"
#include "config/paths.h"
#include "config/server_config.h"
#include "config/yaml.h"
#include "job/diagnosis.h"
#include "job/job.h"
#include "job/schedule.h"

namespace muster::cli {

/// For set_wake(): ends requests while a signal is pending, which stays pending. `signals_fd`: of
/// Interrupts or LiveScreen.
inline http::Wake ended_by_signals(int signals_fd) {
  return {.fd = signals_fd, .on_wake = [] { return false; }};
}

class Connection {
 public:
  /// Connects to the server. Prints a warning if its version differs from `version`. `project`: as in
  /// api::Client::set_project().
  ///
  /// `engine`: the engine that the server must have; empty: any. A server that is started here gets
  /// this engine. Errors: kConflict: the running server has another engine.
  ///
  /// For a shared server, no local folder is created.
  static Result<Connection> open(const Context& context, const std::string& version,
                                 std::string project = {}, std::string engine = {});

  /// Connects again; starts a local server if none runs.
  Result<void> reopen();

  /// reopen() for the reader of a stream that broke off. Waits longer each time, until is_well().
  /// False: `wake_fd` is readable, and nothing was done; handle that, then leave, or call again to wait
  /// for the rest of the time.
  /// Errors: kUnavailable after too many failures.
  Result<bool> come_back(int wake_fd = -1);
  /// come_back() after `error` of a request of a command that goes on. False: a signal is pending in
  /// `signals_fd`. Errors: `error`, if connecting again does not help; those of come_back().
  Result<bool> come_back_after(const base::Error& error, int signals_fd);
  /// Call when the stream has delivered data.
  void is_well() {
    failures_ = 0;
    retry_at_.reset();
  }

  /// api::Client::set_project(), also after reopen().
  void set_project(const std::string& project);

  /// api::Client::set_wake() for all clients, also after reopen(). `wake.fd` must stay open while this
  /// connection sends requests.
  void set_wake(http::Wake wake);

  /// Another client, for a request while client() reads a stream.
  std::unique_ptr<api::Client> second_client() const;

  api::Client& client() { return *client_; }

  /// The server's description when open() connected.
  const api::ServerInfo& server() const { return server_; }

  /// Whether the server is shared: this program does not start it.
  bool is_shared() const { return endpoint_.has_value(); }

  /// https://HOST:PORT of a shared server; empty for the local one.
  std::string url() const;

  /// Returns attempt(client()); repeats it once on a new connection if the connection was lost. Only for
  /// requests that may be sent twice: reads, stop, and submit with its idempotency key.
  template <class Attempt>
  auto call(const Attempt& attempt) -> decltype(attempt(client())) {
    auto answer = attempt(client());
    if (answer || answer.error().code != base::ErrorCode::kUnavailable) return answer;
    if (base::detail_of<http::RequestLeft>(answer.error()) != nullptr) return answer;
    MUSTER_CHECK(reopen());
    return attempt(client());
  }

  /// Returns attempt(client()), which is not repeated. For requests that would be carried out twice, or
  /// refused the second time. `advice`: replaces the advice of the error if the answer was lost; names
  /// the command that shows whether the request was carried out.
  template <class Attempt>
  auto call_once(const Attempt& attempt, const std::string& advice) -> decltype(attempt(client())) {
    auto answer = attempt(client());
    if (answer || base::detail_of<http::AnswerLost>(answer.error()) == nullptr) return answer;
    base::Error error = std::move(answer).error();
    error.advice = advice;
    return error;
  }

 private:
  Connection() = default;

  config::Paths paths_;                        ///< of the local server
  std::optional<http::TlsEndpoint> endpoint_;  ///< of a shared one
  std::string token_;
  std::string project_;
  std::string engine_;
  http::Wake wake_;
  std::unique_ptr<api::Client> client_;
  api::ServerInfo server_;
  int failures_ = 0;  ///< since the last is_well()
  /// The end of the wait of come_back(), until it is over.
  std::optional<std::chrono::steady_clock::time_point> retry_at_;
  /// The local server is one that no command starts (config::StartedOtherwise).
  bool is_restarted_by_others_ = false;
};

/// A variable of this process that the running server does not have.
struct IgnoredSetting {
  std::string variable;  ///< MUSTER_DECLARE_GPUS
  /// Its value without a password. Nothing: the value is invalid, and may contain a password.
  std::optional<std::string> requested;
  std::string present;  ///< the server's value; empty: the default
};

/// The variables whose values differ from those of the server (api::ServerInfo::settings). Pure.
std::vector<IgnoredSetting> ignored_settings(const config::Environment& environment,
                                             const std::map<std::string, std::string>& of_server);

/// The address of a context's server, and how its certificate is verified. Reads the context's CA
/// file. REQUIRES: the context is not local.
Result<http::TlsEndpoint> endpoint_of(const Context& context);

/// The result of checking or copying a store.
struct StoreReport {
  int schema_version = 0;
  std::vector<std::pair<std::string, uint64_t>> counts;  ///< "jobs", 12
  std::vector<std::string> faults;                       ///< of `store check`: messages
  std::vector<std::string> set_aside;  ///< of `store check`: the records set aside
};

/// The input of `muster doctor`.
struct DoctorInput {
  std::vector<std::string> engines;  ///< "process" ...
  config::ServeOptions options;      ///< of the server that would run here
  std::filesystem::path jobs_folder;
  bool server_runs = false;  ///< a server uses this folder
};

/// A job from a file, and the files of its volumes, which are sent before it: by their target, path ->
/// content.
struct ForeignJob {
  job::JobSpec spec;
  std::map<std::string, std::map<std::string, std::string>> files;
  /// The job is that of each run of this schedule; its own `job` is empty.
  std::optional<job::ScheduleSpec> schedule;
};

struct ForeignJobs {
  std::vector<ForeignJob> jobs;
  std::vector<base::Fault> warnings;
};

struct ForeignOptions {
  job::JobSpec defaults;
  std::string name;                   ///< of --name
  std::vector<std::string> settings;  ///< of --set
  /// Applies flags before the settings; returns the fields that they set. Not set: no flags.
  std::function<std::set<std::string>(job::JobSpec&)> flags = {};
  bool on_kubernetes = false;  ///< for a server whose engine is kubernetes
  bool is_root = false;        ///< the caller is root
};

/// Functions that main.cc provides, because the command line does not include server, store and
/// engines.
struct Hooks {
  /// Runs a server until it stops; returns the exit code.
  std::function<int(const config::ServeOptions&, const config::ReadAgain&)> serve;
  std::string version;
  std::string context = {};  ///< of --context; set by run()
  std::string engine = {};   ///< of --engine, for commands that start jobs; empty: not given

  // For the store that a server with these options uses.
  using StoreTool = std::function<base::Result<StoreReport>(const config::ServeOptions&,
                                                            const std::string& file)>;
  StoreTool backup_store = {};
  StoreTool restore_store = {};
  std::function<base::Result<StoreReport>(const config::ServeOptions&)> check_store = {};
  StoreTool set_record_aside = {};  ///< the second argument is the name of the record
  /// Examines each engine, in order; takes some seconds.
  std::function<std::vector<job::Diagnosis>(const DoctorInput&)> examine = {};
  /// Reads job files of other products, which consist of objects with an apiVersion.
  std::function<base::Result<ForeignJobs>(const std::vector<config::YamlValue>& documents,
                                          const std::string& source, const ForeignOptions& options)>
      read_foreign = {};
};

using base::Result;

/// Connects to the server of the chosen context; starts a local server if necessary. `project`: where
/// names of jobs are looked up.
Result<Connection> connect(const Hooks& hooks, const std::string& project = {});

/// Whether jobs are for a server that runs them on Kubernetes, as far as --engine and $MUSTER_ENGINE
/// show: a server that runs already, or elsewhere, may have any engine. Pure.
bool is_for_kubernetes(const Hooks& hooks, const Caller& caller);

/// Calls `act` for every name, also after failures; the first failure decides the exit code.
int for_each_name(const std::vector<std::string>& names,
                  const std::function<Result<void>(const std::string&)>& act);

/// The same for deletions; prints each. `ignore_missing`: a missing one is not a failure.
int delete_each(const std::vector<std::string>& names, bool ignore_missing,
                const std::function<Result<void>(const std::string&)>& remove);

/// The names of jobs, one in each line.
std::string names_of(const std::vector<job::Job>& jobs);

/// Writes a result to standard output; on a terminal, with control characters made harmless.
Result<void> show(std::string_view text);

/// Writes `text` for tables, and `json` as JSON or YAML.
Result<void> show(Output output, std::string_view text, std::string_view json);

/// What watch_jobs() waits for.
struct JobWatch {
  std::string project;  ///< empty: jobs of several projects; all that the user sees are read
  std::set<std::string> names;  ///< of the jobs, arrays and sweeps; without a project: PROJECT/NAME
  /// Called with each job, and again after each change; nullptr: the job does not exist or was removed.
  /// A member of an array that is not a job yet is passed on as the server shows it; when it becomes
  /// a job, its id changes. Returns false to stop.
  std::function<bool(const std::string& name, const job::Job* job)> on_job;
  /// The same for an array with one of the names; not set: arrays are ignored.
  std::function<bool(const std::string& name, const job::Array& array)> on_array = {};
  /// The same for a sweep.
  std::function<bool(const std::string& name, const sweep::SweepSummary& sweep)> on_sweep = {};
  std::optional<std::chrono::milliseconds> bound = {};  ///< maximum time
  Interrupts* interrupts = nullptr;  ///< Ctrl-C ends the wait; nullptr: Ctrl-C ends the process
};

enum class WatchEnd { kEnough, kBoundReached, kInterrupted };

/// Follows the server's events of jobs until `on_job` returns false. Reconnects if the connection is
/// lost. Errors: those of the server.
Result<WatchEnd> watch_jobs(Connection& connection, const JobWatch& watch);

}  // namespace muster::cli
