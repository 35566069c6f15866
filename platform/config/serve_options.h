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

#include "config/choices.h"
#include "job/machine_type.h"

namespace muster::config {

/// The address at which the nodes of a cluster reach the server.
struct CallbackAddress {
  std::vector<std::string> hosts;  ///< names or addresses, without brackets; empty: its own
  uint16_t port = 0;               ///< 0: any port, which then stays the same

  bool operator==(const CallbackAddress&) const = default;
};

/// User and group ids that follow each other.
struct IdSpan {
  uint32_t first = 0;
  uint32_t count = 0;

  bool operator==(const IdSpan&) const = default;
};

/// The file of the options, with its modification time.
struct ConfigStamp {
  std::filesystem::path file;                                   ///< empty: no file
  std::optional<std::filesystem::file_time_type> written = {};  ///< nothing: it did not exist

  bool operator==(const ConfigStamp&) const = default;
};

/// Whether the file was written, created or removed since then. I/O.
bool has_changed(const ConfigStamp& stamp);

/// Paths are absolute.
struct ServeOptions {
  ConfigStamp config;
  bool config_was_named = false;                      ///< by --config
  std::optional<std::filesystem::path> state_folder;  ///< unset: paths.h decides
  std::optional<std::filesystem::path> jobs_folder;   ///< unset: jobs/ in the state folder
  std::string store;  ///< a file or a postgres:// URL; empty: muster.db in the state folder
  std::optional<std::filesystem::path> store_password_file;
  std::optional<std::filesystem::path> secret_key_file;  ///< unset: secret.key in the state folder

  std::optional<std::filesystem::path> storage_folder;  ///< unset: storage/ in the jobs folder
  /// Tasks of a team server have private folders in place of these.
  std::vector<std::string> shared_folders;
  int64_t workspace_bytes = int64_t{4} << 30;          ///< the maximum size of a job's files
  int64_t unused_workspace_bytes = int64_t{16} << 30;  ///< of a project's files that no job uses

  std::string listen;     ///< "0.0.0.0:7443"; empty: only the unix socket
  std::string advertise;  ///< the "HOST:PORT" given to callers; empty: derived from `listen`
  std::optional<std::filesystem::path> tls_certificate;  ///< with tls_key; unset: a self-signed one
  std::optional<std::filesystem::path> tls_key;
  /// For the self-signed certificate, in addition to the usual names.
  std::vector<std::string> tls_names;

