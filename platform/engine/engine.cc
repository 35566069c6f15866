#include "engine/engine.h"

namespace muster::engine {

std::shared_ptr<void> Engine::prepare(const Gang&, std::vector<ImageWish>,
                                      std::function<void(const job::FetchesImage&)>, Prepared) {
  return nullptr;
}

}  // namespace muster::engine
