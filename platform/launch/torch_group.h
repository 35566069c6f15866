// What a task of a kTorch job is told to find the others: the variables of torch.distributed's
// "env://".
//
// Pure. The user's own variables of these names win.
#pragma once

#include <map>
#include <string>

namespace muster::launch {

struct TorchPlace {
  std::string master_host;
  int master_port = 0;
  int rank = 0;  ///< of the task: 0 is the master, i + 1 is worker-i
  int world_size = 1;
};

/// MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE; LOCAL_RANK 0, for each task is one process.
std::map<std::string, std::string> torch_environment(const TorchPlace& place);

}  // namespace muster::launch
