// DockerClient's endless answers: output and input of containers and commands, and events.
#include <utility>

#include "base/log.h"
#include "engine/container/docker_error.h"
#include "engine/container/docker_json.h"
#include "engine/container/docker_session.h"
#include "engine/container/docker_wire.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

/// The receiver of a stream's output. The connection holds it too, so a handler may drop the
/// stream.
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
    base::log_warning("a stream is aborted", {{"engine", engine}, {"why", read.error().what}});
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

/// The stream, or the error of the refusal.
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

void DockerSession::ask_for_stream(DockerAsk ask, bool terminal, DockerStream::Handlers handlers,
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
      calls_->drop(call);
      if (!upgraded) return then(connection_.failed(std::move(upgraded).error()));
      then(stream_of(*std::move(upgraded), listener, doing, connection_.name()));
    };
    auto client = connection_.client();
    if (!client) return fail_soon(call, client.error(), then);
    calls_->set(call, (*client)->upgrade(request_for(*asked, "/v" + engine_->api_version),
                                         connection_.limits(),
                                         handlers_of(listener, connection_.name()), done));
  };
  when_met(go, then);
}

void DockerClient::attach(const std::string& id, bool terminal, DockerStream::Handlers handlers,
                          Then<std::unique_ptr<DockerStream>> then) {
  const std::string doing = "container " + quoted_name(id) + " cannot be attached";
  const auto attach = [session = session_.get(), id, doing, terminal,
                       handlers = std::move(handlers), then] {
    session->ask_for_stream(
        {.method = "POST",
         .path = "/containers/" + url_escaped(id) + "/attach?stream=1&stdin=1&stdout=1&stderr=1",
         .doing = doing},
        terminal, handlers, then);
  };
  // Attaching to an ended container waits forever with Docker, and restarts it with Podman.
  inspect(id, [session = session_.get(), doing, attach, then](const Result<ContainerState>& state) {
    if (!state) return then(state.error());
    if (!has_ended(state->state)) return attach();
    then(Error{.code = ErrorCode::kConflict,
               .what = doing + ": it has ended (" + session->connection().name() + ")"});
  });
}

void DockerClient::create_exec(const std::string& id, const DockerExec& exec,
                               Then<std::string> then) {
  auto body = exec_body(exec);
  if (!body) {
    session_->fail_later(body.error(), then);
    return;
  }
  session_->ask<std::string>(
      {.method = "POST",
       .path = "/containers/" + url_escaped(id) + "/exec",
       .doing = "cannot run a command in container " + quoted_name(id),
       .body = *std::move(body)},
      [](const http::Response& answer) { return read_id(answer.body); }, std::move(then));
}

void DockerClient::start_exec(const std::string& exec_id, bool terminal,
                              DockerStream::Handlers handlers,
                              Then<std::unique_ptr<DockerStream>> then) {
  session_->ask_for_stream({.method = "POST",
                            .path = "/exec/" + url_escaped(exec_id) + "/start",
                            .doing = "the command cannot be started",
                            .body = exec_start_body(terminal)},
                           terminal, std::move(handlers), std::move(then));
}

void DockerClient::resize_exec(const std::string& exec_id, int rows, int columns, Done done) {
  session_->ask({.method = "POST",
                 .path = "/exec/" + url_escaped(exec_id) + "/resize?h=" + std::to_string(rows) +
                         "&w=" + std::to_string(columns),
                 .doing = "the terminal cannot be resized"},
                std::move(done));
}

void DockerClient::inspect_exec(const std::string& exec_id, Then<DockerExit> then) {
  session_->ask<DockerExit>(
      {.path = "/exec/" + url_escaped(exec_id) + "/json",
       .doing = "the exit code of the command cannot be read"},
      [](const http::Response& answer) { return read_exec(answer.body); }, std::move(then));
}

// --- events

namespace {

/// A pending stream of events.
struct PendingEvents {
  std::function<void(const DockerEvent&)> on_event;
  std::string engine;
  std::function<bool()> is_active = {};  ///< false after a callback has dropped the call
  JsonLines lines = {};
  Result<void> understood = {};

  /// False: the bytes cannot be parsed.
  bool take(std::string_view bytes) {
    Result<void> read;
    const auto put = lines.put(bytes, [&](std::string_view line) {
      const auto event = read_event(line);
      if (!event) {
        read = event.error();
        return false;
      }
      on_event(*event);
      return is_active();
    });
    understood = read ? put : read;
    return understood.ok();
  }
};

Error ended(const PendingEvents& pending) {
  if (!pending.understood) {
    return {.code = ErrorCode::kInternal,
            .what = pending.engine +
                    " sent an event that cannot be parsed: " + pending.understood.error().what};
  }
  return {.code = ErrorCode::kUnavailable,
          .what = pending.engine + " has ended the stream of events"};
}

/// The parameter "since", by the engine's clock, which may differ from ours. Podman answers before
/// it subscribes to its own events; only with "since" is no event lost.
std::string since(const http::Response& pinged) {
  const auto date = pinged.headers.find("date");
  if (date == pinged.headers.end()) return "";
  const auto now = parse_http_date(date->second);
  return now ? "&since=" + std::to_string(*now) : "";
}

}  // namespace

std::shared_ptr<void> DockerClient::events(const std::vector<std::string>& labels,
                                           std::function<void(const DockerEvent&)> on_event,
                                           std::function<void(base::Error)> broken,
                                           std::function<void()> open) {
  const auto pending = std::make_shared<PendingEvents>(
      PendingEvents{.on_event = std::move(on_event), .engine = session_->connection().name()});
  const auto call = std::make_shared<uint64_t>();
  const auto listen = [session = session_.get(), labels, pending, broken, open,
                       call](const Result<http::Response>& pinged) {
    if (!pinged) return broken(pinged.error());
    *call = session->ask(
        {.path = "/events?filters=" + url_escaped(filters(labels, {"container"})) + since(*pinged),
         .doing = "events of containers cannot be received",
         .on_piece = [pending](std::string_view bytes) { return pending->take(bytes); },
         .on_head = open},
        DockerSession::Answered([pending, broken](const Result<http::Response>& answer) {
          broken(answer ? ended(*pending) : answer.error());
        }));
    pending->is_active = session->calls().watch(*call);
  };
  *call = session_->ask({.path = "/_ping", .doing = "events of containers cannot be received"},
                        DockerSession::Answered(listen));
  return {nullptr, [weak = std::weak_ptr(session_), call](void*) {
            if (const auto session = weak.lock()) session->calls().drop(*call);
          }};
}

}  // namespace muster::engine
