// Networks and volumes: what containers share.
#include <utility>

#include "engine/container/docker_client_impl.h"
#include "engine/container/docker_json.h"

namespace muster::engine {

using base::ErrorCode;

namespace {

/// What is gone already is removed.
DockerClient::Done unless_gone(DockerClient::Done done) {
  return [done = std::move(done)](Result<void> result) {
    const bool is_gone = !result && result.error().code == ErrorCode::kNotFound;
    done(is_gone ? Result<void>() : std::move(result));
  };
}

Result<Named> with_labels(Result<Named> found, const std::vector<std::string>& labels) {
  if (found)
    std::erase_if(*found, [&](const auto& one) { return !has_labels(one.second, labels); });
  return found;
}

}  // namespace

void DockerClient::create_network(const std::string& name,
                                  const std::map<std::string, std::string>& labels,
                                  Then<std::string> then) {
  impl_->ask<std::string>(
      {.method = "POST",
       .path = "/networks/create",
       .doing = "network " + quoted_name(name) + " cannot be made",
       .body = network_body(name, labels)},
      [](const http::Response& answer) { return read_id(answer.body); }, std::move(then));
}

void DockerClient::remove_network(const std::string& name, Done done) {
  impl_->ask({.method = "DELETE",
              .path = "/networks/" + url_escaped(name),
              .doing = "network " + quoted_name(name) + " cannot be removed"},
             unless_gone(std::move(done)));
}

void DockerClient::networks(const std::vector<std::string>& labels, Then<Named> then) {
  impl_->ask<Named>(
      {.path = "/networks?filters=" + url_escaped(filters(labels)),
       .doing = "networks cannot be listed"},
      [labels](const http::Response& answer) {
        return with_labels(read_networks(answer.body), labels);
      },
      std::move(then));
}

void DockerClient::create_volume(const std::string& name,
                                 const std::map<std::string, std::string>& labels, Done done) {
  impl_->ask({.method = "POST",
              .path = "/volumes/create",
              .doing = "volume " + quoted_name(name) + " cannot be made",
              .body = volume_body(name, labels)},
             std::move(done));
}

void DockerClient::remove_volume(const std::string& name, Done done) {
  impl_->ask({.method = "DELETE",
              .path = "/volumes/" + url_escaped(name),
              .doing = "volume " + quoted_name(name) + " cannot be removed"},
             unless_gone(std::move(done)));
}

void DockerClient::volumes(const std::vector<std::string>& labels, Then<Named> then) {
  impl_->ask<Named>(
      {.path = "/volumes?filters=" + url_escaped(filters(labels)),
       .doing = "volumes cannot be listed"},
      [labels](const http::Response& answer) {
        return with_labels(read_volumes(answer.body), labels);
      },
      std::move(then));
}

}  // namespace muster::engine
