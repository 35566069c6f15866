// Finds the handler of a request: a method and a path in which {name} stands for one segment.
//
// Add all routes before the first request; then it is only read.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"
#include "http/server.h"

namespace muster::server {

/// What stands at the {names} of a route's path.
using PathValues = std::map<std::string, std::string>;

using RouteHandler = std::function<void(const http::Request&, const PathValues&, http::Respond)>;

class Router {
 public:
  void add(std::string method, std::string_view path, RouteHandler handler);

  /// Calls the handler; answers 404 for an unknown path and 405 for a known one with another
  /// method.
  void handle(const http::Request& request, http::Respond respond) const;

 private:
  struct Route {
    std::string method;
    std::vector<std::string> segments;
    RouteHandler handler;
  };
  std::vector<Route> routes_;
};

}  // namespace muster::server
