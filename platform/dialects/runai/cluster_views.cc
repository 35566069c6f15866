#include "dialects/runai/cluster_views.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "cli/cluster/cluster.h"
#include "cli/common/output.h"
#include "dialects/runai/job_views.h"
#include "job/job.h"

namespace muster::dialects::runai {

namespace {

using job::Job;
using job::Node;
using job::ProjectStatus;

constexpr const char* kNotKnown = "-";

/// The status as Kubernetes calls it, because Run:AI uses the words of Kubernetes.
std::string status_of_node(const Node& node) {
  if (node.state == "ready") return "Ready";
  if (node.state == "gone") return "NotReady";
  return "Ready,SchedulingDisabled";
}

std::string models_of(const Node& node) {
  std::set<std::string> models;
  for (const job::Device& device : node.devices) {
    if (!device.model.empty()) models.insert(device.model);
  }
  return models.empty() ? kNotKnown : base::joined(models, ",");
}

std::string gpu_count(const Node& node) {
  return std::to_string(node.devices.size());
}

int64_t gpus_free_milli(const Node& node) {
  int64_t free = 0;
  for (const job::Device& device : node.devices) free += device.free_milli;
  return free;
}

std::string cpus_taken(const Node& node) {
  return base::format_milli(node.cpu_milli - node.cpu_milli_free);
}

std::string memory_taken(const Node& node) {
  return base::format_bytes(node.memory_bytes - node.memory_bytes_free);
}

std::string joined_or_unknown(const std::vector<std::string>& words) {
  const std::string text = base::joined(words, ",");
  return text.empty() ? kNotKnown : text;
}

std::string gpu_rows(const std::vector<Node>& nodes) {
  cli::Table table({{"NODE"},
                    {"GPU", true},
                    {"MODEL"},
                    {"ALLOCATED", true},
                    {"UTILIZATION", true},
                    {"MEMORY CAPACITY", true},
                    {"MEMORY USAGE", true},
                    {"IDLE TIME", true},
                    {"JOBS"}});
  for (const Node& node : nodes) {
    for (const job::Device& device : node.devices) {
      table.add({node.name, std::to_string(device.index),
                 device.model.empty() ? kNotKnown : device.model,
                 base::format_milli(1000 - device.free_milli), kNotKnown,
                 device.memory_bytes == 0 ? kNotKnown : base::format_bytes(device.memory_bytes),
                 kNotKnown, kNotKnown, joined_or_unknown(device.jobs)});
    }
  }
  return table.to_string();
}

std::string gpus_deserved(const ProjectStatus& status) {
  return status.deserved.gpu_milli ? base::format_milli(*status.deserved.gpu_milli) : kNotKnown;
}

/// The CPUs and memory claimed by the pods that have resources.
job::Resources claims_of(const Job& job) {
  job::Resources sum;
  for (const job::Task& task : job.tasks) {
    if (task.node.empty() || job::has_gone(task)) continue;
    const job::Resources& claim = job::resources_of(job.spec, task.role);
    sum.cpu_milli += claim.cpu_milli;
    sum.memory_bytes += claim.memory_bytes;
  }
  return sum;
}

}  // namespace

std::string node_list(const std::vector<Node>& nodes) {
  cli::Table table({{"NAME"},
                    {"STATUS"},
                    {"IP Address"},
                    {"ROLE"},
                    {"CPU ALLOCATED"},
                    {"MEMORY ALLOCATED"},
                    {"GPU TYPE"},
                    {"GPU ALLOCATABLE"},
                    {"GPU FREE"}});
  for (const Node& node : nodes) {
    table.add({node.name, status_of_node(node), kNotKnown, "<none>", cpus_taken(node),
               memory_taken(node), models_of(node), gpu_count(node),
               base::format_milli(gpus_free_milli(node))});
  }
  return table.to_string();
}

std::string node_description(const Node& node) {
  const std::string page = cli::cluster::node_page(node);
  return "STATUS:  " + status_of_node(node) + "\n\n" + page;
}

std::string project_list(std::vector<ProjectStatus> projects, const std::string& in_use) {
  std::sort(projects.begin(), projects.end(),
            [](const ProjectStatus& left, const ProjectStatus& right) {
              return left.project.name < right.project.name;
            });
  cli::Table table({{"PROJECT"},
                    {"DEPARTMENT"},
                    {"DESERVED GPUs"},
                    {"INT LIMIT"},
                    {"INT AFFINITY"},
                    {"TRAIN AFFINITY"}});
  for (const ProjectStatus& status : projects) {
    const job::Project& project = status.project;
    table.add({project.name + (project.name == in_use ? " (default)" : ""),
               project.parent.empty() ? kNotKnown : project.parent, gpus_deserved(status),
               kNotKnown, kNotKnown, kNotKnown});
  }
  return table.to_string();
}

std::string cluster_list(const std::vector<Cluster>& clusters, const std::string& in_use) {
  cli::Table table({{"CLUSTER"}, {"CURRENT PROJECT"}});
  for (const Cluster& cluster : clusters) {
    table.add({cluster.name + (cluster.name == in_use ? " (default)" : ""),
               cluster.project.empty() ? kNotKnown : cluster.project});
  }
  return table.to_string();
}

std::string top_nodes(const std::vector<Node>& nodes, bool details) {
  cli::Table table({{"NAME"},
                    {"STATUS"},
                    {"GPU CAPACITY", true},
                    {"GPU ALLOCATED", true},
                    {"GPU UTILIZATION", true},
                    {"CPU CAPACITY", true},
                    {"CPU ALLOCATED", true},
                    {"CPU UTILIZATION", true},
                    {"MEMORY CAPACITY", true},
                    {"MEMORY ALLOCATED", true},
                    {"MEMORY USAGE", true}});
  for (const Node& node : nodes) {
    table.add({node.name, status_of_node(node), gpu_count(node),
               base::format_milli(cli::cluster::gpus_taken_milli(node)), kNotKnown,
               base::format_milli(node.cpu_milli), cpus_taken(node), kNotKnown,
               base::format_bytes(node.memory_bytes), memory_taken(node), kNotKnown});
  }
  return table.to_string() + (details ? "\n" + gpu_rows(nodes) : "");
}

std::string top_jobs(std::vector<Job> jobs, base::Time now) {
  std::erase_if(jobs, [](const Job& job) { return status_of(job) != "Running"; });
  std::sort(jobs.begin(), jobs.end(), [](const Job& left, const Job& right) {
    // Descending by number; then by name, so that the order is total.
    return std::make_tuple(-count_gpus(left).allocated_milli, left.spec.project, left.spec.name) <
           std::make_tuple(-count_gpus(right).allocated_milli, right.spec.project, right.spec.name);
  });
  cli::Table table({{"NAME"},
                    {"PROJECT"},
                    {"USER"},
                    {"TYPE"},
                    {"DURATION"},
                    {"NODE"},
                    {"GPU ALLOCATED", true},
                    {"GPU UTIL", true},
                    {"GPU MEMORY", true},
                    {"CPU ALLOCATED", true},
                    {"CPU USAGE", true},
                    {"MEMORY ALLOCATED", true},
                    {"MEMORY USAGE", true}});
  for (const Job& job : jobs) {
    const job::Resources claims = claims_of(job);
    table.add({job.spec.name, job.spec.project, user_of(job), type_of(job), duration_of(job, now),
               node_of(job), base::format_milli(count_gpus(job).allocated_milli), kNotKnown,
               kNotKnown, base::format_milli(claims.cpu_milli), kNotKnown,
               base::format_bytes(claims.memory_bytes), kNotKnown});
  }
  return table.to_string();
}

}  // namespace muster::dialects::runai
