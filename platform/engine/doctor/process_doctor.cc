#include <unistd.h>

#include <algorithm>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "base/units.h"
#include "engine/doctor/doctor.h"
#include "engine/process/sandbox.h"
#include "engine/shim/network.h"
#include "job/mpi_version.h"

namespace muster::engine::doctor {

using job::Diagnosis;
using job::Finding;

using Verdict = job::Finding::Verdict;

namespace {

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  constexpr auto kExecutable = std::filesystem::perms::owner_exec |
                               std::filesystem::perms::group_exec |
                               std::filesystem::perms::others_exec;
  return !error && std::filesystem::is_regular_file(status) &&
         (status.permissions() & kExecutable) != std::filesystem::perms::none;
}

/// Runs in a thread of its own, which is abandoned if the driver hangs.
base::Result<NvmlGpus> ask_nvml_for_a_while(const std::string& library) {
  auto promise = std::make_shared<std::promise<base::Result<NvmlGpus>>>();
  auto answer = promise->get_future();
  std::thread([promise, library] { promise->set_value(ask_nvml(library)); }).detach();
  if (answer.wait_for(kPatience) == std::future_status::ready) return answer.get();
  return base::Error{.code = base::ErrorCode::kTimeout,
                     .what = "NVIDIA's driver did not answer in time",
                     .advice = "nvidia-smi; dmesg | grep -i nvrm"};
}

Finding shim_program(const ProcessFacts& facts) {
  const std::string folder = facts.programs.string();
  if (!facts.has_shim) {
    return {.subject = "muster's programs",
            .verdict = Verdict::kFails,
            .text = "muster-shim is not in " + folder,
            .advice = "install all of Muster: make install"};
  }
  return {.subject = "muster's programs", .text = folder};
}

Finding bubblewrap(const ProcessFacts& facts) {
  const ProgramAnswer& answer = answer_in(facts.answers, "bwrap");
  const std::string subject = "bubblewrap";
  if (!answer.is_there()) {
    return {.subject = subject,
            .verdict = Verdict::kFails,
            .text = "is not installed",
            .advice = "apt install bubblewrap; without it only jobs with --sandbox none run"};
  }
  if (!answer.is_good()) {
    return {.subject = subject,
            .verdict = Verdict::kFails,
            .text = answer.path + ": " + complaint(answer)};
  }
  return {.subject = subject, .text = first_line(answer.output) + ", " + answer.path};
}

Finding sandboxes(const ProcessFacts& facts) {
  const ProgramAnswer& answer = answer_in(facts.answers, "sandbox");
  if (answer.is_good()) return {.subject = "sandboxes", .text = "work"};
  return {.subject = "sandboxes",
          .verdict = Verdict::kFails,
          .text = "cannot be created: " + complaint(answer),
          .advice = sandbox_advice(true, facts.namespace_settings)};
}

Finding remote_shells(const ProcessFacts& facts) {
  const bool has_ssh = answer_in(facts.answers, "ssh").is_there();
  const std::string subject = "remote shells";
  if (facts.has_sshd && has_ssh) {
    return {.subject = subject,
            .text = std::string("ssh and sshd") + (facts.has_remote_shell ? "; Muster's own" : "")};
  }
  std::string missing = has_ssh ? "" : "ssh is not installed";
  if (!facts.has_sshd) {
    missing += (missing.empty() ? "" : "; ") + facts.sshd.string() + " is missing";
  }
  if (facts.has_remote_shell) {
    return {.subject = subject,
            .verdict = Verdict::kLacks,
            .text = missing + "; Muster's own remote shell is installed",
            .advice =
                "apt install openssh-client openssh-server (the services need not run), or "
                "--launch agent"};
  }
  return {.subject = subject,
          .verdict = Verdict::kLacks,
          .text = missing +
                  ", and Muster's own remote shell is not installed: MPI jobs cannot start ranks",
          .advice = "apt install openssh-client openssh-server; the services need not run"};
}

Finding mpi(const ProcessFacts& facts) {
  const ProgramAnswer& answer = answer_in(facts.answers, "mpirun");
  if (!answer.is_there()) {
    return {.subject = "mpirun",
            .verdict = Verdict::kLacks,
            .text = "is not on the PATH: an MPI job needs its own mpirun",
            .advice = "apt install openmpi-bin; or add the folder of your MPI to the PATH"};
  }
  const auto version = job::read_mpi_version(answer.output);
  if (version) return {.subject = "mpirun", .text = to_string(*version) + ", " + answer.path};
  return {.subject = "mpirun",
          .verdict = Verdict::kLacks,
          .text = answer.path + " is unknown to Muster: " + complaint(answer),
          .advice = "Muster supports Open MPI, MPICH and Intel MPI"};
}

Finding gpus(const ProcessFacts& facts) {
  if (!facts.declared_gpus.empty()) {
    return {.subject = "GPUs",
            .verdict = Verdict::kNote,
            .text = "declared as " + facts.declared_gpus + ", whatever the machine has"};
  }
  if (!facts.gpus && facts.gpus.error().code == base::ErrorCode::kNotFound) {
    return {.subject = "GPUs",
            .verdict = Verdict::kNote,
            .text = "none: no NVIDIA driver is installed"};
  }
  if (!facts.gpus) {
    return {.subject = "GPUs",
            .verdict = Verdict::kLacks,
            .text = facts.gpus.error().what,
            .advice = facts.gpus.error().advice};
  }
  const NvmlGpus& found = *facts.gpus;
  std::string text = found.gpus.empty() ? "none" : std::to_string(found.gpus.size());
  if (!found.gpus.empty()) {
    text += " x " + found.gpus.front().model;
    if (found.gpus.front().memory_bytes > 0) {
      text += ", " + base::format_bytes(found.gpus.front().memory_bytes);
    }
  }
  for (const std::string& sentence : found.unreached) text += "; " + sentence;
  const Verdict verdict = !found.unreached.empty() ? Verdict::kLacks
                          : found.gpus.empty()     ? Verdict::kNote
                                                   : Verdict::kFine;
  return {.subject = "GPUs", .verdict = verdict, .text = text};
}

Finding control_group(const ProcessFacts& facts) {
  std::string text;
  if (facts.limits.cpu_milli) text = base::format_milli(*facts.limits.cpu_milli) + " CPUs";
  // Version 1 groups without a limit have one larger than any machine.
  constexpr int64_t kBeyondAll = int64_t{1} << 50;
  if (facts.limits.memory_bytes.value_or(kBeyondAll) < kBeyondAll) {
    text +=
        (text.empty() ? "" : ", ") + base::format_bytes(*facts.limits.memory_bytes) + " of memory";
  }
  return {.subject = "control group",
          .verdict = Verdict::kNote,
          .text = text.empty() ? "has no limits here" : "leaves jobs " + text};
}

Finding task_limits(const ProcessFacts& facts) {
  const std::string subject = "task limits";
  if (facts.group_places.empty()) {
    return {.subject = subject,
            .verdict = Verdict::kNote,
            .text =
                "memory and processes are measured, and CPU is not limited: this account may not "
                "make control groups",
            .advice = "docs/isolation.md"};
  }
  std::string controllers;
  for (const GroupPlace& place : facts.group_places) {
    for (const std::string& controller : place.controllers) {
      controllers += (controllers.empty() ? "" : ", ") + controller;
    }
  }
  return {.subject = subject, .text = "control groups: " + controllers};
}

Finding egress(const ProcessFacts& facts) {
  const std::string subject = "job networks";
  if (!facts.egress) {
    return {.subject = subject,
            .text = "each job has its own, without a way to the Internet (tasks.internet: false)"};
  }
  if (*facts.egress) {
    return {.subject = subject,
            .text = "each job has its own, and reaches the Internet " + **facts.egress};
  }
  return {.subject = subject,
          .verdict = Verdict::kNote,
          .text = "each job has its own; " + facts.egress->error().what,
          .advice = facts.egress->error().advice};
}

Finding job_networks(const ProcessFacts& facts) {
  const std::string subject = "job networks";
  if (!facts.is_team || facts.shares_network) {
    return {.subject = subject,
            .verdict = Verdict::kNote,
            .text = facts.is_team ? "jobs share the machine's network (tasks.network: shared)"
                                  : "jobs share the machine's network: this server has one user"};
  }
  if (facts.network) return egress(facts);
  return {.subject = subject,
          .verdict = Verdict::kFails,
          .text = facts.network.error().what,
          .advice = facts.network.error().advice};
}

std::string room_words(const AccountSource& source) {
  uint64_t room = 0;
  for (const IdSpan& span : source.uids) room += span.count / source.count;
  return std::to_string(room - std::min<uint64_t>(room, 1)) + " users (" + source.place + ")";
}

Finding accounts_of_users(const ProcessFacts& facts) {
  const std::string subject = "accounts";
  if (facts.accounts) {
    const AccountSource& source = *facts.accounts;
    return {.subject = subject,
            .text = source.is_root
                        ? "the Unix account of each user, else ids of its own: room for " +
                              room_words(source)
                        : "ids of its own for each user: room for " + room_words(source)};
  }
  const base::Error& why = facts.accounts.error();
  return {.subject = subject,
          .verdict = Verdict::kNote,
          .text = "one for all tasks, that of the server: " + why.what +
                  "; files and terminals of the account are kept apart by sandboxes alone",
          .advice = why.advice};
}

Finding separate_projects(const ProcessFacts& facts) {
  const std::string subject = "separate projects";
  const bool tasks_are_root = facts.is_root && !facts.accounts;
  if (!tasks_are_root && !facts.shares_network) {
    return {.subject = subject,
            .text = facts.accounts ? "kept apart by accounts and sandboxes"
                                   : "kept apart by sandboxes, under one account"};
  }
  const std::string why = tasks_are_root ? "its tasks run as root" : "its tasks share a network";
  if (facts.trusts_projects) {
    return {.subject = subject,
            .verdict = Verdict::kNote,
            .text = "not kept apart: " + why + "; they trust each other (trust_each_other)"};
  }
  return {.subject = subject,
          .verdict = Verdict::kLacks,
          .text = "jobs of one project at a time: " + why,
          .advice = tasks_are_root ? "let users have accounts (tasks.accounts): docs/isolation.md"
                                   : "tasks.network: own"};
}

}  // namespace

