// Whether the engines can run jobs here, for `muster doctor`. For each engine a look_at_...()
// collects facts and blocks for a few seconds at most; diagnose() turns the facts into findings and
// is pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/container/docker_values.h"
#include "engine/container/options.h"
#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/options.h"
#include "engine/process/accounts.h"
#include "engine/process/cgroup_limits.h"
#include "engine/process/devices.h"
#include "engine/process/egress.h"
#include "engine/slurm/options.h"
#include "engine/slurm/slurm_client.h"
#include "job/diagnosis.h"

namespace muster::engine::doctor {

// --- running programs

/// The time limit for each program or request.
inline constexpr std::chrono::milliseconds kPatience{5000};

/// A program to run.
struct Question {
  std::string name;  ///< the name of its answer
  std::vector<std::string> argv;
};

struct ProgramAnswer {
  std::string path;       ///< path of the program; empty: not found
  bool was_late = false;  ///< the program did not end in time
  int code = -1;
  std::string output;
  std::string errors;

  bool is_there() const { return !path.empty(); }
  bool is_good() const { return is_there() && !was_late && code == 0; }
};

using Answers = std::map<std::string, ProgramAnswer>;

/// Runs all programs at the same time and waits for the slowest. `environment`: NAME=value, for the
/// programs; its PATH is where they are looked for.
Answers ask_all(const std::vector<Question>& questions, const std::vector<std::string>& environment,
                std::chrono::milliseconds patience = kPatience);

/// The answer of that name. Without such a question: the answer of a program that was not found.
const ProgramAnswer& answer_in(const Answers& answers, const std::string& name);

/// The first line that is not blank, without the blanks around it.
std::string first_line(const std::string& text);

/// The error of a program that was found: its own words, or that it did not answer in time.
std::string complaint(const ProgramAnswer& answer);

// --- the process engine: sandboxes, remote shells, MPI, GPUs

struct ProcessPlaces {
  std::vector<std::string> environment;  ///< the server's: NAME=value
  std::filesystem::path programs;        ///< the folder of muster-shim and other programs
  std::filesystem::path sshd = "/usr/sbin/sshd";
  std::string nvml = "libnvidia-ml.so.1";
  std::string declared_gpus;     ///< from the server's configuration
  bool is_team = false;          ///< the server listens
  bool shares_network = false;   ///< tasks.network: shared
  bool trusts_projects = false;  ///< trust_each_other
  /// Of the networks of jobs; nothing: tasks.internet: false.
  std::optional<base::Result<EgressOptions>> egress;
  /// Where the ids of users come from, on a server that listens.
  base::Result<AccountSource> accounts = base::Error{};
  std::filesystem::path root = "/";  ///< of /proc, for tests
};

struct ProcessFacts {
  bool has_shim = false;
  bool has_remote_shell = false;
  std::filesystem::path programs;
  Answers answers;                              ///< "bwrap", "sandbox", "ssh", "mpirun"
  std::vector<std::string> namespace_settings;  ///< needed_namespace_settings()
  bool has_sshd = false;
  std::filesystem::path sshd;
  base::Result<NvmlGpus> gpus = base::Error{};
  std::string declared_gpus;
  CgroupLimits limits;
  std::vector<GroupPlace> group_places;  ///< where tasks can have control groups
  bool is_root = false;
  bool is_team = false;
  bool shares_network = false;
  bool trusts_projects = false;
  base::Result<AccountSource> accounts = base::Error{};
  base::Result<void> network;  ///< whether a network for a job can be made
  /// How its traffic can leave the machine; nothing: tasks.internet: false.
  std::optional<base::Result<std::string>> egress;
};

ProcessFacts look_at_process(const ProcessPlaces& places);
job::Diagnosis diagnose(const ProcessFacts& facts);

// --- the container engine: its hosts, and which of their engines answer

struct HostFacts {
  std::string name;
  std::string endpoint;  ///< as configured
  std::optional<DockerInfo> info;
  std::optional<base::Error> fault;  ///< why `info` is missing
  std::optional<DeclaredGpus> declared_gpus;
};

struct ContainerFacts {
  bool has_helper = false;
  std::filesystem::path programs;
  /// Errors: there is no host, or the configuration is invalid.
  base::Result<std::vector<HostFacts>> hosts = base::Error{};
};

/// `programs`: the folder of muster-shim, muster-helper and muster-rsh.
ContainerFacts look_at_containers(base::Result<std::vector<ContainerHostOptions>> hosts,
                                  const std::filesystem::path& programs);
job::Diagnosis diagnose(const ContainerFacts& facts);

// --- the Slurm engine: Slurm's programs, controller and nodes, slurmrestd, the accounting
// database, PMIx, and whether nodes can connect to this server. The facts contain no secrets: no
// token and no credential of munge.

struct SlurmPlaces {
  slurm::SlurmEngineOptions options;  ///< only those about Slurm's clients and callbacks are used
  std::vector<std::string> environment;  ///< the server's: NAME=value
  std::filesystem::path jobs_folder;     ///< need not exist yet
  bool server_runs = false;              ///< a server runs and may have the port open
  /// The root for configuration files and sockets of Slurm, for tests.
  std::filesystem::path root = "/";
};

/// A slurmrestd and its answer, or why it does not answer.
struct RestFacts {
  std::string place;
  bool is_configured = false;
  base::Result<slurm::ClientFacts> answer = base::Error{};
};

struct SlurmFacts {
  /// The versions of sbatch, srun, squeue, scontrol, scancel and sinfo, and the answers "ping",
  /// "config", "nodes", "mpi", "munge", "dbd".
  Answers answers;
  std::string config_file;  ///< empty: not found
  std::optional<RestFacts> rest;
  bool has_node_program = false;
  std::filesystem::path programs;
  std::string programs_on_nodes;  ///< empty: the same as here

