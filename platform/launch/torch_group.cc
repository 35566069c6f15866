#include "launch/torch_group.h"

#include "launch/task_plan.h"

namespace muster::launch {

namespace {

constexpr const char* kStorePatience = "300";
constexpr const char* kLastCall = "10";
constexpr const char* kLossesBorne = "16";
// The process of the highest number that torchrun understands here.
constexpr int kNobody = 9;
constexpr const char* kNobodysOutput = "9:1";

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
  if (place.processes_per_task <= kNobody) {
    variables["PET_REDIRECTS"] = kNobodysOutput;
    variables["PET_TEE"] = kNobodysOutput;
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
