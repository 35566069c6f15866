// Every route of the server, at least once, with what each kind of caller is answered.
#pragma once

#include <string>
#include <vector>

#include "velvet_team.h"

namespace muster::server {

/// What each kind of caller is answered. Whoever shows no token that is good is answered 401, and
/// an invitation 403, but on routes that are for them; a token that is good for green alone is
/// answered what a member of green is.
struct Row {
  std::string route;  ///< as it was added
  TeamServer::Ask ask;
  int stranger = 0;
  int viewer = 0;
  int member = 0;
  int admin = 0;
  int server_viewer = 0;
  int server_admin = 0;
  int reading = 0;  ///< of an admin of the project, but only to read; 0: as a viewer
  int nobody = 401;
  int invited = 403;
};

std::vector<Row> rows();

/// The status that `caller`, one of Team's, is to be answered.
int expected(const Row& row, const std::string& caller);

/// For a command in a task of a job, over a WebSocket.
TeamServer::Ask ask_to_execute(const std::string& job, const std::string& task);

http::Response ask_as(Team& team, const Row& row, const std::string& caller);

/// What was asked by whom, for a message.
std::string title(const Row& row, const std::string& caller);

}  // namespace muster::server
