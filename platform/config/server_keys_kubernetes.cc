// The keys of a server's configuration for jobs on Kubernetes.
#include <utility>

#include "base/units.h"
#include "config/server_values.h"
#include "job/kubernetes.h"

namespace muster::config {

namespace {

void read_object_name(const KeyValue& value, std::string& target) {
  std::string text;
  read_filled_text(value, text);
  if (text.empty()) return;
  if (!job::is_object_name(text)) {
    return add_fault(value, "'" + text +
                                "' is not the name of a Kubernetes object; use lower-case "
                                "letters, digits, '-' and '.'");
  }
  target = std::move(text);
}

void read_object_names(const KeyValue& value, std::vector<std::string>& target) {
  std::vector<std::string> names;
  read_names(value, names);
  for (const std::string& name : names) {
    if (job::is_object_name(name)) continue;
    add_fault(value, "'" + name +
                         "' is not the name of a Kubernetes object; use lower-case "
                         "letters, digits, '-' and '.'");
  }
  target = std::move(names);
}

/// Names of claims, and "secret:NAME" and "configmap:NAME".
void read_claims(const KeyValue& value, std::vector<std::string>& target) {
  std::vector<std::string> names;
  read_names(value, names);
  for (const std::string& name : names) {
    const auto claim = job::claim_of(name + ":/x");
    if (claim && claim->object() == name) continue;
    add_fault(value, "'" + name + "' is not the name of a claim, secret:NAME or configmap:NAME");
  }
  target = std::move(names);
}

/// Names of resources of device plug-ins.
void read_devices(const KeyValue& value, std::vector<std::string>& target) {
  std::vector<std::string> names;
  read_names(value, names);
  for (const std::string& name : names) {
    if (job::is_qualified_name(name) && name.find('/') != std::string::npos) continue;
    add_fault(value, "'" + name + "' is not the name of a resource such as rdma/hca");
  }
  target = std::move(names);
}

/// The name of a LocalQueue, or a pattern with {project}.
void read_local_queue(const KeyValue& value, std::string& target) {
  constexpr std::string_view kProject = "{project}";
  std::string text;
  read_filled_text(value, text);
  if (text.empty()) return;
  std::string name = text;
  if (const size_t at = name.find(kProject); at != std::string::npos) {
    name.replace(at, kProject.size(), "p");
  }
  if (!job::is_object_name(name)) {
    return add_fault(value, "'" + text +
                                "' is not the name of a LocalQueue; use lower-case letters, "
                                "digits, '-' and '.', or {project}");
  }
  target = std::move(text);
}

/// UID or UID:GID.
void read_numeric_user(const KeyValue& value, std::string& target) {
  std::string text;
  read_filled_text(value, text);
  if (text.empty()) return;
  const size_t colon = text.find(':');
  const auto uid = base::number_of<uint32_t>(text.substr(0, colon));
  const bool has_group = colon != std::string::npos;
  const auto gid =
      base::number_of<uint32_t>(text.substr(has_group ? colon + 1 : 0, std::string::npos));
  if (!uid || (has_group && !gid)) {
    return add_fault(value, "'" + text + "' is not UID[:GID], as in 1000:1000");
  }
  target = std::move(text);
}

void read_label(const KeyValue& value, std::string& target) {
  std::string text;
  read_filled_text(value, text);
  if (text.empty()) return;
  if (!job::is_qualified_name(text)) {
    return add_fault(value, "'" + text + "' is not the key of a label, as in example.com/pool");
  }
  target = std::move(text);
}

/// A map to keys of labels or names of resources.
void read_qualified_names(const KeyValue& value, std::map<std::string, std::string>& target) {
  target.clear();
  read_named_values(
      value, [&](const record::Input& at, const std::string& name, const std::string& qualified) {
        if (!job::is_qualified_name(qualified)) {
          at.note("'" + qualified + "' is not a name such as nvidia.com/gpu");
        } else if (!target.emplace(name == "default" ? "" : name, qualified).second) {
          at.note("names '" + name + "' twice");
        }
      });
}

void read_tolerations(const KeyValue& value, std::vector<std::string>& target) {
  std::vector<std::string> texts;
  read_names(value, texts);
  for (const std::string& text : texts) {
    if (job::toleration_of(text)) continue;
    add_fault(value, "'" + text + "' is not KEY[=VALUE][:EFFECT], as in for=train:NoSchedule");
  }
  target = std::move(texts);
}

/// The way to the cluster and into its pods.
ServerKeys reaching() {
  return {
      key({.name = "kubernetes.kubeconfig",
           .flag = "--kubeconfig",
           .type = "file",
           .fallback = "KUBECONFIG; in a pod its service account; ~/.kube/config",
           .help = "kubeconfig with the cluster and the credentials",
           .offer = record::Offer::kFiles},
          &ServeOptions::kubernetes_kubeconfig, read_path),
      key({.name = "kubernetes.context",
           .flag = "--kubernetes-context",
           .type = "name",
           .fallback = "the current context",
           .help = "context of the kubeconfig"},
          &ServeOptions::kubernetes_context, read_filled_text),
      key({.name = "kubernetes.namespace",
           .flag = "--kubernetes-namespace",
           .type = "name",
           .fallback = "the namespace of the context",
           .help = "namespace of the pods"},
          &ServeOptions::kubernetes_namespace, read_object_name),
      choice(
          {.name = "kubernetes.connect",
           .flag = "--kubernetes-connect",
           .type = "how",
           .fallback = "auto: call if kubernetes.callback is set, otherwise forward",
           .help = "how the server and its pods connect: forward (the server connects to each pod "
                   "through the API server) or call (pods connect to kubernetes.callback)"},
          &ServeOptions::kubernetes_connect),
      key({.name = "kubernetes.callback",
           .flag = "--kubernetes-callback",
           .type = "HOST,...:PORT",
           .fallback = "none",
           .help = "addresses at which pods connect to the server, such as "
                   "muster.training.svc:7445"},
          &ServeOptions::kubernetes_callback, read_callback),
      key({.name = "kubernetes.cluster_domain",
           .flag = "--kubernetes-cluster-domain",
           .type = "domain",
           .fallback = "cluster.local",
           .help = "DNS domain of the cluster"},
          &ServeOptions::kubernetes_cluster_domain, read_object_name),
  };
}

/// Settings of all pods.
ServerKeys pods() {
  return {
      key({.name = "kubernetes.node_image",
           .flag = "--kubernetes-node-image",
           .type = "image",
           .fallback = "muster-node",
           .help = "image with muster-node, from which each pod gets Muster's programs"},
          &ServeOptions::kubernetes_node_image, read_filled_text),
      choice(
          {.name = "kubernetes.programs",
           .flag = "--kubernetes-programs",
           .type = "how",
           .fallback = "auto: volume on nodes with kubelet 1.35 and containerd 2.1, otherwise copy",
           .help = "how pods get Muster's programs: volume (the image is mounted) or copy (by an "
                   "init container)"},
          &ServeOptions::kubernetes_programs),
      key({.name = "kubernetes.user",
           .flag = "--kubernetes-user",
           .type = "UID[:GID]",
           .fallback = "1000:1000",
           .help = "default user of tasks"},
          &ServeOptions::kubernetes_user, read_numeric_user),
      key({.name = "kubernetes.priority_class",
           .flag = "--kubernetes-priority-class",
           .type = "name",
           .fallback = "the cluster's default",
           .help = "default priority class of pods"},
          &ServeOptions::kubernetes_priority_class, read_object_name),
      key({.name = "kubernetes.runtime_class",
           .flag = "--kubernetes-runtime-class",
           .type = "name",
           .fallback = "the cluster's default",
           .help = "default runtime class of pods"},
          &ServeOptions::kubernetes_runtime_class, read_object_name),
      key({.name = "kubernetes.pull_secrets",
           .flag = "--kubernetes-pull-secrets",
           .type = "names",
           .fallback = "none",
           .help = "secrets of the namespace with logins for registries, for all pods"},
          &ServeOptions::kubernetes_pull_secrets, read_object_names),
      key({.name = "kubernetes.storage_claim",
           .flag = "--kubernetes-storage-claim",
           .type = "name",
           .fallback = "none: jobs cannot use storage",
           .help = "persistent volume claim for the storage of projects"},
          &ServeOptions::kubernetes_storage_claim, read_object_name),
      key({.name = "kubernetes.artifacts_class",
           .flag = "--kubernetes-artifacts-class",
           .type = "name",
           .fallback = "none: each task has an /artifacts of its own, and the server merges them",
           .help = "storage class with ReadWriteMany: the tasks of a job share /artifacts in a "
                   "volume of this class, which is deleted with the attempt"},
          &ServeOptions::kubernetes_artifacts_class, read_object_name),
      key({.name = "kubernetes.artifacts_size",
           .flag = "--kubernetes-artifacts-size",
           .type = "size",
           .fallback = "10Gi",
           .help = "size of that volume"},
          &ServeOptions::kubernetes_artifacts_bytes, read_large_size),
      key({.name = "kubernetes.pod_timeout",
           .flag = "--kubernetes-pod-timeout",
           .type = "time",
           .fallback = "10m",
           .help = "time for all pods of a job to start, images included"},
          &ServeOptions::kubernetes_pod_timeout, read_some_time),
  };
}

/// The scheduler of jobs.
ServerKeys queueing() {
  return {
      choice({.name = "kubernetes.queue",
              .flag = "--kubernetes-queue",
              .type = "queue",
              .fallback = "muster",
              .help =
                  "what decides when and where jobs run: muster (Muster's scheduler), default (the "
                  "cluster's scheduler) or kueue"},
             &ServeOptions::kubernetes_queue),
      key({.name = "kubernetes.local_queue",
           .flag = "--kubernetes-local-queue",
           .type = "name",
           .fallback = "none",
           .help =
               "LocalQueue of Kueue for all jobs; {project} in it stands for the job's project"},
          &ServeOptions::kubernetes_local_queue, read_local_queue),
  };
}

/// How nodes are read.
ServerKeys clusters_nodes() {
  return {
      key({.name = "kubernetes.tolerations",
           .type = "list",
           .fallback = "none",
           .help = "taints of nodes that all pods tolerate: KEY[=VALUE][:EFFECT]"},
          &ServeOptions::kubernetes_tolerations, read_tolerations),
      key({.name = "kubernetes.gpu_resources",
           .flag = "--kubernetes-gpu-resources",
           .type = "MODEL=RESOURCE",
           .fallback = "default=nvidia.com/gpu",
           .help = "resource of each GPU model; default stands for all other models",
           .repeats = true},
          &ServeOptions::kubernetes_gpu_resources, read_qualified_names),
      key({.name = "kubernetes.topology",
           .flag = "--kubernetes-topology",
           .type = "LEVEL=LABEL",
           .fallback = "region, zone and rack by topology.kubernetes.io, host",
           .help = "label of nodes for each level of the topology",
           .repeats = true},
          &ServeOptions::kubernetes_topology, read_qualified_names),
      key({.name = "kubernetes.pool_label",
           .flag = "--kubernetes-pool-label",
           .type = "label",
           .fallback = "muster.dev/pool",
           .help = "label of nodes that names their pool"},
          &ServeOptions::kubernetes_pool_label, read_label),
  };
}

/// The objects that jobs may name. All are used with the rights of the server.
ServerKeys permissions() {
  const char* const fallback = "any; none on a server with listen";
  return {
      key({.name = "kubernetes.job_service_accounts",
           .flag = "--kubernetes-job-service-accounts",
           .type = "names",
           .fallback = fallback,
           .help = "service accounts that jobs may name"},
          &ServeOptions::kubernetes_job_service_accounts, read_object_names),
      key({.name = "kubernetes.job_priority_classes",
           .flag = "--kubernetes-job-priority-classes",
           .type = "names",
           .fallback = fallback,
           .help = "priority classes that jobs may name"},
          &ServeOptions::kubernetes_job_priority_classes, read_object_names),
      key({.name = "kubernetes.job_pull_secrets",
           .flag = "--kubernetes-job-pull-secrets",
           .type = "names",
           .fallback = fallback,
           .help = "secrets for registries that jobs may name"},
          &ServeOptions::kubernetes_job_pull_secrets, read_object_names),
      key({.name = "kubernetes.job_claims",
           .flag = "--kubernetes-job-claims",
           .type = "names",
           .fallback = fallback,
           .help = "persistent volume claims that jobs may name, and secret:NAME, configmap:NAME"},
          &ServeOptions::kubernetes_job_claims, read_claims),
      key({.name = "kubernetes.job_devices",
           .flag = "--kubernetes-job-devices",
           .type = "names",
           .fallback = fallback,
           .help = "resources, such as rdma/hca, that jobs may request by --kubernetes-device; no "
                   "quota counts them"},
          &ServeOptions::kubernetes_job_devices, read_devices),
  };
}

}  // namespace

ServerKeys kubernetes_server_keys() {
  ServerKeys keys;
  for (ServerKeys part : {reaching(), pods(), queueing(), clusters_nodes(), permissions()}) {
    for (ServerKey& each : part) {
      each.engine = "kubernetes";
      keys.push_back(std::move(each));
    }
  }
  return keys;
}

}  // namespace muster::config
