// Files into containers and out of them.
#include <utility>

#include "engine/container/docker_client_impl.h"
#include "engine/container/docker_json.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

std::string archive_path(const std::string& id, const std::string& path) {
  return "/containers/" + url_escaped(id) + "/archive?path=" + url_escaped(path);
}

DockerAsk ask_to_put(const std::string& id, const std::string& folder) {
  return {.method = "PUT",
          .path = archive_path(id, folder),
          .doing = "files cannot be put into " + quoted_name(folder) + " of container " +
                   quoted_name(id),
          .content_type = "application/x-tar"};
}

}  // namespace

void DockerClient::put_archive(const std::string& id, const std::string& folder, std::string tar,
                               Done done) {
  DockerAsk ask = ask_to_put(id, folder);
  ask.body = std::move(tar);
  impl_->ask(std::move(ask), std::move(done));
}

void DockerClient::put_archive(const std::string& id, const std::string& folder,
                               std::function<Result<std::string>()> next, Done done) {
  DockerAsk ask = ask_to_put(id, folder);
  ask.next_piece = std::move(next);
  impl_->ask(std::move(ask), std::move(done));
}

std::shared_ptr<void> DockerClient::get_archive(const std::string& id, const std::string& path,
                                                std::function<void(std::string_view)> on_piece,
                                                Done then) {
  http::AsyncLimits limits = impl_->usual_limits();
  limits.silence = impl_->patience.answer;
  const uint64_t call = impl_->ask(
      {.path = archive_path(id, path),
       .doing = quoted_name(path) + " cannot be fetched from container " + quoted_name(id),
       .on_piece =
           [on_piece = std::move(on_piece)](std::string_view bytes) {
             on_piece(bytes);
             return true;
           },
       .limits = limits},
      std::move(then));
  return impl_->handle_of(call);
}

void DockerClient::stat(const std::string& id, const std::string& path, Then<PathFacts> then) {
  impl_->ask<PathFacts>(
      {.method = "HEAD",
       .path = archive_path(id, path),
       .doing = quoted_name(path) + " of container " + quoted_name(id) + " cannot be looked at"},
      [](const http::Response& answer) -> Result<PathFacts> {
        const auto found = answer.headers.find("x-docker-container-path-stat");
        if (found != answer.headers.end()) return read_path_facts(found->second);
        return Error{.code = ErrorCode::kInternal,
                     .what = "the engine says nothing of the file that it was asked for"};
      },
      std::move(then));
}

}  // namespace muster::engine
