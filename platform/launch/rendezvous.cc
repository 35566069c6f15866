#include "launch/rendezvous.h"

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/json_text.h"
#include "launch/task_plan.h"

namespace muster::launch {

namespace {

using Hosts = std::vector<std::string>;
using nlohmann::ordered_json;

void add(ordered_json& cluster, const char* name, const Hosts& hosts) {
  if (!hosts.empty()) cluster[name] = hosts;
}

/// Gradient counts the chief as worker number 0.
Hosts workers_with_chief(const GrpcCluster& cluster) {
  Hosts hosts{cluster.chief};
  hosts.insert(hosts.end(), cluster.workers.begin(), cluster.workers.end());
  return hosts;
}

/// TensorFlow 2 and Gradient use different names for a role.
std::string type_of(const GrpcPlace& place, const char* chief) {
  switch (place.kind) {
    case GrpcPlace::Kind::kChief:
      return chief;
    case GrpcPlace::Kind::kWorker:
      return "worker";
    case GrpcPlace::Kind::kParameterServer:
      return "ps";
    case GrpcPlace::Kind::kEvaluator:
      break;
  }
  return "evaluator";
}

std::string gradient_type(const GrpcPlace& place) {
  return type_of(place, "master");
}

int gradient_index(const GrpcPlace& place) {
  return place.kind == GrpcPlace::Kind::kWorker ? place.index + 1 : place.index;
}

std::string tensorflow_config(const GrpcCluster& cluster, const GrpcPlace& place) {
  ordered_json hosts;
  if (!cluster.chief_is_worker) add(hosts, "chief", {cluster.chief});
  add(hosts, "worker", cluster.chief_is_worker ? workers_with_chief(cluster) : cluster.workers);
  add(hosts, "ps", cluster.parameter_servers);
  const std::string type = type_of(place, cluster.chief_is_worker ? "worker" : "chief");
  const int index = cluster.chief_is_worker ? gradient_index(place) : place.index;
  return base::json_text(
      ordered_json{{"cluster", hosts}, {"task", {{"type", type}, {"index", index}}}});
}

std::string gradient_config(const GrpcCluster& cluster, const GrpcPlace& place) {
  ordered_json hosts;
  add(hosts, "master", {cluster.chief});
  add(hosts, "worker", workers_with_chief(cluster));
  add(hosts, "ps", cluster.parameter_servers);
  const ordered_json config{
      {"cluster", hosts},
      {"task", {{"type", gradient_type(place)}, {"index", gradient_index(place)}}},
      {"environment", "cloud"}};
  return base::to_base64_for_urls(base::json_text(config));
}

/// ['a:1', 'b:2']. Host names and addresses need no escapes.
std::string python_list(const Hosts& hosts) {
  std::string text = "[";
  for (const std::string& host : hosts) {
    if (text.size() > 1) text += ", ";
    text += "'" + host + "'";
  }
  return text + "]";
}

}  // namespace

std::map<std::string, std::string> grpc_environment(const GrpcCluster& cluster,
                                                    const GrpcPlace& place) {
  return {{"TF_CONFIG", tensorflow_config(cluster, place)},
          {"PS_CONFIG", gradient_config(cluster, place)},
          {"TYPE", gradient_type(place)},
          {"INDEX", std::to_string(gradient_index(place))},
          {"MASTER", python_list({cluster.chief})},
          {"WORKER_HOSTS", python_list(workers_with_chief(cluster))},
          {"PS_HOSTS", python_list(cluster.parameter_servers)}};
}

namespace {

constexpr const char* kStorePatience = "300";
constexpr const char* kLastCall = "10";
constexpr const char* kLossesBorne = "16";
// The highest process number that torchrun accepts here; usually no process has it.
constexpr int kNoProcess = 9;
constexpr const char* kOutputOfNoProcess = "9:1";

Variables for_no_launcher(const TorchPlace& place) {
  const std::string rank = std::to_string(place.rank);
  const std::string tasks = std::to_string(place.tasks);
  return {{"MASTER_ADDR", place.master_host},
          {"MASTER_PORT", std::to_string(place.master_port)},
          {"RANK", rank},
          {"WORLD_SIZE", tasks},
          {"LOCAL_RANK", "0"},
          {"LOCAL_WORLD_SIZE", "1"},
          {"GROUP_RANK", rank},
          {"GROUP_WORLD_SIZE", tasks},
          {"NODE_RANK", rank}};
}

Variables for_torchrun(const TorchPlace& place) {
  const bool is_elastic = place.min_tasks < place.max_tasks;
  const std::string most = std::to_string(place.max_tasks);
  const std::string port = std::to_string(place.master_port);
  const std::string holds_store = place.rank == 0 ? "1" : "0";
  Variables variables{
      {"PET_NNODES", is_elastic ? std::to_string(place.min_tasks) + ":" + most : most},
      {"PET_NPROC_PER_NODE", std::to_string(place.processes_per_task)},
      {"PET_RDZV_BACKEND", "c10d"},
      {"PET_RDZV_ENDPOINT", place.master_host + ":" + port},
      {"PET_RDZV_ID", place.group},
      {"PET_RDZV_CONF", "is_host=" + holds_store + ",read_timeout=" + kStorePatience +
                            ",last_call_timeout=" + kLastCall},
      {"PET_LOCAL_ADDR", place.host},
      {"PET_NODE_RANK", std::to_string(place.rank)},
      {"PET_MASTER_ADDR", place.master_host},
      {"PET_MASTER_PORT", port}};
  if (place.processes_per_task <= kNoProcess) {
    variables["PET_REDIRECTS"] = kOutputOfNoProcess;
    variables["PET_TEE"] = kOutputOfNoProcess;
  }
  if (is_elastic) variables["PET_MAX_RESTARTS"] = kLossesBorne;
  return variables;
}

}  // namespace

Variables torch_environment(const TorchPlace& place) {
  Variables variables = for_no_launcher(place);
  variables.merge(for_torchrun(place));
  if (!place.interface.empty()) {
    variables["GLOO_SOCKET_IFNAME"] = place.interface;
    variables["TP_SOCKET_IFNAME"] = place.interface;
  }
  return variables;
}

}  // namespace muster::launch
