// Brings images to a host and looks into them.
//
// On the loop's thread. The facts of an image are looked up once for each id and user, in a
// container that is made of it and never started.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/container/docker_client.h"
#include "engine/container/labels.h"
#include "engine/engine.h"
#include "launch/image_facts.h"

namespace muster::engine {

class ImageKeeper {
 public:
  ImageKeeper(base::EventLoop& loop, DockerClient& client, std::string owner);
  ~ImageKeeper();

  /// See Engine::prepare(). `architecture`: of the host.
  [[nodiscard]] std::shared_ptr<void> prepare(const ImageWish& wish,
                                              const std::string& architecture,
                                              std::function<void(const PullProgress&)> progress,
                                              std::function<void(Result<launch::ImageFacts>)> done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::engine
