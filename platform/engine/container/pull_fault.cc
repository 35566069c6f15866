#include "engine/container/pull_fault.h"

#include <utility>

namespace muster::engine {

namespace {

using base::Error;
using base::ErrorCode;

constexpr const char* kBroughtByHand =
    "an image that was built elsewhere gets there by podman push and pull, or by podman save and "
    "load (docker alike)";

std::string advice_for_pull(const ImageWish& wish, const Error& error) {
  switch (error.code) {
    case ErrorCode::kRefused:
      if (!wish.username.empty()) {
        return "see that the image's name is right, and that the secret holds the password of "
               "that user: muster secret list";
      }
      return "see that its name is right; if the registry wants a login: --registry-username USER "
             "--registry-secret NAME, a secret of the project that holds the password";
    case ErrorCode::kNotFound:
      return std::string("see that its name and tag are right; ") + kBroughtByHand;
    case ErrorCode::kExhausted:
      return "make room there: podman image prune, or docker image prune";
    case ErrorCode::kInvalid:
      return "a name is as in registry.example.org/team/train:v7";
    case ErrorCode::kUnavailable:
      return error.advice.empty() ? kBroughtByHand : error.advice + "; " + kBroughtByHand;
    default:
      return error.advice;
  }
}

}  // namespace

Error pull_fault(const ImageWish& wish, Error error) {
  error.advice = advice_for_pull(wish, error);
  error.what = "node '" + wish.node + "': " + error.what;
  if (error.code == ErrorCode::kRefused) {
    error.what += wish.username.empty() ? "; nobody logged in there"
                                        : "; user '" + wish.username + "' logged in there";
  }
  return error;
}

Error image_is_missing(const ImageWish& wish) {
  return {.code = ErrorCode::kNotFound,
          .what = "node '" + wish.node + "' has no image '" + wish.image +
                  "', and none was fetched: --image-pull-policy is never",
          .advice =
              "fetch it there (podman pull, or docker pull), or let Muster do it: "
              "--image-pull-policy if-missing",
          .faults = {}};
}

// Podman calls what it has built so. A registry on the machine itself has a port.
bool is_local_name(const std::string& image) {
  return image.starts_with("localhost/");
}

Error local_image_is_missing(const ImageWish& wish) {
  return {.code = ErrorCode::kNotFound,
          .what = "node '" + wish.node + "' has no image '" + wish.image +
                  "', and names that begin with localhost/ are of no registry",
          .advice = "build it there, or bring it there by podman save and podman load",
          .faults = {}};
}

Error wrong_processor(const ImageWish& wish, const std::string& image, const std::string& node) {
  return {.code = ErrorCode::kRefused,
          .what = "image '" + wish.image + "' is for " + image + "; node '" + wish.node + "' is " +
                  node,
          .advice = "build it for " + node + " (--platform linux/" + node +
                    "), or give it a name that stands for both",
          .faults = {}};
}

}  // namespace muster::engine
