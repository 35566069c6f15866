#include "launch/torch_group.h"

namespace muster::launch {

std::map<std::string, std::string> torch_environment(const TorchPlace& place) {
  return {{"MASTER_ADDR", place.master_host},
          {"MASTER_PORT", std::to_string(place.master_port)},
          {"RANK", std::to_string(place.rank)},
          {"WORLD_SIZE", std::to_string(place.world_size)},
          {"LOCAL_RANK", "0"}};
}

}  // namespace muster::launch
