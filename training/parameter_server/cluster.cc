#include "muster/parameter_server/cluster.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using nlohmann::json;

constexpr const char* kForm =
    R"(set it for example to {"cluster": {"worker": ["host:port", ...], "ps": ["host:port", ...]}, )"
    R"("task": {"type": "worker", "index": 0}})";

// Checks for host:port with a valid port. Connecting reports all other errors.
bool is_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  const std::string port = text.substr(colon + 1);
  if (port.empty() || port.size() > 5) return false;
  if (port.find_first_not_of("0123456789") != std::string::npos) return false;
  const int number = std::stoi(port);
  return number >= 1 && number <= 65535;
}

// Reads TF_CONFIG part by part, and collects its faults.
class Reader {
 public:
  explicit Reader(const json& config) : config_(config) {}

  std::vector<std::string> addresses(const char* type) {
    const json* const cluster = object("cluster");
    if (cluster == nullptr || !cluster->contains(type)) return {};
    const json& list = (*cluster)[type];
    if (!list.is_array()) {
      fault(std::string("cluster.") + type + " is not a list of addresses");
      return {};
    }
    std::vector<std::string> addresses;
    for (const json& one : list) {
      if (one.is_string() && is_address(one.get_ref<const std::string&>())) {
        addresses.push_back(one);
      } else {
        fault(std::string("cluster.") + type + " has " + text_of(one) + ", not host:port");
      }
    }
    return addresses;
  }

  std::string type() {
    const json* const task = object("task");
    if (task == nullptr) return {};
    if (task->contains("type") && (*task)["type"].is_string()) return (*task)["type"];
    fault("task.type is missing");
    return {};
  }

  std::optional<int> index() {
    const json* const task = object("task");
    if (task == nullptr || !task->contains("index")) {
      fault("task.index is missing");
      return std::nullopt;
    }
    const json& index = (*task)["index"];
    if (index.is_number_unsigned() && index.get<std::uint64_t>() <= kHighestIndex) {
      return index.get<int>();
    }
    // Some launchers write the index as a string.
    if (index.is_string()) {
      const auto& text = index.get_ref<const std::string&>();
      const bool is_number = !text.empty() && text.size() <= 6 &&
                             text.find_first_not_of("0123456789") == std::string::npos;
      if (is_number) return std::stoi(text);
    }
    fault("task.index is " + text_of(index) + ", not a number from 0");
    return std::nullopt;
  }

  void fault(const std::string& text) {
    if (faults_.find(text) == std::string::npos) faults_ += (faults_.empty() ? "" : "; ") + text;
  }

  const std::string& faults() const { return faults_; }

 private:
  static constexpr std::uint64_t kHighestIndex = 999'999;

  const json* object(const char* name) {
    if (config_.contains(name) && config_[name].is_object()) return &config_[name];
    fault(std::string(name) + " is missing");
    return nullptr;
  }

  // The value as written, cut off if it is long, with invalid UTF-8 replaced.
  static std::string text_of(const json& value) {
    return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 100);
  }

  const json& config_;
  std::string faults_;
};

// The address of a task. Adds a fault if it has none.
std::string own_address(const std::vector<std::string>& of_type, const std::string& type,
                        std::optional<int> index, Reader& reader) {
  if (!index) return {};
  if (static_cast<std::size_t>(*index) < of_type.size()) return of_type[*index];
  reader.fault("task.index is " + std::to_string(*index) + ", but cluster." + type + " has " +
               std::to_string(of_type.size()) + " addresses");
  return {};
}

// The cluster from the types of TF_CONFIG. `chiefs` has the addresses of `chief` and `master`.
Cluster cluster_of(Reader& reader) {
  std::vector<std::string> chiefs = reader.addresses("chief");
  const std::vector<std::string> masters = reader.addresses("master");
  chiefs.insert(chiefs.end(), masters.begin(), masters.end());
  const std::vector<std::string> workers = reader.addresses("worker");
  Cluster cluster = {};
  cluster.servers = reader.addresses("ps");
  cluster.workers = static_cast<int>(chiefs.size() + workers.size());
  if (chiefs.size() > 1) reader.fault("cluster has more than one chief or master");
  if (cluster.servers.empty()) reader.fault("cluster.ps names no parameter server");
  if (cluster.workers == 0) reader.fault("cluster names no worker");

  const std::string type = reader.type();
  const std::optional<int> index = reader.index();
  cluster.index = index.value_or(0);
  if (type == "ps") {
    cluster.role = Role::kServer;
    cluster.address = own_address(cluster.servers, type, index, reader);
  } else if (type == "chief" || type == "master") {
    cluster.role = Role::kWorker;
    cluster.is_chief = true;
    cluster.address = own_address(chiefs, type, index, reader);
  } else if (type == "worker") {
    cluster.role = Role::kWorker;
    cluster.address = own_address(workers, type, index, reader);
    cluster.index += static_cast<int>(chiefs.size());
    cluster.is_chief = cluster.index == 0;
  } else if (type == "evaluator") {
    reader.fault("task.type is 'evaluator', which takes no part in the training");
  } else if (!type.empty()) {
    reader.fault("task.type is '" + type + "', not chief, master, worker or ps");
  }
  return cluster;
}

Error wrong(const std::string& faults) {
  return {ErrorCode::kConfiguration, "TF_CONFIG: " + faults, kForm};
}

}  // namespace

Result<Cluster> cluster_from(std::string_view tf_config) {
  const json config = json::parse(tf_config, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return wrong("it is not a JSON object");
  Reader reader(config);
  Cluster cluster = cluster_of(reader);
  if (!reader.faults().empty()) return wrong(reader.faults());
  return cluster;
}

Result<Cluster> cluster_from_environment() {
  const char* const config = std::getenv("TF_CONFIG");
  if (config == nullptr) {
    return Error{ErrorCode::kConfiguration,
                 "TF_CONFIG is not set, so the role of this process in the job is unknown",
                 "start it as a job of kind grpc with parameter servers, or set TF_CONFIG"};
  }
  Result<Cluster> cluster = cluster_from(config);
  if (!cluster) return cluster;
  const char* const key = std::getenv("MUSTER_RENDEZVOUS_KEY");
  if (key == nullptr || *key == '\0') {
    return Error{ErrorCode::kConfiguration,
                 "MUSTER_RENDEZVOUS_KEY is not set, but parameter servers require the job's key",
                 "set it on all tasks to the same secret, for example from: openssl rand -hex 32"};
  }
  cluster->key = key;
  return cluster;
}

}  // namespace muster::parameter_server
