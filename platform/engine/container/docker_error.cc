#include "engine/container/docker_error.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text.h"
#include "engine/container/docker_json.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

/// The limit for an engine's sentence: the error of a runtime may fill a page.
constexpr size_t kLongestSentence = 1000;

struct Sign {
  std::string_view words;
  ErrorCode code;
};

/// Texts of errors for which Podman answers 500, and of full disks with any status. Lower case.
constexpr std::array kSigns{
    Sign{"no space left on device", ErrorCode::kExhausted},
    Sign{"disk quota exceeded", ErrorCode::kExhausted},
    Sign{"that name is already in use", ErrorCode::kConflict},
    Sign{"network already exists", ErrorCode::kConflict},
    Sign{"network is being used", ErrorCode::kConflict},
    Sign{"has active endpoints", ErrorCode::kConflict},
    Sign{"volume is being used", ErrorCode::kConflict},
    Sign{"container state improper", ErrorCode::kConflict},
    Sign{"network not found", ErrorCode::kNotFound},
    Sign{"no such container", ErrorCode::kNotFound},
    Sign{"image not known", ErrorCode::kNotFound},
    Sign{"invalid reference format", ErrorCode::kInvalid},
    Sign{"unresolvable cdi devices", ErrorCode::kInvalid},
    Sign{"could not select device driver", ErrorCode::kInvalid},
};

/// In this order, because Docker Hub answers "denied" also for images that do not exist.
constexpr std::array kPullSigns{
    Sign{"no space left on device", ErrorCode::kExhausted},
    Sign{"disk quota exceeded", ErrorCode::kExhausted},
    Sign{"unauthorized", ErrorCode::kRefused},
    Sign{"authentication required", ErrorCode::kRefused},
    Sign{"denied: permission denied", ErrorCode::kRefused},  // of a registry
    Sign{"permission denied", ErrorCode::kInternal},         // of the host's kernel
    Sign{"denied", ErrorCode::kRefused},
    Sign{"no basic auth credentials", ErrorCode::kRefused},
    Sign{"toomanyrequests", ErrorCode::kUnavailable},
    Sign{"manifest unknown", ErrorCode::kNotFound},
    Sign{"name unknown", ErrorCode::kNotFound},
    Sign{"not found", ErrorCode::kNotFound},
    Sign{"does not exist", ErrorCode::kNotFound},
    Sign{"no matching manifest", ErrorCode::kNotFound},
    Sign{"invalid reference format", ErrorCode::kInvalid},
    Sign{"no such host", ErrorCode::kUnavailable},
    Sign{"connection refused", ErrorCode::kUnavailable},
    Sign{"connection reset", ErrorCode::kUnavailable},
    Sign{"timeout", ErrorCode::kUnavailable},
    Sign{"unreachable", ErrorCode::kUnavailable},
    Sign{"server misbehaving", ErrorCode::kUnavailable},
    Sign{"temporary failure", ErrorCode::kUnavailable},
    Sign{"unexpected http status: 5", ErrorCode::kUnavailable},
    Sign{"bad gateway", ErrorCode::kUnavailable},
    Sign{"service unavailable", ErrorCode::kUnavailable},
    Sign{"unexpected eof", ErrorCode::kUnavailable},
    Sign{"context deadline exceeded", ErrorCode::kUnavailable},
    Sign{"no route to host", ErrorCode::kUnavailable},
    Sign{"broken pipe", ErrorCode::kUnavailable},
};

template <size_t Count>
ErrorCode code_by(const std::array<Sign, Count>& signs, const std::string& text,
                  ErrorCode otherwise) {
  const std::string lower = base::lower_case(text);
  const auto found = std::find_if(signs.begin(), signs.end(), [&](const Sign& sign) {
    return lower.find(sign.words) != std::string::npos;
  });
  return found == signs.end() ? otherwise : found->code;
}

ErrorCode code_of(int status) {
  switch (status) {
    case 400:
      return ErrorCode::kInvalid;
    case 401:
    case 403:
      return ErrorCode::kRefused;
    case 404:
      return ErrorCode::kNotFound;
    case 409:
      return ErrorCode::kConflict;
    default:
      return ErrorCode::kInternal;
  }
}

