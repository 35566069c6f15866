#include "server/router.h"

#include <optional>

#include "base/text.h"
#include "server/answers.h"

namespace muster::server {

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

}  // namespace

void Router::add(std::string method, std::string_view path, RouteHandler handler) {
  routes_.push_back({.method = std::move(method),
                     .segments = base::split(path, '/'),
                     .handler = std::move(handler)});
}

void Router::handle(const http::Request& request, http::Respond respond) const {
  const std::vector<std::string> path = base::split(request.path, '/');
  bool known_path = false;
  for (const Route& route : routes_) {
    const auto values = match(route.segments, path);
    if (!values) continue;
    known_path = true;
    if (route.method == request.method) return route.handler(request, *values, std::move(respond));
  }
  if (known_path) {
    http::Response refused = problem({.code = base::ErrorCode::kInvalid,
                                      .what = request.method + " is not allowed on this path"});
    refused.status = 405;
    return respond(std::move(refused));
  }
  respond(problem(
      {.code = base::ErrorCode::kNotFound, .what = "there is nothing at '" + request.path + "'"}));
}

}  // namespace muster::server