ProcessFacts look_at_process(const ProcessPlaces& places) {
  ProcessFacts facts{.programs = places.programs, .sshd = places.sshd};
  facts.has_shim = is_program(places.programs / "muster-shim");
  facts.has_remote_shell = is_program(places.programs / "muster-rsh");
  facts.has_sshd = is_program(places.sshd);
  facts.declared_gpus = places.declared_gpus;
  // The same options as each task's sandbox.
  facts.answers = ask_all(
      {{"bwrap", {"bwrap", "--version"}},
       {"sandbox",
        {"bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--tmpfs", "/dev/shm", "--unshare-pid",
         "--unshare-uts", "--unshare-ipc", "--hostname", "doctor", "--die-with-parent", "true"}},
       {"ssh", {"ssh", "-V"}},
       {"mpirun", {"mpirun", "--version"}}},
      places.environment);
  facts.namespace_settings = needed_namespace_settings(places.root);
  facts.gpus = ask_nvml_for_a_while(places.nvml);
  facts.limits = cgroup_limits();
  facts.group_places = group_places();
  facts.is_root = ::geteuid() == 0;
  facts.is_team = places.is_team;
  facts.shares_network = places.shares_network;
  facts.trusts_projects = places.trusts_projects;
  facts.accounts = places.accounts;
  if (facts.is_team && !facts.shares_network && facts.has_shim) {
    const auto made = make_network_namespace((places.programs / "muster-shim").string());
    if (!made) facts.network = made.error();
    if (places.egress) {
      facts.egress = *places.egress ? check_egress(**places.egress) : places.egress->error();
    }
  }
  return facts;
}

Diagnosis diagnose(const ProcessFacts& facts) {
  Diagnosis diagnosis{.engine = "process", .findings = {shim_program(facts), bubblewrap(facts)}};
  // Without bwrap there is no finding about sandboxes.
  if (answer_in(facts.answers, "bwrap").is_there()) diagnosis.findings.push_back(sandboxes(facts));
  for (Finding finding : {remote_shells(facts), mpi(facts), gpus(facts), control_group(facts),
                          task_limits(facts), job_networks(facts)}) {
    diagnosis.findings.push_back(std::move(finding));
  }
  if (facts.is_team) {
    diagnosis.findings.push_back(accounts_of_users(facts));
    diagnosis.findings.push_back(separate_projects(facts));
  }
  return diagnosis;
}

}  // namespace muster::engine::doctor
