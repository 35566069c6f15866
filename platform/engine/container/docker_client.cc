#include "engine/container/docker_client.h"

#include <algorithm>
#include <utility>

#include "engine/container/docker_error.h"
#include "engine/container/docker_json.h"
#include "engine/container/docker_session.h"
#include "engine/container/docker_wire.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

DockerClient::DockerClient(base::EventLoop& loop, Endpoint endpoint, Patience patience)
    : session_(std::make_shared<DockerSession>(loop, std::move(endpoint), std::nullopt, patience)) {
}

DockerClient::DockerClient(base::EventLoop& loop, Endpoint endpoint, UnixEndpoint tunnel,
                           Patience patience)
    : session_(std::make_shared<DockerSession>(loop, std::move(endpoint), std::move(tunnel),
                                               patience)) {}

DockerClient::~DockerClient() {
  session_->close();
}

const Endpoint& DockerClient::endpoint() const {
  return session_->connection().endpoint();
}

void DockerClient::info(Then<DockerInfo> then) {
  session_->meet(std::move(then));
}

// --- networks and volumes

namespace {

/// Treats kNotFound as success.
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
  session_->ask<std::string>(
      {.method = "POST",
       .path = "/networks/create",
       .doing = "network " + quoted_name(name) + " cannot be created",
       .body = network_body(name, labels)},
      [](const http::Response& answer) { return read_id(answer.body); }, std::move(then));
}

void DockerClient::remove_network(const std::string& name, Done done) {
  session_->ask({.method = "DELETE",
                 .path = "/networks/" + url_escaped(name),
                 .doing = "network " + quoted_name(name) + " cannot be removed"},
                unless_gone(std::move(done)));
}

void DockerClient::networks(const std::vector<std::string>& labels, Then<Named> then) {
  session_->ask<Named>(
      {.path = "/networks?filters=" + url_escaped(filters(labels)),
       .doing = "networks cannot be listed"},
      [labels](const http::Response& answer) {
        return with_labels(read_networks(answer.body), labels);
      },
      std::move(then));
}

void DockerClient::create_volume(const std::string& name,
                                 const std::map<std::string, std::string>& labels, Done done) {
  session_->ask({.method = "POST",
                 .path = "/volumes/create",
                 .doing = "volume " + quoted_name(name) + " cannot be created",
                 .body = volume_body(name, labels)},
                std::move(done));
}

// Podman 4 also accepts the beginning of a name here, unless a volume has exactly this name: the
// second removal of "data" would remove "data2". Its GET requires the whole name.
void DockerClient::remove_volume(const std::string& name, Done done) {
  const DockerAsk look{.path = "/volumes/" + url_escaped(name),
                       .doing = "volume " + quoted_name(name) + " cannot be removed"};
  DockerAsk removal = look;
  removal.method = "DELETE";
  session_->ask(look, [session = session_.get(), removal = std::move(removal),
                       done = unless_gone(std::move(done))](Result<void> found) {
    if (!found) return done(std::move(found));
    session->ask(removal, done);
  });
}

void DockerClient::volumes(const std::vector<std::string>& labels, Then<Named> then) {
  session_->ask<Named>(
      {.path = "/volumes?filters=" + url_escaped(filters(labels)),
       .doing = "volumes cannot be listed"},
      [labels](const http::Response& answer) {
        return with_labels(read_volumes(answer.body), labels);
      },
      std::move(then));
}

// --- containers

namespace {

/// Prefix of Podman's own API. It accepts Docker's version in the path as one of its own.
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
                .doing = container(config.name, "created")};
  if (engine.is_podman && !config.gpus.empty()) {
    MUSTER_TRY(ask.body, libpod_create_body(config, engine));
    ask.path = std::string(kLibpod) + "/containers/create";
  } else {
    MUSTER_TRY(ask.body, create_body(config, engine));
  }
  return ask;
}

/// Whether another request, or an earlier one that timed out, is removing the container already.
bool is_being_removed(const Error& error) {
  return error.code == ErrorCode::kConflict &&
         error.what.find("already in progress") != std::string::npos;
}

}  // namespace

void DockerClient::create(const ContainerConfig& config, Then<std::string> then) {
  session_->ask_when_met(
      [config](const DockerInfo& engine) { return ask_to_create(config, engine); },
      [session = session_.get(), then = std::move(then)](Result<http::Response> answer) {
        if (!answer) return then(std::move(answer).error());
        auto id = read_id(answer->body);
        id ? then(std::move(id)) : then(session->connection().named(id.error()));
      });
}

void DockerClient::start(const std::string& id, Done done) {
  session_->ask(
      {.method = "POST", .path = container_path(id, "/start"), .doing = container(id, "started")},
      std::move(done));
}

void DockerClient::inspect(const std::string& id, Then<ContainerState> then) {
  session_->ask<ContainerState>(
      {.path = container_path(id, "/json"), .doing = container(id, "inspected")},
      [](const http::Response& answer) { return read_container(answer.body); }, std::move(then));
}

