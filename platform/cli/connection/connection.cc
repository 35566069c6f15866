#include "cli/connection/connection.h"

#include <chrono>
#include <iostream>
#include <thread>

#include "api/server_url.h"
#include "base/files.h"
#include "cli/connection/server_start.h"

namespace muster::cli {

namespace {

void warn_of_other_version(const api::ServerInfo& server, const std::string& version,
                           bool is_shared) {
  std::cerr << "muster: warning: the server is version " << server.version << ", this is "
            << version << "\n";
  if (is_shared) return;
  std::cerr << "  'muster server --stop' lets the next command start this version's; "
            << "jobs go on meanwhile\n";
}

void warn_of_changed_config() {
  std::cerr << "muster: warning: the server's configuration file has changed since the server read "
            << "it\n  'muster server --stop' lets the next command start a server that reads it; "
            << "jobs go on meanwhile\n";
}

base::Error runs_another_engine(const api::ServerInfo& server, const std::string& wanted,
                                bool is_shared) {
  const std::string whose = is_shared ? "the server" : "the server that runs here";
  return {
      .code = base::ErrorCode::kConflict,
      .what = server.engine.empty()
                  ? whose + " does not say what it runs jobs on, as --engine " + wanted + " asks"
                  : whose + " runs jobs on the engine '" + server.engine + "', and not on '" +
                        wanted + "'",
      .advice = is_shared
                    ? "leave --engine out; or choose another server: --context NAME"
                    : "leave --engine out; or, once its jobs have ended, muster server --stop "
                      "and then this again; or use a second state folder: MUSTER_STATE_DIR"};
}

}  // namespace

Result<Connection> Connection::open(const Context& context, const std::string& version,
                                    std::string project, std::string engine) {
  Connection connection;
  connection.engine_ = std::move(engine);
  connection.project_ = std::move(project);
  if (context.is_local()) {
    MUSTER_TRY(connection.paths_, config::paths_here());
  } else {
    MUSTER_TRY(connection.endpoint_, endpoint_of(context));
    connection.token_ = context.token;
  }
  connection.client_ = connection.second_client();
  MUSTER_TRY(const api::ServerInfo server,
             connection.call([](api::Client& client) { return client.info(); }));
  if (!connection.engine_.empty() && server.engine != connection.engine_) {
    return runs_another_engine(server, connection.engine_, connection.is_shared());
  }
  if (server.version != version) warn_of_other_version(server, version, connection.is_shared());
  if (server.config_changed && !connection.is_shared()) warn_of_changed_config();
  return connection;
}

Result<void> Connection::reopen() {
  if (!is_shared()) MUSTER_CHECK(ensure_server(paths_, engine_));
  client_ = second_client();
  return {};
}

Result<void> Connection::come_back() {
  // Who runs a shared server brings it back, or lets another take over, within seconds.
  const int most_failures = is_shared() ? 15 : 5;
  if (++failures_ > most_failures) {
    return base::Error{.code = base::ErrorCode::kUnavailable,
                       .what = "the server keeps going away",
                       .advice = "jobs go on; the server's log may say more"};
  }
  // A server that dies at once again and again is given longer each time.
  std::this_thread::sleep_for(std::chrono::milliseconds(100 * (failures_ - 1)));
  return reopen();
}

void Connection::set_project(const std::string& project) {
  project_ = project;
  client_->set_project(project);
}

std::string Connection::url() const {
  return endpoint_ ? api::server_url(endpoint_->host, endpoint_->port) : "";
}

std::unique_ptr<api::Client> Connection::second_client() const {
  auto client = endpoint_ ? std::make_unique<api::Client>(*endpoint_, token_)
                          : std::make_unique<api::Client>(paths_.socket);
  client->set_project(project_);
  return client;
}

Result<http::TlsEndpoint> endpoint_of(const Context& context) {
  MUSTER_TRY(const api::ServerAddress address, api::parse_server_url(context.server));
  http::TlsEndpoint endpoint{.host = address.host,
                             .port = address.port,
                             .fingerprint = context.fingerprint,
                             .authorities = {}};
  if (context.ca_file.empty() || !context.fingerprint.empty()) return endpoint;
  auto authorities = base::read_file(context.ca_file);
  if (!authorities) {
    base::Error error = std::move(authorities).error();
    error.code = base::ErrorCode::kInvalid;  // kNotFound would say that a job is missing
    error.advice = "it holds the authorities of context '" + context.name +
                   "'; with another: muster login " + context.server + " --ca FILE";
    return error;
  }
  endpoint.authorities = *std::move(authorities);
  return endpoint;
}

}  // namespace muster::cli
