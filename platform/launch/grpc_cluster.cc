#include "launch/grpc_cluster.h"

#include <nlohmann/json.hpp>

#include "base/base64.h"

namespace muster::launch {

namespace {

using Hosts = std::vector<std::string>;
using nlohmann::ordered_json;

void add(ordered_json& cluster, const char* name, const Hosts& hosts) {
  if (!hosts.empty()) cluster[name] = hosts;
}

/// The chief is number 0 of the workers.
Hosts workers_with_chief(const GrpcCluster& cluster) {
  Hosts hosts{cluster.chief};
  hosts.insert(hosts.end(), cluster.workers.begin(), cluster.workers.end());
  return hosts;
}

/// TensorFlow 2 and Gradient call the same thing differently.
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

std::string tensorflow_config(const GrpcCluster& cluster, const GrpcPlace& place) {
  ordered_json hosts;
  add(hosts, "chief", {cluster.chief});
  add(hosts, "worker", cluster.workers);
  add(hosts, "ps", cluster.parameter_servers);
  return ordered_json{{"cluster", hosts},
                      {"task", {{"type", type_of(place, "chief")}, {"index", place.index}}}}
      .dump();
}

int gradient_index(const GrpcPlace& place) {
  return place.kind == GrpcPlace::Kind::kWorker ? place.index + 1 : place.index;
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
  return base::to_base64_for_urls(config.dump());
}

/// ['a:1', 'b:2']. Host names and addresses hold nothing that would need an escape.
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

}  // namespace muster::launch