void DockerClient::list(const std::vector<std::string>& labels,
                        Then<std::vector<ContainerState>> then) {
  session_->ask<std::vector<ContainerState>>(
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
  session_->ask({.method = "POST",
                 .path = container_path(id, "/kill?signal=" + url_escaped(signal)),
                 .doing = container(id, "signalled")},
                std::move(done));
}

void DockerClient::remove(const std::string& id, Done done) {
  const auto removed = [session = session_.get(), id, done = std::move(done)](Result<void> result) {
    if (result || result.error().code == ErrorCode::kNotFound) return done({});
    if (!is_being_removed(result.error())) return done(std::move(result));
    session->ask({.method = "POST",
                  .path = container_path(id, "/wait?condition=removed"),
                  .doing = container(id, "waited for")},
                 [done](Result<void> waited) {
                   const bool is_gone = !waited && waited.error().code == ErrorCode::kNotFound;
                   done(is_gone ? Result<void>() : std::move(waited));
                 });
  };
  session_->ask({.method = "DELETE",
                 .path = container_path(id, "?force=1&v=1"),
                 .doing = container(id, "removed")},
                Done(removed));
}

// --- images

namespace {

/// Slashes are kept: engines expect them in the path of an image's name.
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

/// The head arrives only after the engine has contacted the registry.
http::AsyncLimits limits_of_pull(const Patience& patience) {
  return {.connect = patience.connect,
          .answer = std::max(patience.answer, patience.silence),
          .silence = patience.silence};
}

http::Headers headers_of_pull(const RegistryAccess& access) {
  if (access.username.empty() && access.password.empty()) return {};
  return {{"x-registry-auth", registry_auth(access)}};
}

/// The state of a pending pull.
struct PullUnderWay {
  PullStream stream = PullStream({});
  std::function<bool()> is_active = {};  ///< false after a callback has dropped the call
  Result<void> understood = {};
};

/// The result of a pull whose stream has ended.
Result<void> outcome(PullUnderWay& pull, const std::string& image, const std::string& engine) {
  if (pull.understood) pull.understood = pull.stream.put_end();
  if (!pull.stream.failure().empty()) return pull_error(pull.stream.failure(), image, engine);
  if (!pull.understood) return pull_error(pull.understood.error().what, image, engine);
  return {};
}

}  // namespace

void DockerClient::inspect_image(const std::string& image, Then<DockerImage> then) {
  session_->ask<DockerImage>(
      {.path = "/images/" + escaped_image(image) + "/json",
       .doing = "image " + quoted_name(image) + " cannot be inspected"},
      [](const http::Response& answer) { return read_image(answer.body); }, std::move(then));
}

std::shared_ptr<void> DockerClient::pull(const std::string& image, const RegistryAccess& access,
                                         std::function<void(const PullProgress&)> progress,
                                         Done done) {
  const ImageName name = parse_image_name(image);
  const auto pull = std::make_shared<PullUnderWay>();
  pull->stream = PullStream(
      [weak = std::weak_ptr(pull), progress = std::move(progress)](const PullProgress& made) {
        const auto self = weak.lock();
        if (progress && self != nullptr && self->is_active()) progress(made);
      });
  const uint64_t call = session_->ask(
      {.method = "POST",
       .path =
           "/images/create?fromImage=" + url_escaped(name.name) + "&tag=" + url_escaped(name.tag),
       .doing = {},
       .headers = headers_of_pull(access),
       .on_piece =
           [pull](std::string_view bytes) {
             pull->understood = pull->stream.put(bytes);
             return pull->understood.ok();
           },
       .limits = limits_of_pull(session_->connection().patience()),
       .refusal =
           [image, engine = session_->connection().name()](const http::Response& answer) {
             return pull_error(read_words(answer.body).message, image, engine);
           }},
      DockerSession::Answered(
          [pull, image, done = std::move(done),
           engine = session_->connection().name()](const Result<http::Response>& answer) {
            if (answer) return done(outcome(*pull, image, engine));
            done(answer.error());
          }));
  pull->is_active = session_->calls().watch(call);
  return session_->calls().handle_of(call);
}

// --- files

namespace {

std::string archive_path(const std::string& id, const std::string& path) {
  return "/containers/" + url_escaped(id) + "/archive?path=" + url_escaped(path);
}

DockerAsk ask_to_put(const std::string& id, const std::string& folder) {
  return {.method = "PUT",
          .path = archive_path(id, folder),
          .doing = "files cannot be copied to " + quoted_name(folder) + " of container " +
                   quoted_name(id),
          .content_type = "application/x-tar"};
}

}  // namespace

void DockerClient::put_archive(const std::string& id, const std::string& folder, std::string tar,
                               Done done) {
  DockerAsk ask = ask_to_put(id, folder);
  ask.body = std::move(tar);
  session_->ask(std::move(ask), std::move(done));
}

void DockerClient::put_archive(const std::string& id, const std::string& folder,
                               std::function<Result<std::string>()> next, Done done) {
  DockerAsk ask = ask_to_put(id, folder);
  ask.next_piece = std::move(next);
  session_->ask(std::move(ask), std::move(done));
}

std::shared_ptr<void> DockerClient::get_archive(const std::string& id, const std::string& path,
                                                std::function<void(std::string_view)> on_piece,
                                                Done then) {
  http::AsyncLimits limits = session_->connection().limits();
  limits.silence = session_->connection().patience().answer;
  const uint64_t call = session_->ask(
      {.path = archive_path(id, path),
       .doing = quoted_name(path) + " cannot be copied from container " + quoted_name(id),
       .on_piece =
           [on_piece = std::move(on_piece)](std::string_view bytes) {
             on_piece(bytes);
             return true;
           },
       .limits = limits},
      std::move(then));
  return session_->calls().handle_of(call);
}

void DockerClient::stat(const std::string& id, const std::string& path, Then<PathFacts> then) {
  session_->ask<PathFacts>(
      {.method = "HEAD",
       .path = archive_path(id, path),
       .doing = quoted_name(path) + " of container " + quoted_name(id) + " cannot be inspected"},
      [](const http::Response& answer) -> Result<PathFacts> {
        const auto found = answer.headers.find("x-docker-container-path-stat");
        if (found != answer.headers.end()) return read_path_facts(found->second);
        return Error{.code = ErrorCode::kInternal,
                     .what = "the engine's answer does not describe the requested file"};
      },
      std::move(then));
}

}  // namespace muster::engine
