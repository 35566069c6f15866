#include <memory>
#include <utility>

#include "engine/slurm/open_client.h"
#include "engine/slurm/slurm_engine.h"

namespace muster::engine {

Result<std::unique_ptr<SlurmEngine>> SlurmEngine::open(base::EventLoop& loop,
                                                       slurm::SlurmEngineOptions options) {
  MUSTER_TRY(auto client, slurm::open_client(loop, options));
  return std::make_unique<SlurmEngine>(loop, std::move(options), std::move(client));
}

}  // namespace muster::engine
