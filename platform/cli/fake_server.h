// A fake server of Muster's API for tests of the command line: real sockets and the real wire
// format, but simulated jobs, and logs that break off where a test needs it.
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
#include "api/file_wire.h"
#include "api/wire.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/fake_random.h"
#include "http/message.h"
#include "http/server.h"
#include "job/array.h"
#include "job/job.h"
#include "job/log_record.h"
#include "job/node.h"
#include "job/project.h"
#include "sweep/sweep.h"

namespace muster::cli {

/// The behaviour of the fake's jobs. Set before the server is created.
struct Script {
  std::vector<job::LogRecord> records;  ///< the output of every job
  int break_after = -1;                 ///< the first stream breaks after this number of records
  int signal = 0;                       ///< sent to this process after a stream has begun
  bool runs_on = false;                 ///< jobs end only when they are stopped
  job::Phase end = job::Phase::kSucceeded;
  int exit_code = 0;
  std::string version = "1";
  std::string engine = "process";   ///< the engine that the server reports
  bool tls = false;                 ///< also listens on TLS
  std::vector<job::Job> jobs = {};  ///< jobs that exist from the beginning
  bool unique_names = false;        ///< refuses a name that is in use
  std::string rival = {};           ///< a job of this name appears just before a job is submitted
  /// "POST /v1/jobs/a/stop": the job is removed just before this request; "GET /v1/watch/jobs": all
  /// jobs are
  std::string vanishes_at = {};
  std::string refuses = {};  ///< "PUT /v1/projects/a/secrets/B": this request is refused
  int refuses_after = 0;     ///< the number of requests that are accepted before
  int refusals = -1;         ///< only so many requests are refused; -1: all
  base::Error refuses_with = {.code = base::ErrorCode::kRefused, .what = "only admins may"};
  /// "POST /v1/notifications": the connection breaks in place of the answer to such a request.
  std::string answer_lost = {};
  int answer_lost_after = 0;    ///< the number of such requests that are answered before
  int answers_lost = -1;        ///< only so many answers are lost; -1: all
  bool lost_is_done = false;    ///< a request whose answer is lost is carried out
  std::string unanswered = {};  ///< such a request gets no answer, and `signal` is sent
  int second_signal = 0;     ///< sent right after it; another signal, as both are pending at once
  int unanswered_after = 0;  ///< the number of such requests that are answered before
  std::string signals_at = {};  ///< `signal` is sent before the answer to such a request
  int signals_after = 0;        ///< the number of such requests without a signal before
  /// With settles_when_watched, each succeeds when it is watched.
  std::vector<sweep::Sweep> sweeps = {};
  /// The metrics of every job; times and intervals of a query are ignored.
  std::vector<job::MetricSeries> metrics = {};
  /// Jobs that were asked to end have ended, and waiting jobs run, only when a client watches them.
  bool settles_when_watched = false;
  bool always_breaks = false;  ///< like break_after, but every stream of logs breaks
  std::vector<job::Array> arrays = {};
  int array_changes = 1;  ///< a watch reports each array so many times
  std::vector<std::string> vanishing_sweeps =
      {};  ///< in the list, but removed before the next request
  /// Members of arrays that are not jobs yet. Each becomes a job, and succeeds, when it has been asked
  /// for `asked_before_start` times.
  std::vector<job::Job> waiting_members = {};
  int asked_before_start = 0;
  /// Of every job. The next page is empty, and truncated if this one is.
  api::ArtifactPage artifacts = {};
  int hidden_at = 0;  ///< this request for a member finds nothing, as while its job is being stored
};

class FakeServer {
 public:
  FakeServer(const std::filesystem::path& socket, Script script);
  ~FakeServer();

  /// "POST /v1/jobs" ..., in order, without the first request of each connection. " of PROJECT" and
  /// " now" follow if the query has `project` and `now`; after "GET /v1/jobs", " in PHASES".
  std::vector<std::string> requests();

  // The URL for TLS.
  std::string url() const { return url_; }
  std::string fingerprint() const;
  std::string certificate() const { return identity_.certificate; }
  /// A token of the admin `root`.
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

// Answers that the parts of the fake server share. Pure.

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

// The users, tokens, members, secrets and audit log of a fake server, as requests set them. Over
// TLS, a request must carry a token of the server.

class FakeAccounts {
 public:
  /// One admin, `root`, with a token.
  FakeAccounts();

  /// The token with which a test logs in first.
  const std::string& first_token() const { return tokens_.front().text; }

  /// 401 over TLS, if the request carries no known token.
  std::optional<http::Response> refuse(const http::Request& request) const;
  /// Nothing if the path does not belong to accounts.
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

// The projects and nodes of a fake server, as requests set them; they have no effect.

class FakeCluster {
 public:
  FakeCluster();

  /// Nothing if the path belongs neither to projects nor to nodes.
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
