// The way to the server of a context: finds it and, where it is the local one, starts it where none
// runs; and finds or starts it again when it goes away in the middle (a local server leaves when
// idle, any may be killed; jobs live on without it). A server that others share is never started
// here.
//
// Blocking; not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
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
#include "job/diagnosis.h"
#include "job/job.h"

namespace muster::cli {

class Connection {
 public:
  /// Reaches a server, which then answers. One of another version than `version` is used all the
  /// same, with a warning on standard error. `project`: as in api::Client::set_project().
  ///
  /// `engine`: what the server is to run jobs on; one that is started here is told so, and another
  /// that answers is refused with kConflict. Empty: any will do.
  ///
  /// For a server that others share, no folder is looked for or made.
  static Result<Connection> open(const Context& context, const std::string& version,
                                 std::string project = {}, std::string engine = {});

  /// Finds or starts a server anew. Of a shared one nothing is asked yet.
  Result<void> reopen();

  /// The same for whoever reads a stream that broke off: at once, and later each time until
  /// is_well(). kUnavailable once it has broken off too often.
  Result<void> come_back();
  /// The stream has brought something.
  void is_well() { failures_ = 0; }

  /// As api::Client::set_project(), for this connection and those it is reopened as.
  void set_project(const std::string& project);

  /// A client of its own: for a request in the midst of a stream of another.
  std::unique_ptr<api::Client> second_client() const;

  api::Client& client() { return *client_; }

  /// Whether it is somebody else's to bring back when it goes away.
  bool is_shared() const { return endpoint_.has_value(); }

  /// https://HOST:PORT of a shared server; empty: it is the local one.
  std::string url() const;

  /// attempt(client()), and once more on a new connection where the server went away. Only for
  /// requests that may be sent twice: reads, stop, and submit with its idempotency key.
  template <class Attempt>
  auto call(const Attempt& attempt) -> decltype(attempt(client())) {
    auto answer = attempt(client());
    if (answer || answer.error().code != base::ErrorCode::kUnavailable) return answer;
    MUSTER_CHECK(reopen());
    return attempt(client());
  }

 private:
  Connection() = default;

  config::Paths paths_;                        ///< of the local server
  std::optional<http::TlsEndpoint> endpoint_;  ///< of a shared one
  std::string token_;
  std::string project_;
  std::string engine_;
  std::unique_ptr<api::Client> client_;
  int failures_ = 0;  ///< of the server, since a stream of it brought something
};

/// Where a context's server is, and how it is known. Reads the context's CA file. REQUIRES: it is
/// not the local one.
Result<http::TlsEndpoint> endpoint_of(const Context& context);

// What the command line cannot do by itself, for it sees neither the server nor its engines:
// main.cc hands it in.

/// What a look at a store, or a copy of it, has found.
struct StoreReport {
  int schema_version = 0;
  std::vector<std::pair<std::string, uint64_t>> counts;  ///< "jobs", 12
  std::vector<std::string> faults;                       ///< of `check`: sentences
  std::vector<std::string> set_aside;                    ///< the same: the records set aside
};

/// What `muster doctor` looks at.
struct DoctorWish {
  std::vector<std::string> engines;  ///< "process" ...
  config::ServeOptions options;      ///< of the server that would run here
  std::filesystem::path jobs_folder;
  bool server_runs = false;  ///< with this folder
};

/// What the command line cannot do by itself, for it sees neither the server nor its engines.
struct Hooks {
  /// Runs the server until it ends; the exit code.
  std::function<int(const config::ServeOptions&, const config::ReadAgain&)> serve;
  std::string version;
  std::string context = {};  ///< what --context says; filled in by run()
  std::string engine = {};   ///< what --engine says, of commands that start jobs; empty: nothing

  // Of the store that a server with these options would use.
  using StoreTool = std::function<base::Result<StoreReport>(const config::ServeOptions&,
                                                            const std::string& file)>;
  StoreTool backup_store = {};
  StoreTool restore_store = {};
  std::function<base::Result<StoreReport>(const config::ServeOptions&)> check_store = {};
  StoreTool set_record_aside = {};  ///< its second argument is the name of the record
  /// What was found of each of the engines, in their order, within some seconds.
  std::function<std::vector<job::Diagnosis>(const DoctorWish&)> examine = {};
};

// What commands share: the way to the server, and the way of results to standard output. Everything
// else goes to standard error.
//
// Blocking; I/O.

using base::Result;

/// The server of the context that was chosen; a local one is started if need be. `project`: whose
/// jobs are meant by names that several have.
Result<Connection> connect(const Hooks& hooks, const std::string& project = {});

/// Tries every name, so that one that fails spares none of the others; the first failure decides
/// the exit code.
int for_each_name(const std::vector<std::string>& names,
                  const std::function<Result<void>(const std::string&)>& act);

/// The same for what goes away, and says so. `ignore_missing`: one that is not there is no failure.
int delete_each(const std::vector<std::string>& names, bool ignore_missing,
                const std::function<Result<void>(const std::string&)>& remove);

/// The names of jobs, one a line.
std::string names_of(const std::vector<job::Job>& jobs);

/// Writes a result to standard output; on a terminal, with control characters made harmless.
Result<void> show(std::string_view text);

/// show() for a person's eyes, or `json` as it is or as YAML.
Result<void> show(Output output, std::string_view text, std::string_view json);

// Waits until jobs are as somebody wants them, told of every change by the server: no asking again
// and again.
//
// Blocking; I/O. Not thread-safe.

struct JobWatch {
  std::string project;
  std::set<std::string> names;  ///< of the jobs
  /// Told of each of them as it is, and whenever it changes; nullptr: it is not there, or no more.
  /// False: enough.
  std::function<bool(const std::string& name, const job::Job* job)> on_job;
  std::optional<std::chrono::milliseconds> bound = {};  ///< at most so long
  Interrupts* interrupts = nullptr;                     ///< Ctrl-C ends it; nullptr: it ends us
};

enum class WatchEnd { kEnough, kBoundReached, kInterrupted };

/// Goes on where the server went away and came back. Errors: those of the server.
Result<WatchEnd> watch_jobs(Connection& connection, const JobWatch& watch);

}  // namespace muster::cli
