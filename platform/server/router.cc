#include "server/router.h"

#include <algorithm>
#include <optional>

#include "api/query_parameters.h"
#include "api/routes.h"
#include "api/wire.h"
#include "base/text.h"
#include "server/route_parameters.h"
#include "server/sight.h"

namespace muster::server {

using access::Role;
using base::Error;
using base::ErrorCode;

namespace {

std::optional<PathValues> match(const std::vector<std::string>& pattern,
                                const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return std::nullopt;
  PathValues values;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i].starts_with('{')) {
      values[pattern[i].substr(1, pattern[i].size() - 2)] = path[i];
    } else if (pattern[i] != path[i]) {
      return std::nullopt;
    }
  }
  return values;
}

Error lacks_server_role(const access::Identity& who, Role needed) {
  return {.code = ErrorCode::kRefused,
          .what = "this requires the server role '" + std::string(to_string(needed)) + "'; " +
                  access::server_role_text(who),
          .advice = "muster whoami shows your roles; an admin of the server can do this"};
}

Error only_logs_in() {
  return {.code = ErrorCode::kRefused,
          .what = "an invitation permits one login and nothing else",
          .advice = "log in with it: muster login"};
}

/// Why the caller may not use a route; nothing if it may.
std::optional<Error> refusal(Permission permission, const access::Identity& who) {
  if (permission == Permission::kAnybody || permission == Permission::kInvited) return std::nullopt;
  if (who.token_kind == access::TokenKind::kInvitation) return only_logs_in();
  if (permission == Permission::kSignedIn) return std::nullopt;
  const Role needed = permission == Permission::kServerViewer ? Role::kViewer : Role::kAdmin;
  if (who.over_server() < needed) return lacks_server_role(who, needed);
  return std::nullopt;
}

/// RFC 9110, 15.5.6: the answer lists the methods of the path.
http::Response wrong_method(const std::string& method, const std::vector<std::string>& known) {
  constexpr int kMethodNotAllowed = 405;
  http::Response refused =
      problem({.code = ErrorCode::kInvalid, .what = method + " is not allowed on this path"},
              kMethodNotAllowed);
  refused.headers["allow"] = base::joined(known);
  return refused;
}

Error nothing_at(const std::string& path) {
  return {.code = ErrorCode::kNotFound, .what = "there is nothing at '" + path + "'"};
}

}  // namespace

void Router::add(std::string method, std::string_view path, Permission permission,
                 RouteHandler handler) {
  routes_.push_back({.method = std::move(method),
                     .path = std::string(path),
                     .segments = base::split(path, '/'),
                     .permission = permission,
                     .handler = std::move(handler)});
}

Router::Found Router::find(std::string_view method, std::string_view path) const {
  const std::vector<std::string> segments = base::split(path, '/');
  Found found;
  for (const Route& route : routes_) {
    auto values = match(route.segments, segments);
    if (!values) continue;
    found.path_known = true;
    if (route.method != method) {
      found.methods.push_back(route.method);
      if (route.permission == Permission::kAnybody) found.permission = Permission::kAnybody;
      continue;
    }
    found.permission = route.permission;
    found.handler = &route.handler;
    found.route = route.path;
    found.path = *std::move(values);
    return found;
  }
  return found;
}

void Router::handle(ApiCall call, http::Respond respond) const {
  Found found = find(call.request.method, call.request.path);
  if (found.handler == nullptr) {
    return respond(found.path_known ? wrong_method(call.request.method, found.methods)
                                    : problem(nothing_at(call.request.path)));
  }
  if (const auto refused = refusal(found.permission, call.who)) return respond(problem(*refused));
  // Monitors append parameters of their own, such as ?verbose. These routes change nothing.
  const bool is_for_monitors = found.route == api::kHealthPath || found.route == api::kReadyPath ||
                               found.route == api::kMetricsPath;
  auto faults = is_for_monitors
                    ? std::vector<base::Fault>()
                    : faults_of_parameters(call.request.method, found.route, call.request.query);
  if (!faults.empty()) {
    return respond(problem(api::wrong_query("the query is invalid", std::move(faults))));
  }
  call.path = std::move(found.path);
  (*found.handler)(call, std::move(respond));
}

std::vector<Router::RouteName> Router::routes() const {
  std::vector<RouteName> names;
  for (const Route& route : routes_) names.push_back({route.method, route.path, route.permission});
  return names;
}

http::Response json_answer(int status, std::string body) {
  return {.status = status, .body = std::move(body)};
}

http::Response problem(const base::Error& error) {
  return problem(error, api::http_status_of(error.code));
}

http::Response problem(const base::Error& error, int status) {
  return {.status = status,
          .content_type = std::string(api::kProblemType),
          .body = api::problem_to_json(error, status)};
}

http::Response nothing_more() {
  return {.status = 204};
}

http::Response answered(RouteAnswer answer) {
  return answer ? *std::move(answer) : problem(answer.error());
}

RouteHandler at_once(std::function<RouteAnswer(const ApiCall&)> answer) {
  return [answer = std::move(answer)](const ApiCall& call, const http::Respond& respond) {
    respond(answered(answer(call)));
  };
}

std::string parameter(const http::Request& request, std::string_view name) {
  const auto found = request.query.find(std::string(name));
  return found == request.query.end() ? "" : found->second;
}

base::Result<bool> flag_parameter(const http::Request& request, std::string_view name) {
  const auto found = request.query.find(std::string(name));
  bool flag = false;
  if (found == request.query.end() || api::take_flag(found->second, flag).empty()) return flag;
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = "the parameter '" + std::string(name) + "' is neither true nor false",
                     .advice = "give " + std::string(name) + "=true, or leave it out"};
}

std::string header(const http::Request& request, std::string_view name) {
  const auto found = request.headers.find(std::string(name));
  return found == request.headers.end() ? "" : found->second;
}

base::Result<std::string> project_in_path(const control::Controller& controller,
                                          const ApiCall& call, access::Role needed) {
  const std::string& name = call.path.at("name");
  MUSTER_CHECK(Sight(controller, call.who).project(name, needed));
  return name;
}

std::function<bool()> may_still_see(const control::Controller& controller, const ApiCall& call,
                                    std::string job_id) {
  return [&controller, who = call.who, still_valid = call.still_valid, id = std::move(job_id)] {
    if (still_valid && !still_valid()) return false;
    const job::Job* const job = controller.jobs().with_id(id);
    return job == nullptr || Sight(controller, who).sees(*job);
  };
}

base::Result<void> check_task(const job::Job& job, const std::optional<std::string>& task) {
  const bool has_it =
      !task || std::any_of(job.tasks.begin(), job.tasks.end(),
                           [&](const job::Task& each) { return each.name == *task; });
  if (has_it) return {};
  return base::Error{.code = base::ErrorCode::kNotFound,
                     .what = "job '" + job.spec.name + "' has no task '" + *task + "'",
                     .advice = "list its tasks: muster get " + job.spec.name};
}

}  // namespace muster::server
