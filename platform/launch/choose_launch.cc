// ssh if the images have what it requires: documents and images expect it, and other tools (scp,
// debuggers) use it. Otherwise Muster's own remote shell.
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "launch/gang.h"
#include "launch/plan.h"
#include "launch/plan_task.h"
#include "launch/srun_command.h"

namespace muster::launch {

using base::Error;
using base::ErrorCode;
using base::Result;
using job::Job;
using job::LaunchBy;
using job::LaunchFacts;
using job::Task;
using job::TaskRole;

namespace {

constexpr const char* kAsked = "requested by the job";

/// The part that the image lacks for ssh from or to this task: "an sshd"; empty: nothing.
std::string lack_of(const ImageFacts& image, bool launches, bool takes) {
  if (takes && image.sshd.empty()) return "no sshd";
  if (launches && !image.has_ssh) return "no ssh";
  if (!image.has_shell) return "no shell (/bin/sh), which ssh requires";
  if (image.account.name.empty()) {
    return "no name for user " + std::to_string(image.account.uid) + ", which ssh requires";
  }
  return "";
}

/// "image 'a' has no sshd; image 'b' has no ssh", with each image once.
std::string lacks_for_ssh(const Job& job, const Site& site) {
  std::vector<std::string> lacks;
  for (const Task& task : job.tasks) {
    if (task.node.empty()) continue;
    const auto image = site.image_facts.find(task.name);
    if (image == site.image_facts.end()) continue;
    const std::string lack =
        lack_of(image->second, task.role == TaskRole::kLauncher, takes_ranks(job.spec, task.role));
    if (lack.empty()) continue;
    const std::string sentence = "image '" + image->second.image + "' has " + lack;
    if (std::find(lacks.begin(), lacks.end(), sentence) == lacks.end()) lacks.push_back(sentence);
  }
  return base::joined(lacks, "; ");
}

Result<LaunchFacts> by_agent(const Site& site, std::string why) {
  if (!site.remote_shell.empty()) return LaunchFacts{.by = LaunchBy::kAgent, .why = std::move(why)};
  if (why == kAsked) why = "the job requests --launch agent";
  return Error{.code = ErrorCode::kRefused,
               .what = why + ", but Muster's own remote shell (muster-rsh) is missing",
               .advice = "install it beside muster-shim, or use --launch ssh and images with sshd"};
}

Result<LaunchFacts> by_ssh_on_request(const std::string& lacks) {
  if (lacks.empty()) return LaunchFacts{.by = LaunchBy::kSsh, .why = kAsked};
  return Error{.code = ErrorCode::kRefused,
               .what = "the job requests --launch ssh, but " + lacks,
               .advice =
                   "use --launch agent, for which an image needs only its MPI, or add "
                   "openssh-server and openssh-client to the image"};
}

Result<LaunchFacts> by_srun(const Job& job, const Site& site) {
  if (site.srun.empty()) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "--launch srun requires a server that runs jobs on Slurm",
                 .advice = "use --launch agent, or a server with --engine slurm"};
  }
  MUSTER_CHECK(check_srun_program(program_of(job.spec, TaskRole::kLauncher, site.images)));
  return LaunchFacts{.by = LaunchBy::kSrun, .why = kAsked};
}

/// The MPIs read the paths of their agents and of ssh's configuration from variables, and split these
/// at blanks. They know no quotes.
Result<void> check_folders(const Job& job, const Site& site) {
  if (!site.generated_folder) return {};
  for (const Task& task : job.tasks) {
    const std::string folder = site.generated_folder(task.name);
    if (folder.find_first_of(" \t\n") == std::string::npos) continue;
    return Error{.code = ErrorCode::kRefused,
                 .what = "the folder '" + folder + "' of task '" + task.name +
                         "' has a blank in its path, and mpirun splits paths at blanks",
                 .advice =
                     "run the job in a sandbox (without --sandbox none), or give the server a "
                     "state_dir without blanks"};
  }
  return {};
}

}  // namespace

Result<LaunchFacts> choose_launch(const Job& job, const Site& site) {
  if (job.spec.kind != job::Kind::kMpi) return LaunchFacts{};
  if (job.spec.launch == LaunchBy::kSrun) return by_srun(job, site);
  MUSTER_CHECK(check_folders(job, site));
  if (job.spec.launch == LaunchBy::kAgent) return by_agent(site, kAsked);
  const std::string lacks = lacks_for_ssh(job, site);
  if (job.spec.launch == LaunchBy::kSsh) return by_ssh_on_request(lacks);
  if (!lacks.empty()) return by_agent(site, lacks);
  // It is unknown whether the nodes of a cluster have an sshd.
  const bool is_cluster = !site.joiner.empty();
  if (is_cluster && !site.remote_shell.empty()) {
    return by_agent(site, "the cluster's nodes need only Muster's own programs for it");
  }
  return LaunchFacts{.by = LaunchBy::kSsh,
                     .why = site.image_facts.empty() ? "the machine has its own sshd"
                                                     : "the images have sshd and ssh"};
}

}  // namespace muster::launch
