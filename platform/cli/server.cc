// server: run it here, tell the one that runs to leave, or show its fingerprint.
#include "cli/server.h"

#include <poll.h>

#include <chrono>

#include "base/files.h"
#include "base/subprocess.h"
#include "cli/command_parts.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/server_flags.h"
#include "cli/server_keys.h"
#include "cli/server_start.h"
#include "http/tls.h"

namespace muster::cli {

namespace {

Call read_server(Reading& in) {
  ServerCommand command{.source = read_server_source(in.caller, in.reader)};
  command.options = read_server_flags(command.source, in.reader);
  if (in.reader.has("--stop")) command.what = ServerCommand::What::kStop;
  if (in.reader.has("--fingerprint")) command.what = ServerCommand::What::kShowFingerprint;
  if (in.reader.has("--stop") && in.reader.has("--fingerprint")) {
    in.reader.fault("--fingerprint", "does not go with --stop");
  }
  return command;
}

/// A flag for each key of the configuration.
Flags key_flags() {
  Flags flags;
  for (const ServerKey& key : server_keys()) {
    if (!key.flag.empty()) flags.push_back(flag_of(key));
  }
  return flags;
}

}  // namespace

Command server_command() {
  return {
      .name = "server",
      .help = "run the server here; other commands start one by themselves",
      .read = read_server,
      .flags = Flags{{.name = "--config",
                      .value = "FILE",
                      .help = "its configuration, in YAML; flags win over it (default: "
                              "$XDG_CONFIG_HOME/muster/server.yaml)",
                      .offer = Offer::kFiles}} +
               key_flags() +
               Flags{{.name = "--fingerprint",
                      .help = "show the fingerprint of its certificate, to compare at login"},
                     {.name = "--stop", .help = "tell the server that runs to leave; jobs go on"},
                     {.name = "--ready-fd", .value = "N", .hidden = true}},
      .example = "muster server --listen 0.0.0.0:7443"};
}

namespace {

/// Whether the process behind `pidfd` ends within some seconds.
bool ends_soon(const base::UniqueFd& pidfd) {
  constexpr std::chrono::milliseconds kBound{10'000};
  pollfd entry{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(kBound.count())) == 1;
}

Result<int> stop_server(const ServeOptions& options) {
  MUSTER_TRY(const Paths paths, paths_here(options.state_folder));
  MUSTER_TRY(const bool answers, server_answers(paths));
  if (!answers) {
    MUSTER_CHECK(show("no server runs\n"));
    return kExitDone;
  }
  api::Client client(paths.socket);
  MUSTER_TRY(const api::ServerInfo info, client.info());
  // Opened before it is told to leave: afterwards the number may belong to somebody else.
  const auto pidfd = base::open_pidfd(info.pid);
  MUSTER_CHECK(client.shut_down());
  const bool ended = !pidfd || ends_soon(*pidfd);
  MUSTER_CHECK(show(ended ? "the server has left; jobs go on\n"
                          : "the server leaves once it has answered what it is asked\n"));
  return kExitDone;
}

Result<int> show_fingerprint(const ServeOptions& options) {
  MUSTER_TRY(const Paths paths, paths_here(options.state_folder));
  const auto certificate = base::read_file(options.tls_certificate.value_or(paths.certificate()));
  if (!certificate) {
    return base::Error{.code = certificate.error().code,
                       .what = certificate.error().what,
                       .advice =
                           "a server that is started with --listen makes a certificate "
                           "where it was given none"};
  }
  MUSTER_TRY(const std::string fingerprint, http::fingerprint_of(*certificate));
  MUSTER_CHECK(show(http::readable_fingerprint(fingerprint) + "\n"));
  return kExitDone;
}

}  // namespace

Result<int> execute(const ServerCommand& command, const Hooks& hooks) {
  const ServerSource source = with_usual_file(command.source);
  MUSTER_TRY(ServeOptions options, read_server_options(source));
  if (command.what == ServerCommand::What::kStop) return stop_server(options);
  if (command.what == ServerCommand::What::kShowFingerprint) return show_fingerprint(options);
  options.ready_fd = command.options.ready_fd;
  return hooks.serve(options, [source] { return read_server_options(source); });
}

}  // namespace muster::cli
