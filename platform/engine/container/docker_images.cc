// Images: what is in them, and how they get to a host.
#include <algorithm>
#include <utility>

#include "engine/container/docker_client_impl.h"
#include "engine/container/docker_error.h"
#include "engine/container/docker_json.h"
#include "engine/container/pull_stream.h"

namespace muster::engine {

namespace {

/// Slashes stay: engines take the whole of what stands between for the name.
std::string escaped_image(const std::string& image) {
  std::string path;
  size_t begin = 0;
  while (true) {
    const size_t end = image.find('/', begin);
    path += url_escaped(image.substr(begin, end - begin));
    if (end == std::string::npos) return path;
    path += '/';
    begin = end + 1;
  }
}

/// The head may take as long as a look into the registry does.
http::AsyncLimits limits_of_pull(const Patience& patience) {
  return {.connect = patience.connect,
          .answer = std::max(patience.answer, patience.silence),
          .silence = patience.silence};
}

http::Headers headers_of_pull(const RegistryAccess& access) {
  if (access.username.empty() && access.password.empty()) return {};
  return {{"x-registry-auth", registry_auth(access)}};
}

/// A pull under way: what has been told of it.
struct PullUnderWay {
  PullStream told = PullStream({});
  std::function<bool()> is_wanted = {};  ///< until somebody who is told drops it
  Result<void> understood = {};
};

/// Once the stream is at its end.
Result<void> outcome(PullUnderWay& pull, const std::string& image, const std::string& engine) {
  if (pull.understood) pull.understood = pull.told.put_end();
  if (!pull.told.failure().empty()) return pull_error(pull.told.failure(), image, engine);
  if (!pull.understood) return pull_error(pull.understood.error().what, image, engine);
  return {};
}

}  // namespace

void DockerClient::inspect_image(const std::string& image, Then<DockerImage> then) {
  impl_->ask<DockerImage>(
      {.path = "/images/" + escaped_image(image) + "/json",
       .doing = "image " + quoted_name(image) + " cannot be looked at"},
      [](const http::Response& answer) { return read_image(answer.body); }, std::move(then));
}

std::shared_ptr<void> DockerClient::pull(const std::string& image, const RegistryAccess& access,
                                         std::function<void(const PullProgress&)> progress,
                                         Done done) {
  const ImageName name = parse_image_name(image);
  const auto pull = std::make_shared<PullUnderWay>();
  pull->told = PullStream(
      [weak = std::weak_ptr(pull), progress = std::move(progress)](const PullProgress& made) {
        const auto told = weak.lock();
        if (progress && told != nullptr && told->is_wanted()) progress(made);
      });
  const uint64_t call =
      impl_->ask({.method = "POST",
                  .path = "/images/create?fromImage=" + url_escaped(name.name) +
                          "&tag=" + url_escaped(name.tag),
                  .doing = {},
                  .headers = headers_of_pull(access),
                  .on_piece =
                      [pull](std::string_view bytes) {
                        pull->understood = pull->told.put(bytes);
                        return pull->understood.ok();
                      },
                  .limits = limits_of_pull(impl_->patience),
                  .refusal =
                      [image, engine = impl_->name](const http::Response& answer) {
                        return pull_error(read_words(answer.body).message, image, engine);
                      }},
                 Impl::Answered([pull, image, done = std::move(done),
                                 engine = impl_->name](const Result<http::Response>& answer) {
                   if (answer) return done(outcome(*pull, image, engine));
                   done(answer.error());
                 }));
  pull->is_wanted = impl_->is_open(call);
  return impl_->handle_of(call);
}

}  // namespace muster::engine
