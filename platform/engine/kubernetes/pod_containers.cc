#include "engine/kubernetes/pod_containers.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/kubernetes/pod_place.h"
#include "engine/kubernetes/pod_volumes.h"
#include "engine/node/pod.h"
#include "job/pod_container.h"

namespace muster::engine::kubernetes {

using Json = nlohmann::json;

namespace {

/// Root gets these in a container of its own, as with other engines of containers: enough to install
/// packages, to run sshd and to change the account. The level "baseline" of Pod Security has them all.
constexpr std::array kRootCapabilities{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID",
                                       "KILL",  "SETGID",       "SETUID", "SYS_CHROOT"};

// Places in the init container.
constexpr const char* kNodeProgram = "/muster-node";
constexpr const char* kInstallFolder = "/pod";  ///< the volume that the task sees as /muster
constexpr const char* kSecretFolder = "/brief";

/// Requests and limits are equal: a task gets what it claims, and never more.
Json resources_of(const PodJob& job, const PodTask& task, const PodSite& site) {
  Json claims = Json::object();
  if (task.resources.cpu_milli > 0) claims["cpu"] = cpu_quantity(task.resources.cpu_milli);
  if (task.resources.memory_bytes > 0) {
    claims["memory"] = std::to_string(task.resources.memory_bytes);
  }
  if (task.gpus > 0) claims[gpu_resource(task.gpu_model, site)] = std::to_string(task.gpus);
  for (const auto& [name, count] : job.options.devices) claims[name] = count;
  if (claims.empty()) return Json::object();
  return {{"requests", claims}, {"limits", claims}};
}

/// Without devices: the init container only copies files, but a quota may require its limits.
Json install_resources(const Json& of_task) {
  Json own = Json::object();
  for (const char* const which : {"requests", "limits"}) {
    if (!of_task.contains(which)) continue;
    for (const char* const name : {"cpu", "memory"}) {
      if (of_task[which].contains(name)) own[which][name] = of_task[which][name];
    }
  }
  return own;
}

Json container_security(const PodJob& job, const PodAccount& account) {
  Json capabilities{{"drop", Json::array({"ALL"})}};
  std::set<std::string> kept(job.container.capabilities.begin(), job.container.capabilities.end());
  if (account.uid == 0) kept.insert(kRootCapabilities.begin(), kRootCapabilities.end());
  if (!kept.empty()) capabilities["add"] = kept;
  return {{"allowPrivilegeEscalation", job.container.new_privileges},
          {"readOnlyRootFilesystem", !job.container.writable_root},
          {"capabilities", capabilities}};
}

Json install_security() {
  return {{"allowPrivilegeEscalation", false},
          {"readOnlyRootFilesystem", true},
          {"capabilities", {{"drop", Json::array({"ALL"})}}}};
}

/// A variable of the downward API.
Json from_pod(const char* name, const char* field) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", field}}}}}};
}

Json variables_of_pod(const PodTask& task, int64_t grace, const std::string& secret) {
  Json variables = Json::array({from_pod(node::kPodNode, "spec.nodeName"),
                                from_pod(node::kPodUid, "metadata.uid"),
                                from_pod(node::kPodAddress, "status.podIP"),
                                {{"name", node::kPodIndex}, {"value", std::to_string(task.index)}},
                                {{"name", node::kPodGrace}, {"value", std::to_string(grace)}}});
  if (task.mounts_programs) {
    variables.push_back(
        {{"name", node::kPodBriefText},
         {"valueFrom", {{"secretKeyRef", {{"name", secret}, {"key", kBriefFile}}}}}});
  }
  return variables;
}

Json task_container(const PodJob& job, const PodTask& task, const PodSite& site,
                    const PodAccount& account, const Json& mounts, int64_t grace) {
  return {{"name", kTaskContainer},
          {"image", task.image},
          {"imagePullPolicy", pull_word(job.container.pull)},
          {"command", Json::array({std::string(node::kPodPrograms) + "/muster-node"})},
          {"args",
           task.mounts_programs ? Json::array({"--pod"}) : Json::array({"--pod", node::kPodBrief})},
          {"env", variables_of_pod(task, grace, gang_name(site.owner, job.gang))},
          {"resources", resources_of(job, task, site)},
          {"securityContext", container_security(job, account)},
          {"terminationMessagePolicy", "FallbackToLogsOnError"},
          {"volumeMounts", mounts}};
}

Json install_container(const PodSite& site, const Json& resources) {
  const std::string brief = std::string(kSecretFolder) + "/" + kBriefFile;
  return {{"name", kInstallContainer},
          {"image", site.node_image},
          {"imagePullPolicy", pull_word(site.node_image_pull)},
          {"command", Json::array({kNodeProgram})},
          {"args", Json::array({"--install", kInstallFolder, brief})},
          {"resources", install_resources(resources)},
          {"securityContext", install_security()},
          {"terminationMessagePolicy", "FallbackToLogsOnError"},
          {"volumeMounts",
           Json::array({{{"name", "muster"}, {"mountPath", kInstallFolder}},
                        {{"name", "brief"}, {"mountPath", kSecretFolder}, {"readOnly", true}}})}};
}

// --- what the job brings along

/// Escapes text for the kubelet, which replaces $(NAME) in words and values.
std::string literal(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '$' ? std::string("$$") : std::string(1, c);
  return escaped;
}

Json literals(const std::vector<std::string>& words) {
  Json all = Json::array();
  for (const std::string& word : words) all.push_back(literal(word));
  return all;
}

/// What the task has at a path, for another container. `mounts`: of the task's container.
Json mount_beside(const job::PodContainerMount& requested, const Json& mounts) {
  const Json* base = nullptr;
  size_t depth = 0;
  for (const Json& mount : mounts) {
    const auto& at = mount["mountPath"].get_ref<const std::string&>();
    const bool is_there = requested.path == at || requested.path.starts_with(at + "/");
    if (!is_there || at.size() <= depth) continue;
    base = &mount;
    depth = at.size();
  }
  if (base == nullptr) return nullptr;  // check_pod_containers() has refused it
  Json mount{{"name", (*base)["name"]}, {"mountPath", requested.own_path}};
  std::string below = base->value("subPath", "");
  if (requested.path.size() > depth) {
    below += (below.empty() ? "" : "/") + requested.path.substr(depth + 1);
  }
  if (!below.empty()) mount["subPath"] = below;
  if (requested.read_only || base->value("readOnly", false)) mount["readOnly"] = true;
  return mount;
}

Json security_beside(const job::PodContainer& container, const PodSite& site) {
  Json security{{"allowPrivilegeEscalation", false},
                {"capabilities", {{"drop", Json::array({"ALL"})}}}};
  const auto account = pod_account(container.user, site);
  if (container.user.empty() || !account) return security;
  security["runAsUser"] = account->uid;
  security["runAsGroup"] = account->gid;
  security["runAsNonRoot"] = account->uid != 0;
  if (account->uid == 0) security["capabilities"]["add"] = kRootCapabilities;
  return security;
}

Json container_beside(const job::PodContainer& container, const PodSite& site, const Json& mounts) {
  Json object{{"name", container.name},
              {"image", container.image},
              {"imagePullPolicy", pull_word(container.pull)},
              {"securityContext", security_beside(container, site)},
              {"terminationMessagePolicy", "FallbackToLogsOnError"}};
  if (container.runs == job::PodContainer::Runs::kBeside) object["restartPolicy"] = "Always";
  if (!container.command.empty()) object["command"] = literals(container.command);
  if (!container.arguments.empty()) object["args"] = literals(container.arguments);
  for (const auto& [name, value] : container.environment) {
    object["env"].push_back({{"name", name}, {"value", literal(value)}});
  }
  if (!container.folder.empty()) object["workingDir"] = container.folder;
  Json claims = Json::object();
  if (container.cpu_milli > 0) claims["cpu"] = cpu_quantity(container.cpu_milli);
  if (container.memory_bytes > 0) claims["memory"] = std::to_string(container.memory_bytes);
  if (!claims.empty()) object["resources"] = {{"requests", claims}, {"limits", claims}};
  for (const std::string& text : container.mounts) {
    const auto requested = job::pod_container_mount_of(text);
    Json mount = requested ? mount_beside(*requested, mounts) : Json();
    if (!mount.is_null()) object["volumeMounts"].push_back(std::move(mount));
  }
  return object;
}

}  // namespace

void add_containers(const PodJob& job, const PodTask& task, const PodSite& site,
                    const PodFrame& frame, Json& spec) {
  Json container = task_container(job, task, site, frame.account, frame.mounts, frame.grace);
  Json first = Json::array();
  if (!task.mounts_programs) first.push_back(install_container(site, container["resources"]));
  for (const job::PodContainer& each : task.containers) {
    first.push_back(container_beside(each, site, frame.mounts));
  }
  if (!first.empty()) spec["initContainers"] = std::move(first);
  spec["containers"] = Json::array({std::move(container)});
}

std::string cpu_quantity(int64_t milli) {
  constexpr int64_t kWhole = 1000;
  return milli % kWhole == 0 ? std::to_string(milli / kWhole) : std::to_string(milli) + "m";
}

}  // namespace muster::engine::kubernetes
