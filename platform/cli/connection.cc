#include "cli/connection.h"

#include <iostream>

#include "cli/server_start.h"

namespace muster::cli {

namespace {

void warn_of_other_version(const api::ServerInfo& server, const std::string& version) {
  std::cerr << "muster: warning: the server is version " << server.version << ", this is "
            << version << "\n  'muster server --stop' lets the next command start this version's; "
            << "jobs go on meanwhile\n";
}

}  // namespace

Result<Connection> Connection::open(Paths paths, const std::string& version) {
  Connection connection(std::move(paths));
  connection.client_ = std::make_unique<api::Client>(connection.paths_.socket);
  MUSTER_TRY(const api::ServerInfo server,
             connection.call([](api::Client& client) { return client.info(); }));
  if (server.version != version) warn_of_other_version(server, version);
  return connection;
}

Result<void> Connection::reopen() {
  MUSTER_CHECK(ensure_server(paths_));
  client_ = std::make_unique<api::Client>(paths_.socket);
  return {};
}

}  // namespace muster::cli
