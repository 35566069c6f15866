// A server of muster's API for tests of the command line: real sockets and real wire format, but
// jobs that only pretend to run, and logs that break off where a test wants it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/event_loop.h"
#include "http/server.h"
#include "job/job.h"
#include "job/log_record.h"

namespace muster::cli {

/// How the fake's jobs behave. Set before the server is made.
struct Script {
  std::vector<job::LogRecord> records;  ///< what every job prints
  int break_after = -1;                 ///< the first stream breaks after so many of them
  int signal = 0;                       ///< sent to this process once a stream has begun
  bool runs_on = false;                 ///< jobs end only when they are stopped
  job::Phase end = job::Phase::kSucceeded;
  int exit_code = 0;
  std::string version = "1";
  std::string engine = "process";   ///< that it says it has
  bool tls = false;                 ///< listens on TLS, too
  std::vector<job::Job> jobs = {};  ///< that it has from the beginning
  bool unique_names = false;        ///< a name that is taken is refused
  std::string rival = {};           ///< a job of this name is there just before one is submitted
  std::string vanishes_at = {};  ///< "POST /v1/jobs/a/stop": somebody removes the job before that
  std::string refuses = {};      ///< "PUT /v1/projects/a/secrets/B": the caller may not do that
  int refuses_after = 0;         ///< so many of them are let through before
  /// Measured of every job; of a query's times and intervals nothing is heeded.
  std::vector<job::MetricSeries> metrics = {};
  /// Only once somebody watches, what was told to end has ended, and what waits runs.
  bool settles_when_watched = false;
};

class FakeServer {
 public:
  FakeServer(const std::filesystem::path& socket, Script script);
  ~FakeServer();

  /// "POST /v1/jobs" ..., in order, but for the greeting of each connection.
  std::vector<std::string> requests();

  // Over TLS.
  std::string url() const { return url_; }
  std::string fingerprint() const;
  std::string certificate() const { return identity_.certificate; }
  /// Of an admin, `root`.
  std::string first_token() const;

 private:
  struct State;
  void listen_on_tls();

  base::EventLoop loop_;
  std::unique_ptr<State> state_;
  http::TlsIdentity identity_;
  std::string url_;
  std::thread thread_;
};

}  // namespace muster::cli
