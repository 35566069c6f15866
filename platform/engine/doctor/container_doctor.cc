#include <algorithm>
#include <memory>
#include <utility>

#include "base/event_loop.h"
#include "base/units.h"
#include "engine/container/container_host.h"
#include "engine/doctor/doctor.h"

namespace muster::engine::doctor {

using job::Diagnosis;
using job::Finding;

using Verdict = job::Finding::Verdict;

namespace {

bool answers(const HostFacts& host) {
  return host.info.has_value();
}

std::string engine_of(const DockerInfo& info) {
  return std::string(info.is_podman ? "Podman " : "Docker ") + info.version + " (API " +
         info.api_version + ")";
}

std::string machine_of(const DockerInfo& info) {
  return info.os + "/" + info.architecture + ", " + std::to_string(info.cpus) + " CPUs, " +
         base::format_bytes(info.memory_bytes);
}

/// If one of several hosts does not answer, jobs run on the others, so that is only a warning.
Finding host_finding(const HostFacts& host, bool one_answers) {
  const std::string subject = "host " + host.name;
  if (!host.info) {
    const std::string why = host.fault ? host.fault->what : "it did not answer in time";
    return {.subject = subject,
            .verdict = one_answers ? Verdict::kLacks : Verdict::kFails,
            .text = host.endpoint + " does not answer: " + why,
            .advice = host.fault ? host.fault->advice : ""};
  }
  return {.subject = subject,
          .text = host.endpoint + ": " + engine_of(*host.info) + ", " + machine_of(*host.info)};
}

std::vector<Finding> notes_on(const HostFacts& host) {
  const std::string subject = "host " + host.name;
  std::vector<Finding> notes;
  if (host.info->os != "linux") {
    notes.push_back({.subject = subject,
                     .verdict = Verdict::kFails,
                     .text = "its containers run " + host.info->os + ", not linux",
                     .advice = {}});
  }
  const bool has_gpus = host.declared_gpus && host.declared_gpus->count > 0;
  const bool can_hand_over =
      host.info->is_podman || host.info->has_nvidia_runtime || host.info->has_cdi;
  if (has_gpus && !can_hand_over) {
    notes.push_back({.subject = subject,
                     .verdict = Verdict::kLacks,
                     .text = "its engine cannot give GPUs to containers",
                     .advice = "install NVIDIA's container toolkit there: nvidia-ctk runtime "
                               "configure"});
  } else if (!has_gpus) {
    notes.push_back({.subject = subject,
                     .verdict = Verdict::kNote,
                     .text = "no GPUs are declared for it, and its engine does not report GPUs",
                     .advice = "if it has GPUs, set host_gpus in the configuration"});
  }
  return notes;
}

Finding shim_and_helper(const ContainerFacts& facts) {
  const std::string folder = facts.programs.string();
  if (facts.has_helper) return {.subject = "muster's programs", .text = folder};
  return {.subject = "muster's programs",
          .verdict = Verdict::kFails,
          .text = "muster-shim and muster-helper are not in " + folder,
          .advice = "install all of Muster: make install"};
}

}  // namespace

ContainerFacts look_at_containers(base::Result<std::vector<ContainerHostOptions>> hosts,
                                  const std::filesystem::path& programs) {
  std::error_code ignored;
  ContainerFacts facts{.has_helper = std::filesystem::exists(programs / "muster-shim", ignored) &&
                                     std::filesystem::exists(programs / "muster-helper", ignored),
                       .programs = programs};
  if (!hosts) {
    facts.hosts = std::move(hosts).error();
    return facts;
  }
  base::EventLoop loop;
  std::vector<std::unique_ptr<ContainerHost>> met;
  for (const ContainerHostOptions& options : *hosts) {
    met.push_back(std::make_unique<ContainerHost>(loop, options, Patience{}, [] {}));
  }
  // If no host answers, each host has its own finding.
  [[maybe_unused]] const auto answered = meet(loop, met, kPatience);
  std::vector<HostFacts> found;
  for (size_t i = 0; i < met.size(); ++i) {
    found.push_back({.name = (*hosts)[i].name,
                     .endpoint = to_string((*hosts)[i].endpoint),
                     .info = met[i]->info(),
                     .fault = met[i]->fault(),
                     .declared_gpus = (*hosts)[i].declared_gpus});
  }
  facts.hosts = std::move(found);
  return facts;
}

Diagnosis diagnose(const ContainerFacts& facts) {
  Diagnosis diagnosis{.engine = "container", .findings = {shim_and_helper(facts)}};
  if (!facts.hosts) {
    diagnosis.findings.push_back({.subject = "hosts",
                                  .verdict = Verdict::kFails,
                                  .text = facts.hosts.error().what,
                                  .advice = facts.hosts.error().advice});
    for (const base::Fault& fault : facts.hosts.error().faults) {
      // A socket that was tried is not an error; an invalid text of the configuration is.
      const bool was_tried = fault.field.starts_with('/');
      diagnosis.findings.push_back({.subject = was_tried ? "tried" : fault.field,
                                    .verdict = was_tried ? Verdict::kNote : Verdict::kFails,
                                    .text = was_tried ? fault.field : fault.what,
                                    .advice = {}});
    }
    return diagnosis;
  }
  const bool one_answers = std::any_of(facts.hosts->begin(), facts.hosts->end(), answers);
  for (const HostFacts& host : *facts.hosts) {
    diagnosis.findings.push_back(host_finding(host, one_answers));
    if (!host.info) continue;
    for (Finding& note : notes_on(host)) diagnosis.findings.push_back(std::move(note));
  }
  return diagnosis;
}

}  // namespace muster::engine::doctor
