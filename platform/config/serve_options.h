// The options of a server. server_keys.cc has their meaning, keys and flags; a test compares
// docs/configuration.md with it.
//
// Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/machine_type.h"

namespace muster::config {

/// The address at which the nodes of a cluster reach the server.
struct CallbackAddress {
  std::vector<std::string> hosts;  ///< names or addresses, without brackets; empty: its own
  uint16_t port = 0;               ///< 0: any port, which is then kept

  bool operator==(const CallbackAddress&) const = default;
};

/// The file that options were read from, with its time.
struct ConfigStamp {
  std::filesystem::path file;                                   ///< empty: no file
  std::optional<std::filesystem::file_time_type> written = {};  ///< nothing: it did not exist

  bool operator==(const ConfigStamp&) const = default;
};

/// Whether the file has been written, created or removed since. I/O.
bool has_changed(const ConfigStamp& stamp);

/// Paths are absolute.
struct ServeOptions {
  ConfigStamp config;
  std::optional<std::filesystem::path> state_folder;  ///< unset: paths.h decides
  std::optional<std::filesystem::path> jobs_folder;   ///< unset: jobs/ in the state folder
  std::string store;  ///< a file or a postgres:// URL; empty: muster.db in the state folder
  std::optional<std::filesystem::path> store_password_file;
  std::optional<std::filesystem::path> secret_key_file;  ///< unset: secret.key in the state folder

  std::optional<std::filesystem::path> storage_folder;  ///< unset: storage/ in the state folder
  std::vector<std::string> shared_folders;     ///< that the tasks of a team find in private places
  int64_t workspace_bytes = int64_t{4} << 30;  ///< the most that the files of a job have

  std::string listen;     ///< "0.0.0.0:7443"; empty: only the unix socket
  std::string advertise;  ///< "HOST:PORT" that callers are sent to; empty: made from `listen`
  std::optional<std::filesystem::path> tls_certificate;  ///< with tls_key; unset: a self-signed one
  std::optional<std::filesystem::path> tls_key;
  std::vector<std::string> tls_names;  ///< for the self-signed one, beside the usual names

  std::chrono::milliseconds session_lifetime{std::chrono::hours(24 * 30)};
  double request_rate = 200;   ///< requests a second of one token
  double request_burst = 400;  ///< and at once
  int64_t body_bytes = 4 << 20;
  int connections = 1000;
  int connections_of_address = 200;
  std::chrono::milliseconds request_timeout{30'000};
  std::chrono::milliseconds write_timeout{300'000};
  int failed_logins = 10;
  std::chrono::milliseconds failed_login_window{60'000};
  std::chrono::milliseconds failed_login_wait{900'000};

  bool trust_each_other = false;  ///< jobs of several projects may run without being kept apart

  // What each task of the process engine may use, and sees of its account.
  std::string task_homes = "user";    ///< or "project": whose the home folder of a team's task is
  std::string task_network = "own";   ///< or "shared": of a team's gang
  bool task_user_namespaces = false;  ///< tasks of a team may make user namespaces
  std::string task_cpu = "shares";    ///< or "bind" or "none": what a claim of CPUs does
  std::string task_devices = "own";   ///< or "all": the devices that a team's tasks can open
  std::optional<int> task_processes;  ///< unset: 4096 for a team, else any number
  int task_open_files = 0;            ///< 0, here and below: no limit
  int64_t task_file_bytes = 0;
  int64_t task_scratch_bytes = 0;

  int64_t log_quota = int64_t{1} << 30;  ///< bytes of one task's log; 0: any number
  std::string log_format = "text";       ///< or "json"
  bool log_requests = false;

  std::optional<std::chrono::milliseconds> idle_exit;  ///< unset: stay until told to leave

  // What is kept of ended jobs; unset: all.
  std::optional<std::chrono::milliseconds> keep_jobs_for;
  std::optional<int> keep_jobs;       ///< of each project
  std::optional<int64_t> keep_bytes;  ///< of the disk

  std::string engine = "process";  ///< or "container", "slurm"
  /// Where its containers run: name -> "unix:///run/docker.sock", "tcp://host:2376", "ssh://user@
  /// host/run/podman/podman.sock", unread. Empty: DOCKER_HOST, or the usual sockets of this
  /// machine.
  std::map<std::string, std::string> container_hosts;
  /// Where others reach a host's tasks, and its GPUs, where the engine cannot tell: name -> value.
  std::map<std::string, std::string> host_addresses;
  std::map<std::string, std::string> host_gpus;
  // What jobs may ask of these hosts, where the server is shared.
  std::vector<std::string> allowed_host_paths;
  std::vector<std::string> allowed_capabilities;
  std::optional<std::filesystem::path> docker_cert_path;  ///< ca.pem, cert.pem, key.pem

  // How jobs run on Slurm.
  std::string slurm_rest;  ///< of slurmrestd: "unix:///SOCKET", "http://HOST:PORT"; empty: none
  std::string slurm_rest_user;  ///< whom it is asked as; empty: who the server runs as
  std::vector<std::string> slurm_token_command;  ///< prints a token; empty: `scontrol token`
  CallbackAddress slurm_callback;
  std::string slurm_callback_bind = "0.0.0.0";
  std::string slurm_shared = "auto";  ///< or "yes", "no": nodes see the folder of the jobs
  std::string slurm_node_folder;      ///< of the nodes; empty: one in their /tmp
  std::string slurm_programs;         ///< where nodes find Muster's programs; empty: as here
  int slurm_tasks_per_node = 1;
  std::map<std::string, std::string> slurm_accounts;  ///< project -> account
  std::string slurm_default_account;                  ///< of the others; "%p": the project's name
  // What jobs may name of Slurm's beside their project's account, where the server is shared.
  std::vector<std::string> slurm_job_accounts;
  std::vector<std::string> slurm_job_reservations;
  std::string slurm_qos;
  std::vector<std::string> slurm_options;  ///< further ones of sbatch: "--exclude=n7"

  std::string declared_gpus;          ///< N[:MODEL[:MEMORY]], unread; empty: those that are there
  std::string node_pool = "default";  ///< that the server's node belongs to
  int task_slots = 256;               ///< how many tasks may run at once, whatever they ask for
  std::map<std::string, std::string> topology;  ///< of the server's node: level -> domain

  job::MachineTypes machine_types;  ///< over the usual ones
  job::ImageStandIns images;        ///< what runs in the place of images

  std::vector<std::string> notify_allow;  ///< receivers within the server's own network
  bool notify_allow_http = false;
  std::vector<std::string> notify_command;  ///< with its arguments; empty: none
  std::chrono::milliseconds notify_first_retry{10'000};
  std::chrono::milliseconds notify_longest_pause{3'600'000};
  std::chrono::milliseconds notify_give_up_after{24 * 3'600'000};

  std::string packing = "fragmentation";  ///< or "pack", "spread"
  /// How long a gang may run below its minimum; unset: for ever.
  std::optional<std::chrono::milliseconds> stale_grace{60'000};
  /// How long nobody is evicted for a gang that has just come.
  std::chrono::milliseconds forbearance{1000};
  /// How long a gang waits before room is kept free for it.
  std::chrono::milliseconds patience{600'000};
  double decay = 0;  ///< how much past use weighs in fair shares

  int ready_fd = -1;  ///< where to write 'r' once the socket is open; -1: nowhere
};

}  // namespace muster::config
