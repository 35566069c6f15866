// Requests, answers and routes. A Router finds the handler of a request by its method and a path in
// which {name} stands for one segment. Each route states the rights that it requires.
//
// Add all routes before the first request; then the Router is only read. project_in_path() runs on
// the EventLoop's thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "base/error.h"
#include "base/result.h"
#include "control/controller.h"
#include "http/message.h"
#include "http/server.h"

namespace muster::server {

// --- a request and its answer

/// The segments at the {names} of a route's path.
using PathValues = std::map<std::string, std::string>;

/// One request, with its caller.
struct ApiCall {
  http::Request request;
  PathValues path;
  access::Identity who;
  std::string id;  ///< of the request: in the log, in x-request-id, in the audit log
  /// Whether the caller still has the same rights: for answers that last. Empty: always true.
  std::function<bool()> still_valid;

  access::Actor actor() const { return {who.user, who.address, who.token, id}; }
};

/// The rights that a route requires. The handler then decides by project what the caller sees and
/// may change.
enum class Permission {
  kAnybody,   ///< also without a token: the answer reveals nothing
  kInvited,   ///< every caller with a token, including an invitation: to log in
  kSignedIn,  ///< every caller with a token that is not an invitation
  kServerViewer,
  kServerAdmin,
};

using RouteHandler = std::function<void(const ApiCall&, http::Respond)>;

http::Response json_answer(int status, std::string body);

/// RFC 9457 problem details with the status of the error's code.
http::Response problem(const base::Error& error);
/// The same with a more precise status: 401, 405, 415, 429.
http::Response problem(const base::Error& error, int status);

/// 204: the request succeeded, and the answer has no body.
http::Response nothing_more();

/// The answer of a handler that answers at once. An error is answered with its problem.
using RouteAnswer = base::Result<http::Response>;
http::Response answered(RouteAnswer answer);

/// The handler of a route that is answered at once.
RouteHandler at_once(std::function<RouteAnswer(const ApiCall&)> answer);

/// A parameter of the query; empty if it is absent.
std::string parameter(const http::Request& request, std::string_view name);
/// "true" or "false"; false if it is absent. kInvalid for any other value: a typo such as
/// ?dry_run=True must not start a job.
base::Result<bool> flag_parameter(const http::Request& request, std::string_view name);
/// A header, by its name in lower case; empty if it is absent.
std::string header(const http::Request& request, std::string_view name);

/// The project in the path, if the caller has the role `needed` there. Errors as Sight::project().
base::Result<std::string> project_in_path(const control::Controller& controller,
                                          const ApiCall& call, access::Role needed);

/// Whether the caller may still see the job, for answers that last: its token may be revoked, and the
/// project may be deleted or moved. Access to a deleted job cannot be checked; an answer that has
/// begun is sent to its end. `controller` must outlive the function.
std::function<bool()> may_still_see(const control::Controller& controller, const ApiCall& call,
                                    std::string job_id);

/// kNotFound if the job has no task of this name.
base::Result<void> check_task(const job::Job& job, const std::optional<std::string>& task);

// --- routes

class Router {
 public:
  void add(std::string method, std::string_view path, Permission permission, RouteHandler handler);

  struct Found {
    Permission permission = Permission::kServerAdmin;
    const RouteHandler* handler = nullptr;  ///< nullptr: there is no route
    std::string route;                      ///< its path as it was added: "/v1/jobs/{name}"
    PathValues path;
    bool path_known = false;           ///< with another method
    std::vector<std::string> methods;  ///< of the path; `permission` is kAnybody if theirs is
  };
  Found find(std::string_view method, std::string_view path) const;

  /// Finds the route of `call`, fills in its path, and calls its handler if the caller may use it.
  /// Answers 404 for an unknown path, 405 for a known path with another method, 403 for a caller
  /// without permission, and 400 for parameters that the API's document does not declare for the
  /// route, except on those for monitors (/healthz, /readyz, /metrics). REQUIRES: call.who is known, or the route is for anybody.
  void handle(ApiCall call, http::Respond respond) const;

  /// "GET /v1/jobs/{name}", for tests that check all routes.
  struct RouteName {
    std::string method;
    std::string path;
    Permission permission = Permission::kServerAdmin;
  };
  std::vector<RouteName> routes() const;

 private:
  struct Route {
    std::string method;
    std::string path;
    std::vector<std::string> segments;
    Permission permission = Permission::kServerAdmin;
    RouteHandler handler;
  };
  std::vector<Route> routes_;
};

}  // namespace muster::server