  std::chrono::milliseconds session_lifetime{std::chrono::hours(24 * 30)};
  double request_rate = 200;   ///< requests per second for each token
  double request_burst = 400;  ///< maximum number of requests at once
  int64_t body_bytes = 4 << 20;
  int connections = 1000;
  int connections_of_address = 200;
  std::chrono::milliseconds request_timeout{30'000};
  std::chrono::milliseconds write_timeout{300'000};
  int failed_logins = 10;
  std::chrono::milliseconds failed_login_window{60'000};
  std::chrono::milliseconds failed_login_wait{900'000};

  /// Jobs of several projects may run without isolation from each other.
  bool trust_each_other = false;

  // The limits of a task of the process engine, and its home folder.
  /// The owner of the home folder of a team's task.
  TaskHomes task_homes = TaskHomes::kOfUser;
  TaskNetwork task_network = TaskNetwork::kOwn;  ///< of a team's gang
  bool task_internet = true;                     ///< where the server can connect a team's gang
  std::string task_internet_range = "10.213.0.0/16";
  std::vector<std::string> task_internet_refused{"169.254.0.0/16", "168.63.129.16/32",
                                                 "100.100.100.200/32"};
  std::vector<std::string> task_nameservers;         ///< of a team's gang; empty: the machine's
  TaskAccounts task_accounts = TaskAccounts::kAuto;  ///< whose ids a team's tasks have
  /// Each user gets a range of these; unset: 1879048192:65536000.
  std::optional<IdSpan> task_subids;
  bool task_user_namespaces = false;  ///< tasks of a team may make user namespaces
  TaskCpu task_cpu = TaskCpu::kShares;
  TaskDevices task_devices = TaskDevices::kOwn;
  std::optional<int>
      task_processes;       ///< unset: depends on the machine for a team, otherwise no limit
  int task_open_files = 0;  ///< 0, here and below: no limit
  int64_t task_file_bytes = 0;
  int64_t task_scratch_bytes = 0;

  int64_t log_quota = int64_t{1} << 30;  ///< bytes of one task's log; 0: no limit
  base::LogFormat log_format = base::LogFormat::kText;
  bool log_requests = false;

  std::optional<std::chrono::milliseconds> idle_exit;  ///< unset: run until stopped

  // Retention of ended jobs; unset: all are kept.
  std::optional<std::chrono::milliseconds> keep_jobs_for;
  std::optional<int> keep_jobs;       ///< for each project
  std::optional<int64_t> keep_bytes;  ///< on disk

  std::string engine = "process";  ///< or "container", "slurm", "kubernetes"
  /// The hosts of its containers: name -> "unix:///run/docker.sock", "tcp://host:2376",
  /// "ssh://user@ host/run/podman/podman.sock", not parsed. Empty: DOCKER_HOST, or the usual
  /// sockets of this machine.
  std::map<std::string, std::string> container_hosts;
  /// The address of a host's tasks, and its GPUs, if the engine cannot detect them: name -> value.
  std::map<std::string, std::string> host_addresses;
  std::map<std::string, std::string> host_gpus;
  // Paths of these hosts that jobs may mount on a shared server.
  std::vector<std::string> allowed_host_paths;
  std::vector<std::string> allowed_capabilities;
  std::optional<std::filesystem::path> docker_cert_path;  ///< ca.pem, cert.pem, key.pem

  // Slurm.
  /// the URL of slurmrestd: "unix:///SOCKET", "http://HOST:PORT"; empty: none
  std::string slurm_rest;
  std::string slurm_rest_user;  ///< the user for requests; empty: the server's user
  std::vector<std::string> slurm_token_command;  ///< prints a token; empty: `scontrol token`
  CallbackAddress slurm_callback;
  std::string slurm_callback_bind = "0.0.0.0";
  NodeSharing slurm_shared = NodeSharing::kAuto;
  std::string slurm_node_folder;  ///< the folder on the nodes; empty: a folder in their /tmp
  /// The folder of Muster's programs on nodes; empty: the same as here.
  std::string slurm_programs;
  int slurm_tasks_per_node = 1;
  std::map<std::string, std::string> slurm_accounts;  ///< project -> account
  /// For other projects; "%p": the project's name.
  std::string slurm_default_account;
  // Accounts that jobs may name on a shared server, in addition to their project's account.
  std::vector<std::string> slurm_job_accounts;
  std::vector<std::string> slurm_job_reservations;
  std::string slurm_qos;
  std::vector<std::string> slurm_options;  ///< further options of sbatch: "--exclude=n7"

  // Kubernetes.
  std::optional<std::filesystem::path> kubernetes_kubeconfig;  ///< unset: the usual places
  std::string kubernetes_context;                              ///< empty: the current one
  std::string kubernetes_namespace;  ///< of the pods; empty: that of the context
  PodConnection kubernetes_connect = PodConnection::kAuto;
  CallbackAddress kubernetes_callback;  ///< at which pods call the server
  std::string kubernetes_node_image = "muster-node";
  PodPrograms kubernetes_programs = PodPrograms::kAuto;
  std::string kubernetes_user = "1000:1000";                    ///< default user of tasks
  std::map<std::string, std::string> kubernetes_gpu_resources;  ///< model -> resource
  std::map<std::string, std::string> kubernetes_topology;       ///< level -> label
  std::string kubernetes_pool_label = "muster.dev/pool";
  std::string kubernetes_storage_claim;  ///< for the storage of projects; empty: none
  std::string
      kubernetes_artifacts_class;  ///< of volumes that the tasks of a job share; empty: none
  int64_t kubernetes_artifacts_bytes = int64_t{10} << 30;
  std::string kubernetes_cluster_domain = "cluster.local";
  PodQueue kubernetes_queue = PodQueue::kMuster;
  std::string kubernetes_local_queue;  ///< of Kueue
  std::string kubernetes_priority_class;
  std::string kubernetes_runtime_class;
  std::vector<std::string> kubernetes_pull_secrets;
  std::vector<std::string> kubernetes_tolerations;
  std::chrono::milliseconds kubernetes_pod_timeout{600'000};  ///< until all pods of a gang run
  // What jobs may name on a shared server.
  std::vector<std::string> kubernetes_job_service_accounts;
  std::vector<std::string> kubernetes_job_priority_classes;
  std::vector<std::string> kubernetes_job_pull_secrets;
  std::vector<std::string> kubernetes_job_claims;
  std::vector<std::string> kubernetes_job_devices;

  std::string declared_gpus;          ///< N[:MODEL[:MEMORY]], not parsed; empty: detected
  std::string node_pool = "default";  ///< the pool of the server's node
  /// The maximum number of running tasks, whatever they request.
  int task_slots = 256;
  std::map<std::string, std::string> topology;  ///< of the server's node: level -> domain

  job::MachineTypes machine_types;  ///< override the usual ones
  job::ImageStandIns images;        ///< image -> its stand-in

  std::vector<std::string> notify_allow;  ///< allowed receivers within the server's own network
  bool notify_allow_http = false;
  std::vector<std::string> notify_command;  ///< with its arguments; empty: none
  std::chrono::milliseconds notify_first_retry{10'000};
  std::chrono::milliseconds notify_longest_pause{3'600'000};
  std::chrono::milliseconds notify_give_up_after{24 * 3'600'000};

  Packing packing = Packing::kFragmentation;
  /// The time that a gang may run below its minimum; unset: no limit.
  std::optional<std::chrono::milliseconds> stale_grace{60'000};
  /// The time before jobs are evicted for a new gang.
  std::chrono::milliseconds forbearance{1000};
  /// The time before resources are reserved for a waiting gang.
  std::chrono::milliseconds patience{600'000};
  double decay = 0;  ///< the weight of past use in fair shares

  /// The server may use a state folder whose server was started otherwise (config::ServerOrigin).
  bool takes_over = false;
  /// The server may start although its folder of jobs has no trace of the jobs that run by the store.
  bool accepts_lost_jobs = false;
  int ready_fd = -1;  ///< the descriptor for the letter 'r' when the socket is open; -1: none
};

}  // namespace muster::config
