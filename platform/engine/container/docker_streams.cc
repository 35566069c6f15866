// Output and input of containers and of commands in them.
#include <utility>

#include "base/log.h"
#include "engine/container/docker_client_impl.h"
#include "engine/container/docker_error.h"
#include "engine/container/docker_json.h"
#include "engine/container/stream_frames.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

/// Who hears what comes. Held by the connection, too, so that a handler may drop the stream.
struct Listener {
  DockerStream::Handlers handlers;
  bool terminal = false;
  FrameReader frames = {};
  bool is_over = false;

  void take(std::string_view bytes, const std::string& engine) {
    if (is_over) return;
    if (terminal) return handlers.on_output(bytes, false);
    const auto read = frames.put(bytes, [this](std::string_view part, bool is_error) {
      handlers.on_output(part, is_error);
      return !is_over;
    });
    if (read) return;
    base::log_warning("a stream is broken off", {{"engine", engine}, {"why", read.error().what}});
    end();
  }

  void end() {
    if (!std::exchange(is_over, true)) handlers.on_end();
  }

  void drained() const {
    if (!is_over && handlers.on_drain) handlers.on_drain();
  }
};

class Stream : public DockerStream {
 public:
  Stream(std::unique_ptr<http::RawStream> raw, std::shared_ptr<Listener> listener)
      : raw_(std::move(raw)), listener_(std::move(listener)) {}
  ~Stream() override { listener_->is_over = true; }

  void write(std::string_view bytes) override { raw_->write(bytes); }
  size_t waiting() const override { return raw_->waiting(); }
  void close_input() override { raw_->close_output(); }
  void pause(bool paused) override { raw_->pause(paused); }

 private:
  std::unique_ptr<http::RawStream> raw_;
  std::shared_ptr<Listener> listener_;
};

http::RawStream::Handlers handlers_of(const std::shared_ptr<Listener>& listener,
                                      const std::string& engine) {
  return {.on_bytes = [listener, engine](std::string_view bytes) { listener->take(bytes, engine); },
          .on_end = [listener] { listener->end(); },
          .on_drain = [listener] { listener->drained(); }};
}

/// What was asked for, where it is; else why not.
Result<std::unique_ptr<DockerStream>> stream_of(http::Upgraded upgraded,
                                                const std::shared_ptr<Listener>& listener,
                                                const std::string& doing,
                                                const std::string& engine) {
  if (upgraded.stream != nullptr) {
    return std::unique_ptr<DockerStream>(
        std::make_unique<Stream>(std::move(upgraded.stream), listener));
  }
  return error_of(upgraded.answer.status, upgraded.answer.body, doing, engine);
}

bool has_ended(const std::string& state) {
  return state == "exited" || state == "dead" || state == "removing";
}

}  // namespace

void DockerClient::Impl::ask_for_stream(DockerAsk ask, bool terminal,
                                        DockerStream::Handlers handlers,
                                        Then<std::unique_ptr<DockerStream>> then) {
  ask.headers["connection"] = "Upgrade";
  ask.headers["upgrade"] = "tcp";
  const auto listener =
      std::make_shared<Listener>(Listener{.handlers = std::move(handlers), .terminal = terminal});
  const auto go = [this, asked = std::make_shared<DockerAsk>(std::move(ask)), listener,
                   then](uint64_t call) {
    const auto done = [this, call, listener, then,
                       doing = asked->doing](Result<http::Upgraded> upgraded) {
      const auto self = shared_from_this();  // `then` may end the client
      drop(call);
      if (!upgraded) return then(unreachable(std::move(upgraded).error()));
      then(stream_of(*std::move(upgraded), listener, doing, name));
    };
    auto connected = client();
    if (!connected) return fail_soon(call, connected.error(), then);
    calls[call] = (*connected)
                      ->upgrade(request_for(*asked, "/v" + engine->api_version), usual_limits(),
                                handlers_of(listener, name), done);
  };
  when_met(go, then);
}

void DockerClient::attach(const std::string& id, bool terminal, DockerStream::Handlers handlers,
                          Then<std::unique_ptr<DockerStream>> then) {
  const std::string doing = "container " + quoted_name(id) + " cannot be attached to";
  const auto attach = [impl = impl_.get(), id, doing, terminal, handlers = std::move(handlers),
                       then] {
    impl->ask_for_stream(
        {.method = "POST",
         .path = "/containers/" + url_escaped(id) + "/attach?stream=1&stdin=1&stdout=1&stderr=1",
         .doing = doing},
        terminal, handlers, then);
  };
  // Docker lets one wait for ever at a container that has ended; Podman makes it anew.
  inspect(id, [impl = impl_.get(), doing, attach, then](const Result<ContainerState>& state) {
    if (!state) return then(state.error());
    if (!has_ended(state->state)) return attach();
    then(
        Error{.code = ErrorCode::kConflict, .what = doing + ": it has ended (" + impl->name + ")"});
  });
}

void DockerClient::create_exec(const std::string& id, const DockerExec& exec,
                               Then<std::string> then) {
  auto body = exec_body(exec);
  if (!body) {
    impl_->loop.post([weak = std::weak_ptr(impl_), then, error = body.error()] {
      const auto impl = weak.lock();
      if (impl != nullptr && !impl->closed) then(error);
    });
    return;
  }
  impl_->ask<std::string>(
      {.method = "POST",
       .path = "/containers/" + url_escaped(id) + "/exec",
       .doing = "no command can be run in container " + quoted_name(id),
       .body = *std::move(body)},
      [](const http::Response& answer) { return read_id(answer.body); }, std::move(then));
}

void DockerClient::start_exec(const std::string& exec_id, bool terminal,
                              DockerStream::Handlers handlers,
                              Then<std::unique_ptr<DockerStream>> then) {
  impl_->ask_for_stream({.method = "POST",
                         .path = "/exec/" + url_escaped(exec_id) + "/start",
                         .doing = "the command cannot be started",
                         .body = exec_start_body(terminal)},
                        terminal, std::move(handlers), std::move(then));
}

void DockerClient::resize_exec(const std::string& exec_id, int rows, int columns, Done done) {
  impl_->ask({.method = "POST",
              .path = "/exec/" + url_escaped(exec_id) + "/resize?h=" + std::to_string(rows) +
                      "&w=" + std::to_string(columns),
              .doing = "the terminal cannot be resized"},
             std::move(done));
}

void DockerClient::inspect_exec(const std::string& exec_id, Then<DockerExit> then) {
  impl_->ask<DockerExit>(
      {.path = "/exec/" + url_escaped(exec_id) + "/json",
       .doing = "how the command ended is not known"},
      [](const http::Response& answer) { return read_exec(answer.body); }, std::move(then));
}

}  // namespace muster::engine
