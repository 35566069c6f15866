// server, store and doctor.
#include "cli/command_parts.h"
#include "cli/server_keys.h"

namespace muster::cli {

namespace {

/// A flag for each key of the configuration.
Flags key_flags() {
  Flags flags;
  for (const ServerKey& key : server_keys()) {
    if (!key.flag.empty()) flags.push_back(flag_of(key));
  }
  return flags;
}

/// Which store is meant: named, or that of a configuration.
Flags store_flags() {
  Flags flags = {{.name = "--config",
                  .value = "FILE",
                  .help = "the configuration of the server whose store it is",
                  .offer = Offer::kFiles}};
  for (const ServerKey& key : server_keys()) {
    const bool names_a_store =
        key.name == "store" || key.name == "store_password_file" || key.name == "state_dir";
    if (names_a_store) flags.push_back(flag_of(key));
  }
  return flags;
}

Positionals backup_file() {
  return {.name = "FILE", .least = 1, .most = 1, .offer = Offer::kFiles};
}

}  // namespace

Command server() {
  return {
      .name = "server",
      .help = "run the server here; other commands start one by themselves",
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

Command doctor() {
  Flags flags = {{.name = "--config",
                  .value = "FILE",
                  .help = "the configuration of the server that would run here",
                  .offer = Offer::kFiles}};
  for (const ServerKey& key : server_keys()) {
    if (key.name == "engine" || key.name == "state_dir") flags.push_back(flag_of(key));
  }
  return {.name = "doctor",
          .help = "what engines find on this machine, what is missing, and how to get it",
          .flags = flags + output_flag(),
          .example = "muster doctor --engine slurm"};
}

Command store() {
  return {.name = "store",
          .help = "back up, restore, check and mend the database of a server",
          .commands = {{.name = "backup",
                        .help = "write all of it into a file, also while a server runs",
                        .positionals = backup_file(),
                        .flags = store_flags() + output_flag(),
                        .example = "muster store backup muster-backup.db"},
                       {.name = "restore",
                        .help = "put a backup into an empty database",
                        .positionals = backup_file(),
                        .flags = store_flags() + output_flag(),
                        .example = "muster store restore muster-backup.db"},
                       {.name = "check",
                        .help = "read every byte of it and say what is damaged",
                        .flags = store_flags() + output_flag(),
                        .example = "muster store check"},
                       {.name = "set-aside",
                        .help = "move a record that cannot be read out of the way of the server",
                        .positionals = {.name = "NAME", .least = 1, .most = 1},
                        .flags = store_flags() + output_flag(),
                        .example = "muster store set-aside default/train"}}};
}

}  // namespace muster::cli
