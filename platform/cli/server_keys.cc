#include "cli/server_keys.h"

#include <type_traits>
#include <utility>

#include "cli/server_tables.h"
#include "cli/server_values.h"

namespace muster::cli {

namespace {

/// Ties a key to the member that it sets.
template <class Value>
ServerKey key(ServerKey about, Value ServeOptions::* member,
              void (*read)(const KeyValue&, std::type_identity_t<Value>&)) {
  about.read = [member, read](const KeyValue& value, ServeOptions& options) {
    read(value, options.*member);
  };
  about.same = [member](const ServeOptions& a, const ServeOptions& b) {
    return a.*member == b.*member;
  };
  about.copy = [member](const ServeOptions& from, ServeOptions& to) { to.*member = from.*member; };
  return about;
}

using Keys = std::vector<ServerKey>;

Keys places() {
  return {
      key({.name = "state_dir",
           .flag = "--state-dir",
           .variable = "MUSTER_STATE_DIR",
           .type = "folder",
           .fallback = "$XDG_STATE_HOME/muster",
           .help = "where it keeps jobs and logs",
           .offer = Offer::kFolders,
           .only_named_files = true},
          &ServeOptions::state_folder, read_path),
      key({.name = "jobs_dir",
           .flag = "--jobs-dir",
           .type = "folder",
           .fallback = "jobs in the state folder",
           .help = "where the folders of the jobs are; servers that share a database share this",
           .offer = Offer::kFolders},
          &ServeOptions::jobs_folder, read_path),
      key({.name = "storage_dir",
           .flag = "--storage-dir",
           .type = "folder",
           .fallback = "storage in the folder of the jobs",
           .help = "where the folders of projects are that outlive their jobs (/storage)",
           .offer = Offer::kFolders},
          &ServeOptions::storage_folder, read_path),
      key({.name = "store",
           .flag = "--store",
           .variable = "MUSTER_STORE",
           .type = "store",
           .fallback = "muster.db in the state folder",
           .help = "the database: a file, or postgres://USER@HOST/DATABASE",
           .offer = Offer::kFiles},
          &ServeOptions::store, read_store),
      key({.name = "store_password_file",
           .flag = "--store-password-file",
           .type = "file",
           .fallback = "none; libpq's ~/.pgpass is read, too",
           .help = "holds the password of the PostgreSQL user, in a line of its own",
           .offer = Offer::kFiles},
          &ServeOptions::store_password_file, read_path),
      key({.name = "secret_key_file",
           .flag = "--secret-key-file",
           .type = "file",
           .fallback = "secret.key in the state folder",
           .help = "holds the key that secrets are sealed with: 64 hexadecimal digits",
           .offer = Offer::kFiles},
          &ServeOptions::secret_key_file, read_path),
  };
}

Keys network() {
  return {
      key({.name = "listen",
           .flag = "--listen",
           .type = "address",
           .fallback = "nowhere but on the unix socket",
           .help = "where it serves by TLS, as in 0.0.0.0:7443"},
          &ServeOptions::listen, read_listen),
      key({.name = "advertise",
           .flag = "--advertise",
           .type = "address",
           .fallback = "the host's name and the port it listens on",
           .help = "the address that a server which waits sends callers to, as in muster-1:7443"},
          &ServeOptions::advertise, read_listen),
      key({.name = "tls.certificate",
           .flag = "--tls-certificate",
           .type = "file",
           .fallback = "a self-signed one, made in the state folder",
           .help = "its certificate and those above it, as PEM",
           .reloads = true,
           .offer = Offer::kFiles},
          &ServeOptions::tls_certificate, read_path),
      key({.name = "tls.key",
           .flag = "--tls-key",
           .type = "file",
           .fallback = "made with the self-signed certificate",
           .help = "the certificate's key, as PEM; readable by its owner alone",
           .reloads = true,
           .offer = Offer::kFiles},
          &ServeOptions::tls_key, read_path),
      key({.name = "tls.names",
           .flag = "--tls-names",
           .type = "names",
           .fallback = "none",
           .help =
               "more host names and addresses for the self-signed certificate, when it is made"},
          &ServeOptions::tls_names, read_names),
  };
}

Keys limits() {
  return {
      key({.name = "session_lifetime",
           .flag = "--session-lifetime",
           .type = "time",
           .fallback = "30d",
           .help = "how long a login holds",
           .reloads = true},
          &ServeOptions::session_lifetime, read_some_time),
      key({.name = "limits.request_rate",
           .flag = "--request-rate",
           .type = "number",
           .fallback = "200",
           .help = "requests a second of one token; the unix socket has no limit",
           .reloads = true},
          &ServeOptions::request_rate, read_rate),
      key({.name = "limits.request_burst",
           .flag = "--request-burst",
           .type = "number",
           .fallback = "400",
           .help = "requests of one token at once",
           .reloads = true},
          &ServeOptions::request_burst, read_rate),
      key({.name = "limits.body_bytes",
           .flag = "--body-bytes",
           .type = "size",
           .fallback = "4Mi",
           .help = "the largest body of a request",
           .reloads = true},
          &ServeOptions::body_bytes, read_size),
      key({.name = "limits.workspace_bytes",
           .flag = "--workspace-bytes",
           .type = "size",
           .fallback = "4Gi",
           .help = "how large the files may be that are sent with a job"},
          &ServeOptions::workspace_bytes, read_large_size),
      key({.name = "limits.connections",
           .flag = "--connections",
           .type = "count",
           .fallback = "1000",
           .help = "connections at once; more are answered 503",
           .reloads = true},
          &ServeOptions::connections, read_positive),
      key({.name = "limits.connections_of_address",
           .flag = "--connections-of-address",
           .type = "count",
           .fallback = "200",
           .help = "connections at once of one address",
           .reloads = true},
          &ServeOptions::connections_of_address, read_positive),
      key({.name = "limits.request_timeout",
           .flag = "--request-timeout",
           .type = "time",
           .fallback = "30s",
           .help = "how long a client may take to send a request, and between two",
           .reloads = true},
          &ServeOptions::request_timeout, read_seconds),
      key({.name = "limits.write_timeout",
           .flag = "--write-timeout",
           .type = "time",
           .fallback = "5m",
           .help = "how long a client may take nothing of an answer",
           .reloads = true},
          &ServeOptions::write_timeout, read_seconds),
      key({.name = "limits.failed_logins",
           .flag = "--failed-logins",
           .type = "count",
           .fallback = "10",
           .help = "failed logins of an address before it has to wait",
           .reloads = true},
          &ServeOptions::failed_logins, read_positive),
      key({.name = "limits.failed_login_window",
           .flag = "--failed-login-window",
           .type = "time",
           .fallback = "1m",
           .help = "how long a failed login counts",
           .reloads = true},
          &ServeOptions::failed_login_window, read_seconds),
      key({.name = "limits.failed_login_wait",
           .flag = "--failed-login-wait",
           .type = "time",
           .fallback = "15m",
           .help = "how long an address waits at most",
           .reloads = true},
          &ServeOptions::failed_login_wait, read_seconds),
  };
}

Keys habits() {
  return {
      key({.name = "log_quota",
           .flag = "--log-quota",
           .variable = "MUSTER_LOG_QUOTA",
           .type = "size",
           .fallback = "1Gi",
           .help = "how large the log of a task may grow before its oldest part goes; 0: it may "
                   "grow without end"},
          &ServeOptions::log_quota, read_size_or_none),
      key({.name = "log_format",
           .flag = "--log-format",
           .type = "text or json",
           .fallback = "text",
           .help = "how its log is written",
           .reloads = true,
           .choices = {"text", "json"},
           .offer = Offer::kChoices},
          &ServeOptions::log_format, read_log_format),
      key({.name = "log_requests",
           .flag = "--log-requests",
           .type = "true or false",
           .fallback = "false",
           .help = "also log requests over the unix socket; those over TLS always are",
           .reloads = true,
           .choices = {"true", "false"},
           .offer = Offer::kChoices},
          &ServeOptions::log_requests, read_switch),
      key({.name = "idle_exit",
           .flag = "--idle-exit",
           .type = "time",
           .fallback = "it stays",
           .help = "leave when nothing ran and nobody asked for so long"},
          &ServeOptions::idle_exit, read_maybe_time),
      key({.name = "gpus",
           .flag = "--declare-gpus",
           .variable = "MUSTER_DECLARE_GPUS",
           .type = "N[:MODEL[:MEMORY]]",
           .fallback = "those that are there",
           .help = "have so many GPUs, whatever there is: to try the scheduler out"},
          &ServeOptions::declared_gpus, read_text),
      key({.name = "node_pool",
           .flag = "--node-pool",
           .type = "pool",
           .fallback = "default",
           .help = "the node pool that this machine belongs to"},
          &ServeOptions::node_pool, read_filled_text),
      key({.name = "task_slots",
           .flag = "--task-slots",
           .type = "count",
           .fallback = "256",
           .help = "tasks at once on this machine, whatever they ask for"},
          &ServeOptions::task_slots, read_positive),
      key({.name = "topology",
           .flag = "--topology",
           .type = "LEVEL=DOMAIN,...",
           .fallback = "none",
           .help = "where this machine stands, as in rack=r1,block=b1"},
          &ServeOptions::topology, read_topology),
      key({.name = "machine_types",
           .type = "table",
           .fallback = "those of Gradient's documents",
           .help = "what a task claims that asks for a machine by this name",
           .reloads = true},
          &ServeOptions::machine_types, read_machine_types),
      key({.name = "images",
           .type = "table",
           .fallback = "none",
           .help = "what stands in for an image where none can be run"},
          &ServeOptions::images, read_images),
  };
}

Keys engines() {
  return {
      key({.name = "engine",
           .flag = "--engine",
           .variable = "MUSTER_ENGINE",
           .type = "how",
           .fallback = "process",
           .help = "what tasks are: processes of this machine, or containers of Docker or Podman",
           .choices = {"process", "container"},
           .offer = Offer::kChoices},
          &ServeOptions::engine, read_engine),
      key({.name = "container_hosts",
           .flag = "--host",
           .type = "NAME=URL",
           .fallback = "the Docker or Podman of this machine",
           .help = "where containers run: unix:///SOCKET, tcp://HOST:PORT or ssh://USER@HOST; one "
                   "node each",
           .repeats = true},
          &ServeOptions::container_hosts, read_container_hosts),
      key({.name = "host_addresses",
           .type = "table",
           .fallback = "the hosts of the URLs",
           .help = "where tasks on other hosts reach those of a host, by its name"},
          &ServeOptions::host_addresses, read_host_table),
      key({.name = "host_gpus",
           .type = "table",
           .fallback = "none",
           .help = "the GPUs of a host, by its name, as N[:MODEL[:MEMORY]]: its engine does not "
                   "tell"},
          &ServeOptions::host_gpus, read_host_table),
      key({.name = "host_paths",
           .flag = "--host-paths",
           .type = "paths",
           .fallback = "any; none where it listens",
           .help = "which paths of the hosts jobs may mount, each by itself: who may mount any is "
                   "root there"},
          &ServeOptions::allowed_host_paths, read_names),
      key({.name = "capabilities",
           .flag = "--capabilities",
           .type = "names",
           .fallback = "any; none where it listens",
           .help = "which rights of root jobs may have left to them (--cap-add)"},
          &ServeOptions::allowed_capabilities, read_names),
      key({.name = "docker_cert_path",
           .flag = "--docker-cert-path",
           .variable = "DOCKER_CERT_PATH",
           .type = "folder",
           .fallback = "~/.docker where DOCKER_HOST says tcp",
           .help = "holds ca.pem, cert.pem and key.pem, for hosts by tcp",
           .offer = Offer::kFolders},
          &ServeOptions::docker_cert_path, read_path),
  };
}

Keys notifying() {
  return {
      key({.name = "notify.allow",
           .flag = "--notify-allow",
           .type = "addresses",
           .fallback = "none",
           .help = "receivers of notifications that are in the server's own network, or on an "
                   "unusual port: HOST, ADDRESS or NETWORK/BITS, each with :PORT or :* behind it",
           .reloads = true},
          &ServeOptions::notify_allow, read_names),
      key({.name = "notify.allow_http",
           .flag = "--notify-allow-http",
           .type = "true or false",
           .fallback = "false",
           .help = "also notify receivers by http, where anybody on the way reads along",
           .reloads = true,
           .choices = {"true", "false"},
           .offer = Offer::kChoices},
          &ServeOptions::notify_allow_http, read_switch),
      key({.name = "notify.command",
           .type = "list",
           .fallback = "none",
           .help = "a program and its arguments, run for everything that happens to a job",
           .reloads = true},
          &ServeOptions::notify_command, read_command),
      key({.name = "notify.first_retry",
           .flag = "--notify-first-retry",
           .type = "time",
           .fallback = "10s",
           .help = "how long after the first failure a notification is tried again; then the pause "
                   "doubles",
           .reloads = true},
          &ServeOptions::notify_first_retry, read_some_time),
      key({.name = "notify.longest_pause",
           .flag = "--notify-longest-pause",
           .type = "time",
           .fallback = "1h",
           .help = "the longest pause between two attempts",
           .reloads = true},
          &ServeOptions::notify_longest_pause, read_some_time),
      key({.name = "notify.give_up_after",
           .flag = "--notify-give-up-after",
           .type = "time",
           .fallback = "1d",
           .help = "when a notification that does not arrive becomes a dead letter",
           .reloads = true},
          &ServeOptions::notify_give_up_after, read_some_time),
  };
}

Keys retention() {
  return {
      key({.name = "keep_jobs_for",
           .flag = "--keep-jobs-for",
           .type = "time",
           .fallback = "until they are deleted",
           .help = "how long ended jobs are kept, with logs and artifacts; a job's --keep-for goes "
                   "before",
           .reloads = true},
          &ServeOptions::keep_jobs_for, read_time_or_forever),
      key({.name = "keep_jobs",
           .flag = "--keep-jobs",
           .type = "count",
           .fallback = "all",
           .help = "how many ended jobs of each project are kept, those that ended last",
           .reloads = true},
          &ServeOptions::keep_jobs, read_count_or_all),
      key({.name = "keep_bytes",
           .flag = "--keep-bytes",
           .type = "size",
           .fallback = "all",
           .help = "how much room of the disk ended jobs may take; those that ended first go first",
           .reloads = true},
          &ServeOptions::keep_bytes, read_size_or_all),
  };
}

Keys scheduling() {
  return {
      key({.name = "scheduler.packing",
           .flag = "--packing",
           .type = "how",
           .fallback = "fragmentation",
           .help = "where jobs go that fit in several places",
           .choices = {"fragmentation", "pack", "spread"},
           .offer = Offer::kChoices},
          &ServeOptions::packing, read_packing),
      key({.name = "scheduler.stale_grace",
           .flag = "--stale-grace",
           .type = "time",
           .fallback = "1m",
           .help = "how long a job may run with fewer tasks than it needs, or never: it is not "
                   "ended for that"},
          &ServeOptions::stale_grace, read_time_or_never),
      key({.name = "scheduler.forbearance",
           .flag = "--forbearance",
           .type = "time",
           .fallback = "1s",
           .help = "nobody is evicted for a job that came so short a time ago"},
          &ServeOptions::forbearance, read_time),
      key({.name = "scheduler.patience",
           .flag = "--patience",
           .type = "time",
           .fallback = "10m",
           .help = "a job that has waited so long has room kept for it"},
          &ServeOptions::patience, read_time),
      key({.name = "scheduler.decay",
           .flag = "--decay",
           .type = "number",
           .fallback = "0",
           .help = "how much past use counts against a project"},
          &ServeOptions::decay, read_decay),
  };
}

std::string upper(std::string text) {
  for (char& letter : text) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return text;
}

}  // namespace

const std::vector<ServerKey>& server_keys() {
  static const Keys all = [] {
    Keys keys;
    for (Keys part : {places(), network(), limits(), habits(), engines(), retention(), notifying(),
                      scheduling()}) {
      for (ServerKey& each : part) keys.push_back(std::move(each));
    }
    return keys;
  }();
  return all;
}

Flag flag_of(const ServerKey& key) {
  // A value in words, "text or json", is better shown by its choices.
  const bool is_word = key.type.find(' ') == std::string::npos;
  return {.name = key.flag,
          .value = is_word ? upper(key.type) : "VALUE",
          .help = key.help + " (default: " + key.fallback + ")",
          .choices = key.choices,
          .offer = key.offer,
          .repeats = key.repeats};
}

}  // namespace muster::cli
