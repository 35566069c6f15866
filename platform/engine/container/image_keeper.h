// Brings images to a host and looks into them.
//
// On the loop's thread. Each image id is inspected once, in a container that is created from the
// image and never started. Callers that need the same image at the same time share one pull.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/container/docker_client.h"
#include "engine/container/labels.h"
#include "engine/engine.h"
#include "launch/choose_launch.h"

namespace muster::engine {

/// Label of the containers in which images are inspected. A killed server may leave some; the next
/// ImageKeeper of the same owner removes them before it creates its first.
inline constexpr const char* kLookLabel = "org.muster.look";

class ImageKeeper {
 public:
  /// `client` must outlive the keeper and everything that prepare() returned.
  ImageKeeper(base::EventLoop& loop, DockerClient& client, std::string owner);
  ~ImageKeeper();

  /// See Engine::prepare(). `architecture`: the host's.
  ///
  /// Errors: those of docker_error.h and find_account(); kUnavailable: the host's engine does not
  /// answer.
  [[nodiscard]] std::shared_ptr<void> prepare(const ImageRequest& request,
                                              const std::string& architecture,
                                              std::function<void(const PullProgress&)> progress,
                                              std::function<void(Result<launch::ImageFacts>)> done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::engine
