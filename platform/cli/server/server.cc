#include "cli/server/server.h"

#include <poll.h>

#include <chrono>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "cli/connection/server_start.h"
#include "config/server_keys.h"
#include "http/tls.h"

namespace muster::cli::server {

namespace {

std::string upper(std::string text) {
  for (char& letter : text) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return text;
}

}  // namespace

Flag flag_of(const config::ServerKey& key) {
  // A value in words, "text or json", is better shown by its choices.
  const bool is_word = key.type.find(' ') == std::string::npos;
  return {.name = key.flag,
          .value = is_word ? upper(key.type) : "VALUE",
          .help = key.help + " (default: " + key.fallback + ")",
          .choices = key.choices,
          .offer = key.choices.empty() ? offer_of(key.offer) : Offer::kChoices,
          .repeats = key.repeats,
          .group =
              key.name.substr(0, key.name.find('.') == std::string::npos ? 0 : key.name.find('.'))};
}

config::ServerSource read_server_source(const Caller& caller, const FlagReader& reader) {
  config::ServerSource source{.folder = caller.folder};
  if (reader.has("--config")) {
    source.file = (source.folder / reader.text("--config")).lexically_normal();
    source.file_was_named = true;
  }
  for (const config::ServerKey& key : config::server_keys()) {
    const auto variable = caller.environment.find(key.variable);
    if (variable != caller.environment.end() && !variable->second.empty()) {
      source.settings.push_back({key.name, key.variable, variable->second});
    }
  }
  for (const config::ServerKey& key : config::server_keys()) {
    if (!key.flag.empty() && reader.has(key.flag)) {
      source.settings.push_back({key.name, key.flag, base::joined(reader.texts(key.flag), ",")});
    }
  }
  return source;
}

config::ServeOptions read_server_flags(const config::ServerSource& source, FlagReader& reader) {
  config::ServeOptions options;
  for (base::Fault& fault : apply_settings(source, options)) {
    reader.fault(std::move(fault.field), std::move(fault.what));
  }
  options.ready_fd = reader.number("--ready-fd", -1);
  return options;
}

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
  for (const config::ServerKey& key : config::server_keys()) {
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

Result<int> stop_server(const config::ServeOptions& options) {
  MUSTER_TRY(const config::Paths paths, config::paths_here(options.state_folder));
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

Result<int> show_fingerprint(const config::ServeOptions& options) {
  MUSTER_TRY(const config::Paths paths, config::paths_here(options.state_folder));
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
  const config::ServerSource source = config::with_usual_file(command.source);
  MUSTER_TRY(config::ServeOptions options, config::read_server_options(source));
  if (command.what == ServerCommand::What::kStop) return stop_server(options);
  if (command.what == ServerCommand::What::kShowFingerprint) return show_fingerprint(options);
  options.ready_fd = command.options.ready_fd;
  return hooks.serve(options, [source] { return config::read_server_options(source); });
}

}  // namespace muster::cli::server
