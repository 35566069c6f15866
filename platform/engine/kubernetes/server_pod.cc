#include "engine/kubernetes/server_pod.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace muster::engine::kubernetes {

namespace {

constexpr std::string_view kPodNameVariable = "MUSTER_POD_NAME=";

std::string pod_name_in(const std::vector<std::string>& environment) {
  for (const std::string& each : environment) {
    if (each.starts_with(kPodNameVariable)) return each.substr(kPodNameVariable.size());
  }
  return {};
}

}  // namespace

ServerPod::ServerPod(base::EventLoop& loop, std::unique_ptr<Access> access, ObjectName pod,
                     ApiOptions options, std::chrono::milliseconds pause)
    : loop_(loop),
      client_(loop, std::move(access), std::move(options)),
      pod_(std::move(pod)),
      pause_(pause) {}

void ServerPod::set_leads(bool leads) {
  leads_ = leads;
  send();
}

void ServerPod::send() {
  timer_.reset();
  // A merge patch removes what is null.
  const Json value = leads_ ? Json("true") : Json(nullptr);
  call_ = client_.patch(
      pod_, PatchType::kMerge, {{"metadata", {{"labels", {{kLeadsLabel, value}}}}}},
      [this](const base::Result<Json>& done) {
        if (done) {
          complaint_.clear();
          return base::log_info(leads_ ? "labelled this pod: it leads"
                                       : "this pod does not have the label of the leader");
        }
        const std::string complaint = done.error().to_string();
        if (std::exchange(complaint_, complaint) != complaint) {
          base::log_warning("clients may not find the server that leads: " + complaint);
        }
        timer_ = loop_.after(pause_, [this] { send(); });
      });
}

base::Result<std::unique_ptr<ServerPod>> server_pod(base::EventLoop& loop,
                                                    const std::vector<std::string>& environment) {
  std::string name = pod_name_in(environment);
  if (name.empty()) return std::unique_ptr<ServerPod>();
  MUSTER_TRY(auto access, open_access(loop, {.environment = environment}));
  ObjectName pod{kPods, access->facts().space, std::move(name)};
  return std::make_unique<ServerPod>(loop, std::move(access), std::move(pod));
}

}  // namespace muster::engine::kubernetes
