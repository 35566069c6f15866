// Finds the handler of a request: a method and a path in which {name} stands for one segment. Each
// route says who may use it.
//
// Add all routes before the first request; then it is only read.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"
#include "http/server.h"
#include "server/call.h"

namespace muster::server {

using RouteHandler = std::function<void(const Call&, http::Respond)>;

class Router {
 public:
  void add(std::string method, std::string_view path, Permission permission, RouteHandler handler);

  struct Found {
    Permission permission = Permission::kServerAdmin;
    const RouteHandler* handler = nullptr;  ///< nullptr: there is none
    std::string route;                      ///< its path as it was added: "/v1/jobs/{name}"
    PathValues path;
    bool path_known = false;           ///< with another method
    std::vector<std::string> methods;  ///< these; then `permission` is kAnybody where theirs is
  };
  Found find(std::string_view method, std::string_view path) const;

  /// Finds the route of `call`, fills in its path, and calls its handler if the caller may; answers
  /// 404 for an unknown path, 405 for a known one with another method, 403 for a caller who may
  /// not. REQUIRES: call.who is known, or the route is for anybody.
  void handle(Call call, http::Respond respond) const;

  /// "GET /v1/jobs/{name}", for tests that go through all of them.
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
