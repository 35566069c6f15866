// Containers: made, started, looked at, ended, removed.
#include <algorithm>
#include <utility>

#include "engine/container/docker_client_impl.h"
#include "engine/container/docker_json.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

/// Podman's own API. It takes the version of the other in the path for one of its own.
constexpr const char* kLibpod = "/libpod";

std::string container_path(const std::string& id, const std::string& what) {
  return "/containers/" + url_escaped(id) + what;
}

std::string container(const std::string& id, const std::string& cannot) {
  return "container " + quoted_name(id) + " cannot be " + cannot;
}

Result<DockerAsk> ask_to_create(const ContainerConfig& config, const DockerInfo& engine) {
  DockerAsk ask{.method = "POST",
                .path = "/containers/create?name=" + url_escaped(config.name),
                .doing = container(config.name, "made")};
  if (engine.is_podman && !config.gpus.empty()) {
    MUSTER_TRY(ask.body, libpod_create_body(config, engine));
    ask.path = std::string(kLibpod) + "/containers/create";
  } else {
    MUSTER_TRY(ask.body, create_body(config, engine));
  }
  return ask;
}

/// Somebody else has asked for the same, or an earlier attempt of ours that was given up.
bool is_being_removed(const Error& error) {
  return error.code == ErrorCode::kConflict &&
         error.what.find("already in progress") != std::string::npos;
}

}  // namespace

void DockerClient::create(const ContainerConfig& config, Then<std::string> then) {
  impl_->when_met(
      [impl = impl_.get(), config, then](uint64_t call) {
        auto ask = ask_to_create(config, *impl->engine);
        if (!ask) return impl->fail_soon(call, ask.error(), then);
        impl->drop(call);
        impl->ask<std::string>(
            *std::move(ask), [](const http::Response& answer) { return read_id(answer.body); },
            then);
      },
      then);
}

void DockerClient::start(const std::string& id, Done done) {
  impl_->ask(
      {.method = "POST", .path = container_path(id, "/start"), .doing = container(id, "started")},
      std::move(done));
}

void DockerClient::inspect(const std::string& id, Then<ContainerState> then) {
  impl_->ask<ContainerState>(
      {.path = container_path(id, "/json"), .doing = container(id, "looked at")},
      [](const http::Response& answer) { return read_container(answer.body); }, std::move(then));
}

void DockerClient::list(const std::vector<std::string>& labels,
                        Then<std::vector<ContainerState>> then) {
  impl_->ask<std::vector<ContainerState>>(
      {.path = "/containers/json?all=1&filters=" + url_escaped(filters(labels)),
       .doing = "containers cannot be listed"},
      [labels](const http::Response& answer) {
        auto found = read_containers(answer.body);
        if (found) {
          std::erase_if(*found, [&](const auto& one) { return !has_labels(one.labels, labels); });
        }
        return found;
      },
      std::move(then));
}

void DockerClient::kill(const std::string& id, const std::string& signal, Done done) {
  impl_->ask({.method = "POST",
              .path = container_path(id, "/kill?signal=" + url_escaped(signal)),
              .doing = container(id, "sent a signal")},
             std::move(done));
}

void DockerClient::remove(const std::string& id, Done done) {
  const auto removed = [impl = impl_.get(), id, done = std::move(done)](Result<void> result) {
    if (result || result.error().code == ErrorCode::kNotFound) return done({});
    if (!is_being_removed(result.error())) return done(std::move(result));
    impl->ask({.method = "POST",
               .path = container_path(id, "/wait?condition=removed"),
               .doing = container(id, "waited for")},
              [done](Result<void> waited) {
                const bool is_gone = !waited && waited.error().code == ErrorCode::kNotFound;
                done(is_gone ? Result<void>() : std::move(waited));
              });
  };
  impl_->ask({.method = "DELETE",
              .path = container_path(id, "?force=1&v=1"),
              .doing = container(id, "removed")},
             Done(removed));
}

}  // namespace muster::engine
