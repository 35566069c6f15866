// A table of requests, at least one for each route of the server, with the status that each kind of
// caller receives.
#pragma once

#include <string>
#include <vector>

#include "velvet_team.h"

namespace muster::server {

/// A request about the project velvet, and the status that each kind of caller of Team::token_of()
/// receives. A caller without a valid token receives 401, and an invitation receives 403, except on
/// the routes that are meant for them. A token that is limited to the project green ("elsewhere")
/// receives the same as a stranger, who is a member of green.
struct Row {
  std::string route;  ///< the method and the path of the route, as in "GET /v1/jobs/{name}"
  TeamServer::Ask ask;
  int stranger = 0;
  int viewer = 0;
  int member = 0;
  int admin = 0;
  int server_viewer = 0;
  int server_admin = 0;
  int reading = 0;   ///< for a read-only token of an admin of velvet; 0: the same as for a viewer
  int nobody = 401;  ///< for every caller without a valid token
  int invited = 403;
};

std::vector<Row> rows();

/// The status that `caller` (a name of Team::token_of()) must receive.
int expected(const Row& row, const std::string& caller);

/// A request to run a command in a task, over a WebSocket.
TeamServer::Ask ask_to_execute(const std::string& job, const std::string& task);

http::Response ask_as(Team& team, const Row& row, const std::string& caller);

/// The request and its caller, for the message of a failed check.
std::string title(const Row& row, const std::string& caller);

}  // namespace muster::server
