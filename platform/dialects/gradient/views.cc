#include "dialects/gradient/views.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "dialects/gradient/gradient.h"
#include "dialects/gradient/state.h"

namespace muster::dialects::gradient {

namespace {

AsciiTable::Cell text_or_none(std::string text) {
  return text.empty() ? AsciiTable::Cell() : AsciiTable::Cell(std::move(text));
}

AsciiTable::Cell amount_or_none(int64_t amount) {
  return amount == 0 ? AsciiTable::Cell() : AsciiTable::Cell(std::to_string(amount));
}

std::string machine_flag(const job::JobSpec& spec, job::Role role) {
  switch (role) {
    case job::Role::kSingle:
      return "machineType";
    case job::Role::kLauncher:
    case job::Role::kMaster:
      return "masterMachineType";
    case job::Role::kParameterServer:
      return "parameterServerMachineType";
    case job::Role::kEvaluator:
      return "evaluatorMachineType";  // which no experiment says
    case job::Role::kWorker:
    case job::Role::kChief:
      break;
  }
  return spec.kind == job::Kind::kSingle ? "machineType" : "workerMachineType";
}

}  // namespace

AsciiTable::Cell said(const job::JobSpec& spec, const std::string& flag) {
  const auto found = spec.annotations.find(kAnnotation + flag);
  return found == spec.annotations.end() ? AsciiTable::Cell() : text_or_none(found->second);
}

std::string experiment_name(const job::Job& job) {
  return said(job.spec, "name").value_or(job.spec.name);
}

AsciiTable experiment_table(const std::vector<job::Job>& jobs) {
  AsciiTable table;
  table.add({"Name", "ID", "Status"});
  for (const job::Job& job : jobs) {
    table.add({experiment_name(job), job.id, std::string(state_of(job))});
  }
  return table;
}

std::string id_of_task(const job::Job& job, const job::Task& task) {
  return job.id + "/" + task.name;
}

AsciiTable job_table(const std::vector<job::Job>& jobs) {
  AsciiTable table;
  table.add({"ID", "Name", "Project", "Cluster", "Machine Type", "Created"});
  for (const job::Job& job : jobs) {
    for (const job::Task& task : job.tasks) {
      table.add({id_of_task(job, task), experiment_name(job) + " " + task.name, job.spec.project,
                 said(job.spec, "clusterId"), said(job.spec, machine_flag(job.spec, task.role)),
                 base::to_rfc3339(job.submitted)});
    }
  }
  return table;
}

AsciiTable project_table(const std::vector<job::ProjectStatus>& projects) {
  AsciiTable table;
  table.add({"ID", "Name", "Repository", "Created"});
  for (const job::ProjectStatus& status : projects) {
    // "2026-01-31 12:00:00.000000", as Python's strftime has it.
    constexpr int kMicroseconds = 6;
    std::string created = base::to_rfc3339(status.project.created, kMicroseconds);
    std::replace(created.begin(), created.end(), 'T', ' ');
    created.pop_back();
    table.add({status.project.name, status.project.name, std::nullopt, created});
  }
  return table;
}

AsciiTable project_details(const job::Project& project) {
  AsciiTable table;
  table.add({"Name", project.name});
  table.add({"ID", project.name});
  table.add({"Repository name", std::nullopt});
  table.add({"Repository url", std::nullopt});
  table.add({"Tags", ""});
  return table;
}

AsciiTable cluster_table(const std::vector<std::string>& pools) {
  AsciiTable table;
  table.add({"ID", "Name", "Type"});
  for (const std::string& pool : pools) table.add({pool, pool, "muster"});
  return table;
}

std::vector<std::string> pools_of(const std::vector<job::Node>& nodes) {
  std::set<std::string> pools;
  for (const job::Node& node : nodes) pools.insert(node.pool);
  return {pools.begin(), pools.end()};
}

AsciiTable machine_type_table(const job::MachineTypes& types,
                              const std::vector<std::string>& pools) {
  constexpr int64_t kMilli = 1000;
  AsciiTable table;
  table.add({"Name", "Kind", "CPU Count", "RAM [Bytes]", "GPU Count", "GPU Model", "Clusters"});
  for (const auto& [name, type] : types) {
    const job::Resources& claim = type.resources;
    table.add({name, claim.gpus > 0 ? "gpu" : "cpu", amount_or_none(claim.cpu_milli / kMilli),
               amount_or_none(claim.memory_bytes), std::to_string(claim.gpus),
               type.gpu_model.empty() ? "N/A" : type.gpu_model, base::joined(pools)});
  }
  return table;
}

}  // namespace muster::dialects::gradient
