// Brings images to a host and looks into them.
//
// On the loop's thread. An image is looked into once for each id, in a container that is made of it
// and never started (image_look.h), and fetched once for all who want it at the same time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/container/docker_client.h"
#include "engine/container/labels.h"
#include "engine/engine.h"
#include "launch/choose_launch.h"

namespace muster::engine {

/// Of the containers that are looked into: a server that was killed may have left some. Their
/// owner's next keeper removes them before it makes its first.
inline constexpr const char* kLookLabel = "org.muster.look";

class ImageKeeper {
 public:
  /// `client` must outlive it, and what prepare() returns.
  ImageKeeper(base::EventLoop& loop, DockerClient& client, std::string owner);
  ~ImageKeeper();

  /// See Engine::prepare(). `architecture`: of the host.
  ///
  /// Errors: those of pull_fault.h and passwd_file.h; kUnavailable: the host's engine does not
  /// answer.
  [[nodiscard]] std::shared_ptr<void> prepare(const ImageWish& wish,
                                              const std::string& architecture,
                                              std::function<void(const PullProgress&)> progress,
                                              std::function<void(Result<launch::ImageFacts>)> done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::engine
