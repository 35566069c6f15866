// A server of muster's API for tests of the command line: real sockets and real wire format, but
// jobs that only pretend to run, and logs that break off where a test wants it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "api/account_wire.h"
#include "api/wire.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/fake_random.h"
#include "http/message.h"
#include "http/server.h"
#include "job/job.h"
#include "job/log_record.h"
#include "job/node.h"
#include "job/project.h"

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

// What the parts of a fake server answer alike.
//
// Pure.

inline http::Response problem_answer(const base::Error& error) {
  return {.status = api::http_status_of(error.code), .body = api::problem_to_json(error)};
}

inline http::Response problem_answer(base::ErrorCode code, std::string what) {
  return problem_answer(base::Error{.code = code, .what = std::move(what)});
}

/// "there is no WHAT"
inline http::Response not_found_answer(const std::string& what) {
  return problem_answer(base::ErrorCode::kNotFound, "there is no " + what);
}

// The users, tokens, members, secrets and audit log of a fake server: kept as they are told. Over
// TLS a request must show one of the tokens.

class FakeAccounts {
 public:
  /// One admin, `root`, with a token that was made for it.
  FakeAccounts();

  /// The token that a test logs in with first.
  const std::string& first_token() const { return tokens_.front().text; }

  /// 401 over TLS, for what shows no token that is known.
  std::optional<http::Response> refuse(const http::Request& request) const;
  /// Nothing where the path is not one of accounts.
  std::optional<http::Response> answer(const http::Request& request);

 private:
  const api::NewToken* shown_by(const http::Request& request) const;
  api::NewToken& issue(const std::string& user, access::TokenKind kind,
                       const api::TokenRequest& request);
  http::Response log_in(const http::Request& request);
  http::Response log_out(const http::Request& request);
  http::Response who_am_i(const http::Request& request) const;
  http::Response answer_user(const http::Request& request, const std::string& name,
                             const std::string& action);
  http::Response create_user(const http::Request& request);
  http::Response answer_token(const http::Request& request, const std::string& id);
  http::Response answer_member(const http::Request& request, const std::string& project,
                               const std::string& user);
  http::Response answer_secret(const http::Request& request, const std::string& project,
                               const std::string& name);
  http::Response audit(const http::Request& request) const;
  void note(const http::Request& request, const std::string& action, const std::string& target);

  base::FakeRandom random_;
  std::map<std::string, access::User> users_;
  std::vector<api::NewToken> tokens_;
  std::map<std::string, std::map<std::string, std::string>> secrets_;  ///< project, name, value
  std::vector<access::AuditRecord> records_;                           ///< oldest first
};

// The projects and nodes of a fake server: kept as they are told, nothing is made of them.

class FakeCluster {
 public:
  FakeCluster();

  /// Nothing where the path is neither of projects nor of nodes.
  std::optional<http::Response> answer(const http::Request& request);

  bool has_project(const std::string& name) const { return projects_.contains(name); }
  job::ProjectStatus status_of(const std::string& project) const;

 private:
  http::Response answer_project(const http::Request& request, const std::string& name);
  http::Response answer_node(const std::string& name, const std::string& action);

  std::map<std::string, job::Project> projects_;
  std::map<std::string, job::Node> nodes_;
};

}  // namespace muster::cli