  std::string bind;
  uint16_t port = 0;  ///< the port to which nodes connect; 0: not chosen yet
  bool server_runs = false;
  std::optional<base::Error> cannot_bind;
  std::vector<std::string> hosts;  ///< this server's addresses, as nodes get them

  node::Sharing sharing = node::Sharing::kAuto;
  std::filesystem::path folder;  ///< the jobs' folder
  std::string file_system;       ///< of `folder`: "nfs", "ext4"; empty: unknown
};

SlurmFacts look_at_slurm(const SlurmPlaces& places);
job::Diagnosis diagnose(const SlurmFacts& facts);

// --- the Kubernetes engine: the API server, the rights there, nodes, the namespace

struct KubernetesRight {
  kubernetes::AccessQuestion question;
  bool is_needed = true;  ///< no job can run without it
  std::string purpose;    ///< what does not work without it: "jobs cannot be planned over nodes"
  base::Result<kubernetes::AccessAnswer> answer = base::Error{};
};

/// The rights that a server with these options needs in the namespace `space`, and in the cluster.
std::vector<KubernetesRight> kubernetes_rights(const std::string& space,
                                               const kubernetes::KubernetesOptions& options);

struct KubernetesNode {
  std::string name;
  std::string kubelet;  ///< "v1.30.1"
  std::string runtime;  ///< "containerd://1.7.2"
  Node offer;           ///< as the scheduler sees it
};

struct KubernetesFacts {
  base::Result<kubernetes::AccessFacts> access = base::Error{};
  std::string space;
  std::string node_image;
  bool are_called = false;  ///< pods call the server
  base::Result<kubernetes::ServerVersion> version = base::Error{};
  std::vector<KubernetesRight> rights;
  base::Result<std::vector<KubernetesNode>> nodes = base::Error{};
  /// The level of Pod Security that the namespace enforces; empty: none.
  base::Result<std::string> pod_security = base::Error{};
  base::Result<bool> has_dns = base::Error{};  ///< there is a Service kube-dns with addresses
  std::string storage_claim;                   ///< empty: none is configured
  base::Result<std::string> storage_phase = base::Error{};  ///< of that claim: "Bound"
  base::Result<std::vector<std::string>> storage_classes = base::Error{};
};

KubernetesFacts look_at_kubernetes(base::Result<kubernetes::KubernetesOptions> options);
job::Diagnosis diagnose(const KubernetesFacts& facts);

/// Whether a file system of this type is shared between machines. nullopt: unknown.
std::optional<bool> is_shared_type(const std::string& file_system);

}  // namespace muster::engine::doctor
