#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "engine/doctor/doctor.h"
#include "engine/slurm/listing.h"

namespace muster::engine::doctor {

using job::Diagnosis;
using job::Finding;

using Verdict = job::Finding::Verdict;

namespace {

constexpr std::array<const char*, 6> kPrograms{"sbatch", "squeue",   "scancel",
                                               "sinfo",  "scontrol", "srun"};
/// The number of partitions that are listed one by one.
constexpr size_t kMostPartitions = 30;

/// Whether the server uses Slurm's programs, rather than slurmrestd.
bool asks_by_programs(const SlurmFacts& facts) {
  return !facts.rest || !facts.rest->is_configured;
}

/// "22.05.8" from "slurm-wlm 22.05.8".
std::string version_in(const std::string& text) {
  const std::string line = first_line(text);
  return line.substr(line.rfind(' ') + 1);
}

/// An unreadable version causes no finding.
bool is_too_old(const std::string& version) {
  const std::vector<std::string> parts = base::split(version, '.');
  if (parts.size() < 2) return false;
  const auto year = base::number_of<int>(parts[0]);
  const auto month = base::number_of<int>(parts[1]);
  return year && month && *year * 100 + *month < 2108;
}

bool controller_answers(const SlurmFacts& facts) {
  return answer_in(facts.answers, "ping").output.find(" is UP") != std::string::npos;
}

Finding programs(const SlurmFacts& facts) {
  const std::string subject = "Slurm's programs";
  const Verdict bad = asks_by_programs(facts) ? Verdict::kFails : Verdict::kNote;
  std::string missing;
  for (const char* name : kPrograms) {
    if (!answer_in(facts.answers, name).is_there()) {
      missing += (missing.empty() ? "" : ", ") + std::string(name);
    }
  }
  if (!missing.empty()) {
    return {.subject = subject,
            .verdict = bad,
            .text = missing + " not found on the PATH",
            .advice = "apt install slurm-client; or name a slurmrestd: slurm.rest (--slurm-rest)"};
  }
  const ProgramAnswer& sbatch = answer_in(facts.answers, "sbatch");
  // Without a configuration the programs do not even print their version.
  if (!sbatch.is_good() && !controller_answers(facts)) {
    return {.subject = subject, .text = "found, " + sbatch.path, .advice = {}};
  }
  if (!sbatch.is_good()) {
    return {.subject = subject,
            .verdict = bad,
            .text = sbatch.path + ": " + complaint(sbatch),
            .advice = {}};
  }
  const std::string version = version_in(sbatch.output);
  if (is_too_old(version)) {
    return {.subject = subject,
            .verdict = bad,
            .text = "version " + version,
            .advice = "Slurm 21.08 or later is needed"};
  }
  return {.subject = subject, .text = "version " + version + ", " + sbatch.path};
}

/// The value of a line such as "AuthType = auth/munge" of `scontrol show config`.
std::string configured(const SlurmFacts& facts, const std::string& key) {
  for (const std::string& line : base::split(answer_in(facts.answers, "config").output, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos || first_line(line.substr(0, equals)) != key) continue;
    return first_line(line.substr(equals + 1));
  }
  return "";
}

Finding slurm_conf(const SlurmFacts& facts) {
  if (!facts.config_file.empty()) return {.subject = "slurm.conf", .text = facts.config_file};
  if (controller_answers(facts)) {
    return {
        .subject = "slurm.conf", .verdict = Verdict::kNote, .text = "comes from the controller"};
  }
  return {.subject = "slurm.conf",
          .verdict = Verdict::kLacks,
          .text = "not found",
          .advice =
              "copy the cluster's slurm.conf into /etc/slurm, or name it in SLURM_CONF; if the "
              "cluster distributes it, set SLURM_CONF_SERVER=HOST"};
}

Finding controller(const SlurmFacts& facts) {
  const std::string subject = "the controller";
  const ProgramAnswer& ping = answer_in(facts.answers, "ping");
  std::string lines;
  for (const std::string& line : base::split(ping.output, '\n')) {
    if (line.starts_with("Slurmctld(")) lines += (lines.empty() ? "" : "; ") + first_line(line);
  }
  if (controller_answers(facts)) {
    const std::string cluster = configured(facts, "ClusterName");
    return {.subject = subject, .text = (cluster.empty() ? "" : cluster + ": ") + lines};
  }
  // Waiting and running jobs are not affected, and a server can start anyway.
  const std::string why = lines.empty() ? complaint(ping) : lines;
  return {.subject = subject,
          .verdict = asks_by_programs(facts) ? Verdict::kFails : Verdict::kNote,
          .text = "does not answer: " + why,
          .advice = "scontrol ping; on its host: systemctl status slurmctld"};
}

/// The controller sends its configuration only to clients whose credentials it trusts. These may
/// come from another munged than the one that the munge program uses.
std::optional<Finding> munge(const SlurmFacts& facts) {
  const std::string type = configured(facts, "AuthType");
  if (!type.empty()) {
    return Finding{.subject = "credentials", .text = "the controller trusts them (" + type + ")"};
  }
  const ProgramAnswer& answer = answer_in(facts.answers, "munge");
  if (answer.is_good()) return Finding{.subject = "munge", .text = "answers"};
  return Finding{.subject = "munge",
                 .verdict = Verdict::kLacks,
                 .text = answer.is_there() ? complaint(answer) : "is not installed",
                 .advice =
                     "if the cluster uses munge: apt install munge; copy the cluster's "
                     "/etc/munge/munge.key; systemctl start munge"};
}

struct Partition {
  int nodes = 0;
  int ready = 0;
  int gpus = 0;
  std::string gpu_type;
  std::string why;  ///< of a node that takes no jobs
};

Finding partition_finding(const std::string& name, const Partition& partition) {
  std::string text = base::count_text(partition.nodes, "node");
  if (partition.ready == partition.nodes) {
    text += partition.nodes == 1 ? ", which takes jobs" : ", all take jobs";
  } else {
    text += ", " + std::to_string(partition.ready) + " of them take jobs";
  }
  text += partition.gpus == 0 ? "; no GPUs" : "; " + base::count_text(partition.gpus, "GPU");
  if (!partition.gpu_type.empty()) text += " (" + partition.gpu_type + ")";
  if (!partition.why.empty()) text += "; " + partition.why;
  return {
      .subject = "partition " + name,
      .verdict = partition.ready == 0 ? Verdict::kLacks : Verdict::kFine,
      .text = text,
      .advice = partition.ready == 0 ? "sinfo -R shows the cause; jobs wait there meanwhile" : ""};
}

std::vector<Finding> partitions(const SlurmFacts& facts) {
  const ProgramAnswer& answer = answer_in(facts.answers, "nodes");
  if (!answer.is_there() || (!answer.is_good() && !controller_answers(facts))) return {};
  if (!answer.is_good()) {
    const bool is_denied = answer.errors.find("Access/permission denied") != std::string::npos;
    return {{.subject = "nodes",
             .verdict = Verdict::kLacks,
             .text = "cannot be listed: " + complaint(answer),
             .advice = is_denied
                           ? "jobs run nevertheless; with PrivateData=nodes, Slurm lists its nodes "
                             "only to its operators: scontrol show config | grep PrivateData"
                           : "run sinfo --Node to see the whole answer"}};
  }
  const auto nodes = slurm::read_sinfo(answer.output);
  if (!nodes) {
    return {{.subject = "nodes",
             .verdict = Verdict::kLacks,
             .text = nodes.error().what,
             .advice = nodes.error().advice}};
  }
  std::map<std::string, Partition> found;
  for (const slurm::ListedNode& node : *nodes) {
    for (const std::string& name : node.partitions) {
      Partition& partition = found[name];
      ++partition.nodes;
      partition.ready += node.takes_jobs ? 1 : 0;
      partition.gpus += node.gpus;
      if (partition.gpu_type.empty()) partition.gpu_type = node.gpu_type;
      if (!node.takes_jobs && partition.why.empty()) {
        partition.why = node.name + " is " + node.state_text +
                        (node.reason.empty() ? "" : " (" + node.reason + ")");
      }
    }
  }
  std::vector<Finding> findings;
  for (const auto& [name, partition] : found) {
    if (findings.size() == kMostPartitions) {
      findings.push_back({.subject = "partitions",
                          .verdict = Verdict::kNote,
                          .text = "and " + std::to_string(found.size() - kMostPartitions) +
                                  " more; sinfo lists them",
                          .advice = {}});
      break;
    }
    findings.push_back(partition_finding(name, partition));
  }
  if (findings.empty()) {
    findings.push_back({.subject = "nodes",
                        .verdict = Verdict::kLacks,
                        .text = "the cluster has no partition, or shows none to this user",
                        .advice = "sinfo -a"});
  }
  return findings;
}

Finding rest(const SlurmFacts& facts) {
  const std::string subject = "slurmrestd";
  if (!facts.rest) {
    return {.subject = subject,
            .verdict = Verdict::kNote,
            .text = "not found; Slurm's programs do not need it",
            .advice = {}};
  }
  const RestFacts& rest = *facts.rest;
  if (!rest.answer) {
    return {.subject = subject,
            .verdict = rest.is_configured ? Verdict::kFails : Verdict::kNote,
            .text = rest.place + " does not answer: " + rest.answer.error().what,
            .advice = rest.answer.error().advice};
  }
  const std::string text = rest.place + ": " + rest.answer->api + ", Slurm " + rest.answer->version;
  if (rest.is_configured) return {.subject = subject, .text = text};
  return {.subject = subject,
          .verdict = Verdict::kNote,
          .text = text,
          .advice = "to use it instead of Slurm's programs: slurm.rest (--slurm-rest " +
                    rest.place + ")"};
}

std::optional<Finding> accounting(const SlurmFacts& facts) {
  const std::string type = configured(facts, "AccountingStorageType");
  if (type.empty()) return std::nullopt;
  const std::string subject = "accounting";
  const std::string without =
      ": jobs that ended while no server ran may not be found again, and accounts and QOS are not "
      "checked";
  if (type != "accounting_storage/slurmdbd") {
    return Finding{.subject = subject,
                   .verdict = Verdict::kNote,
                   .text = "there is no slurmdbd" + without,
                   .advice = {}};
  }
  const ProgramAnswer& answer = answer_in(facts.answers, "dbd");
  if (answer.is_good()) return Finding{.subject = subject, .text = "slurmdbd answers"};
  return Finding{.subject = subject,
                 .verdict = Verdict::kLacks,
                 .text = "slurmdbd does not answer (" +
                         (answer.is_there() ? complaint(answer) : "sacctmgr is not installed") +
                         ")" + without,
                 .advice = "sacctmgr show cluster; on its host: systemctl status slurmdbd"};
}

std::optional<Finding> pmix(const SlurmFacts& facts) {
  const ProgramAnswer& answer = answer_in(facts.answers, "mpi");
  // Without a configuration srun prints no list.
  if (!answer.is_there() || (!answer.is_good() && !controller_answers(facts))) return std::nullopt;
  // Some versions print the list on standard error.
  const std::string listed = answer.output + "\n" + answer.errors;
  if (listed.find("pmix") != std::string::npos) {
    const size_t at = listed.find("pmix_v");
    const std::string version =
        at == std::string::npos ? ""
                                : ", " + listed.substr(at, listed.find_first_of(" ,\n", at) - at);
    return Finding{.subject = "PMIx", .text = "srun starts MPI's ranks" + version};
  }
  return Finding{.subject = "PMIx",
                 .verdict = Verdict::kLacks,
                 .text = "srun --mpi=list has no pmix: jobs with --launch srun fail",
                 .advice =
                     "install a Slurm that is built with PMIx, such as Debian's; other ways of "
                     "starting ranks do not need it"};
}

Finding node_program(const SlurmFacts& facts) {
  const std::string subject = "muster-node";
  if (!facts.has_node_program) {
    return {.subject = subject,
            .verdict = Verdict::kFails,
            .text = "is not in " + facts.programs.string(),
            .advice = "install all of Muster: make install"};
  }
  const bool is_elsewhere = !facts.programs_on_nodes.empty();
  return {.subject = subject,
          .text = "nodes run it from " +
                  (is_elsewhere ? facts.programs_on_nodes : facts.programs.string()) +
                  ", which must exist on each node"};
}

bool is_loopback(const std::string& host) {
  return host.starts_with("127.") || host == "localhost" || host == "::1" || host == "[::1]";
}

Finding callback(const SlurmFacts& facts) {
  const std::string subject = "call-backs";
  const std::string hosts = base::joined(facts.hosts);
  const std::string port = facts.port == 0 ? "a port that is chosen at the first start"
                                           : "port " + std::to_string(facts.port);
  if (facts.cannot_bind) {
    return {.subject = subject,
            .verdict = Verdict::kFails,
            .text = facts.cannot_bind->what,
            .advice = "slurm.callback and slurm.callback_bind choose another port and address"};
  }
  const bool only_here = std::all_of(facts.hosts.begin(), facts.hosts.end(), is_loopback);
  return {
      .subject = subject,
      .verdict = only_here ? Verdict::kLacks : Verdict::kFine,
      .text = "nodes connect to " + hosts + "; " + port +
              (facts.server_runs ? ", held by the server that runs" : ""),
      .advice = only_here ? "other machines cannot reach it: set slurm.callback: HOST:PORT" : ""};
}

Finding sharing(const SlurmFacts& facts) {
  const std::string subject = "folder of the jobs";
  const std::string place = facts.folder.string() + " (" +
                            (facts.file_system.empty() ? "unknown" : facts.file_system) + ")";
  const auto is_shared = is_shared_type(facts.file_system);
  if (facts.sharing == node::Sharing::kYes && is_shared == false) {
    return {.subject = subject,
            .verdict = Verdict::kLacks,
            .text = place + " seems to be local to this machine, but slurm.shared is set to yes",
            .advice = "with slurm.shared: auto, each node checks this itself"};
  }
  if (facts.sharing == node::Sharing::kNo) {
    return {.subject = subject, .text = place + ": nodes do not check it (slurm.shared: no)"};
  }
  const std::string how =
      is_shared == true
          ? "seems to be shared; each node checks this itself"
          : "seems to be local to this machine: logs and files are sent over the network";
  return {.subject = subject, .text = place + " " + how};
}

}  // namespace

std::optional<bool> is_shared_type(const std::string& file_system) {
  static constexpr std::array<const char*, 12> kShared{"nfs",       "lustre",   "beegfs", "gpfs",
                                                       "ceph",      "cifs",     "smb2",   "afs",
                                                       "glusterfs", "orangefs", "ocfs2",  "gfs2"};
  static constexpr std::array<const char*, 6> kOwn{"ext4",  "xfs",       "btrfs",
                                                   "tmpfs", "overlayfs", "zfs"};
  const auto is = [&](const char* name) { return file_system == name; };
  if (std::any_of(kShared.begin(), kShared.end(), is)) return true;
  if (std::any_of(kOwn.begin(), kOwn.end(), is)) return false;
  return std::nullopt;
}

Diagnosis diagnose(const SlurmFacts& facts) {
  Diagnosis diagnosis{.engine = "slurm", .findings = {programs(facts)}};
  const auto add = [&](std::optional<Finding> finding) {
    if (finding) diagnosis.findings.push_back(*std::move(finding));
  };
  // Without Slurm, its missing parts are not listed one by one.
  if (answer_in(facts.answers, "scontrol").is_there()) {
    add(slurm_conf(facts));
    add(controller(facts));
    add(munge(facts));
    for (Finding& finding : partitions(facts)) diagnosis.findings.push_back(std::move(finding));
  }
  add(rest(facts));
  add(accounting(facts));
  add(pmix(facts));
  add(node_program(facts));
  add(callback(facts));
  add(sharing(facts));
  return diagnosis;
}

}  // namespace muster::engine::doctor