/// The text on one line, as sentences of errors must be.
std::string sentence(const std::string& words) {
  std::string text = base::as_utf8(words);
  std::replace_if(
      text.begin(), text.end(),
      [](char letter) { return static_cast<unsigned char>(letter) < ' '; }, ' ');
  return base::shortened(text, kLongestSentence);
}

std::string advice_for_image(ErrorCode code) {
  switch (code) {
    case ErrorCode::kRefused:
      return "give a login of that registry that may read this image";
    case ErrorCode::kNotFound:
      return "check the image's name and tag";
    case ErrorCode::kExhausted:
      return "remove unused images from that host";
    case ErrorCode::kUnavailable:
      return "check that the host can reach the registry, and try again";
    default:
      return "";
  }
}

}  // namespace

Error error_of(int status, std::string_view body, const std::string& doing,
               const std::string& engine) {
  const EngineWords words = read_words(body);
  const std::string message = words.message.empty()
                                  ? "it answers with status " + std::to_string(status)
                                  : sentence(words.message);
  return {.code = code_by(kSigns, words.cause + " " + words.message, code_of(status)),
          .what = doing + ": " + message + " (" + engine + ")"};
}

Error pull_error(const std::string& message, const std::string& image, const std::string& engine) {
  const ErrorCode code = code_by(kPullSigns, message, ErrorCode::kInternal);
  return {
      .code = code,
      .what = "image '" + image + "' cannot be pulled: " + sentence(message) + " (" + engine + ")",
      .advice = advice_for_image(code)};
}

namespace {

constexpr const char* kBroughtByHand =
    "to copy an image from another machine, use podman push and pull, or podman save and load (the "
    "same with docker)";

std::string advice_for_pull(const ImageRequest& request, const Error& error) {
  switch (error.code) {
    case ErrorCode::kRefused:
      if (!request.username.empty()) {
        return "check the name of the image, and that the secret contains the password of that "
               "user: muster secret list";
      }
      return "check its name; if the registry requires a login: --registry-username USER "
             "--registry-secret NAME, a secret of the project that contains the password";
    case ErrorCode::kNotFound:
      return std::string("check its name and tag; ") + kBroughtByHand;
    case ErrorCode::kExhausted:
      return "free disk space there: podman image prune, or docker image prune";
    case ErrorCode::kInvalid:
      return "a valid name looks like registry.example.org/team/train:v7";
    case ErrorCode::kUnavailable:
      return error.advice.empty() ? kBroughtByHand : error.advice + "; " + kBroughtByHand;
    default:
      return error.advice;
  }
}

}  // namespace

Error pull_fault(const ImageRequest& request, Error error) {
  error.advice = advice_for_pull(request, error);
  error.what = "node '" + request.node + "': " + error.what;
  if (error.code == ErrorCode::kRefused) {
    error.what += request.username.empty() ? "; without a login"
                                           : "; user '" + request.username + "' logged in there";
  }
  return error;
}

Error image_is_missing(const ImageRequest& request) {
  return {.code = ErrorCode::kNotFound,
          .what = "node '" + request.node + "' has no image '" + request.image +
                  "', and --image-pull-policy never forbids fetching it",
          .advice =
              "fetch it there (podman pull, or docker pull), or let Muster do it: "
              "--image-pull-policy if-missing",
          .faults = {}};
}

// Podman's prefix for images that it has built. A registry on this machine would have a port.
bool is_local_name(const std::string& image) {
  return image.starts_with("localhost/");
}

Error local_image_is_missing(const ImageRequest& request) {
  return {.code = ErrorCode::kNotFound,
          .what = "node '" + request.node + "' has no image '" + request.image +
                  "', and names that begin with localhost/ belong to no registry",
          .advice = "build it there, or copy it there with podman save and podman load",
          .faults = {}};
}

Error wrong_processor(const ImageRequest& request, const std::string& image,
                      const std::string& node) {
  return {.code = ErrorCode::kRefused,
          .what = "image '" + request.image + "' is for " + image + "; node '" + request.node +
                  "' is " + node,
          .advice = "build it for " + node + " (--platform linux/" + node +
                    "), or use an image for both processors",
          .faults = {}};
}

}  // namespace muster::engine
