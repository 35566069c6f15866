#include "engine/container/docker_session.h"

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "engine/container/docker_error.h"
#include "engine/container/docker_json.h"
#include "engine/container/docker_wire.h"
#include "http/tls.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

std::string header(const http::Response& answer, const std::string& name) {
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? "" : found->second;
}

/// The answer if the requested state exists already; not an error.
constexpr int kNotModified = 304;

bool is_done(int status) {
  return (status >= 200 && status < 300) || status == kNotModified;
}

/// The limit for the files of certificates and keys.
constexpr size_t kLongestPem = 1 << 20;

}  // namespace

std::string url_escaped(const std::string& text) {
  return http::url_encoded(text);
}

bool has_labels(const std::map<std::string, std::string>& labels,
                const std::vector<std::string>& required) {
  return std::all_of(required.begin(), required.end(), [&](const std::string& one) {
    const size_t end = one.find('=');
    const auto found = labels.find(one.substr(0, end));
    return found != labels.end() &&
           (end == std::string::npos || found->second == one.substr(end + 1));
  });
}

std::string quoted_name(const std::string& name) {
  return "'" + base::shortened(base::as_utf8(name), 200) + "'";
}

http::AsyncRequest request_for(DockerAsk& ask, const std::string& version) {
  http::AsyncRequest request{.method = std::move(ask.method),
                             .target = version + ask.path,
                             .headers = std::move(ask.headers),
                             .body = std::move(ask.body),
                             .next_piece = std::move(ask.next_piece)};
  if (!request.body.empty() || request.next_piece) {
    request.headers["content-type"] = std::move(ask.content_type);
  }
  return request;
}

// --- the connection

EngineConnection::EngineConnection(base::EventLoop& loop, Endpoint endpoint,
                                   std::optional<UnixEndpoint> tunnel, Patience patience)
    : loop_(loop),
      endpoint_(std::move(endpoint)),
      tunnel_(std::move(tunnel)),
      patience_(patience),
      name_("the engine at " + to_string(endpoint_)) {}

http::AsyncLimits EngineConnection::limits() const {
  return {.connect = patience_.connect, .answer = patience_.answer};
}

Result<http::AsyncPlace> EngineConnection::place() const {
  if (tunnel_) return http::AsyncPlace(tunnel_->socket);
  if (const auto* unix_socket = std::get_if<UnixEndpoint>(&endpoint_)) {
    return http::AsyncPlace(unix_socket->socket);
  }
  const auto* tls = std::get_if<TlsEndpointOfHost>(&endpoint_);
  if (tls == nullptr) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = name_ + " is reached through a tunnel, which is not open"};
  }
  MUSTER_TRY(std::string authorities, base::read_file(tls->certificates / "ca.pem", kLongestPem));
  MUSTER_TRY(std::string certificate, base::read_file(tls->certificates / "cert.pem", kLongestPem));
  MUSTER_TRY(std::string key, base::read_file(tls->certificates / "key.pem", kLongestPem));
  MUSTER_TRY(http::TlsContext context,
             http::client_context({.host = tls->host,
                                   .port = tls->port,
                                   .fingerprint = {},
                                   .authorities = std::move(authorities)},
                                  {.certificate = std::move(certificate), .key = std::move(key)}));
  return http::AsyncPlace(
      http::TlsPlace{.host = tls->host, .port = tls->port, .context = std::move(context)});
}

Result<http::AsyncClient*> EngineConnection::client() {
  if (!client_) {
    auto where = place();
    if (!where) {
      Error error = std::move(where).error();
      error.what = "cannot connect to " + name_ + ": " + error.what;
      return error;
    }
    client_.emplace(loop_, *std::move(where), name_);
  }
  return &*client_;
}

Error EngineConnection::named(Error error) const {
  error.what += " (" + name_ + ")";
  return error;
}

Error EngineConnection::failed(Error error) {
  client_.reset();
  const bool is_socket = std::holds_alternative<UnixEndpoint>(endpoint_);
  if (is_socket && error.code == ErrorCode::kRefused && error.advice.empty()) {
    error.advice =
        "give this account access to the socket: add it to the socket's group (often 'docker')";
  }
  return error;
}

// --- pending calls

uint64_t PendingCalls::open() {
  calls_.try_emplace(++last_);
  return last_;
}

void PendingCalls::set(uint64_t call, http::AsyncCall request) {
  calls_[call] = std::move(request);
}

std::function<bool()> PendingCalls::watch(uint64_t call) {
  return [weak = weak_from_this(), call] {
    const auto self = weak.lock();
    return self != nullptr && self->contains(call);
  };
}

std::shared_ptr<void> PendingCalls::handle_of(uint64_t call) {
  return {nullptr, [weak = weak_from_this(), call](void*) {
            if (const auto self = weak.lock()) self->drop(call);
          }};
}

/// The request is destroyed after it has left the map, because its callbacks may drop other calls.
void PendingCalls::drop(uint64_t call) {
  const auto dropped = calls_.extract(call);
}

void PendingCalls::drop_all() {
  const auto dropped = std::exchange(calls_, {});
}

// --- requests

DockerSession::DockerSession(base::EventLoop& loop, Endpoint endpoint,
                             std::optional<UnixEndpoint> tunnel, Patience patience)
    : loop_(loop), connection_(loop, std::move(endpoint), std::move(tunnel), patience) {}

uint64_t DockerSession::when_met(std::function<void(uint64_t)> go,
                                 std::function<void(Error)> failed) {
  const uint64_t call = calls_->open();
  if (engine_) {
    go(call);
    return call;
  }
  meet(
      [this, call, go = std::move(go), failed = std::move(failed)](const Result<DockerInfo>& info) {
        if (!calls_->contains(call)) return;
        if (info) return go(call);
        calls_->drop(call);
        failed(info.error());
      });
  return call;
}

uint64_t DockerSession::ask(DockerAsk ask, Answered answered) {
  const auto failed = [answered](Error error) { answered(std::move(error)); };
  const auto go = [this, asked = std::make_shared<DockerAsk>(std::move(ask)),
                   answered](uint64_t call) {
    const auto done = [this, call, answered, asked](Result<http::Response> answer) {
      const auto self = shared_from_this();  // `answered` may end the client
      calls_->drop(call);
      if (!answer) return answered(connection_.failed(std::move(answer).error()));
      if (is_done(answer->status)) return answered(std::move(answer));
      if (asked->refusal) return answered(asked->refusal(*answer));
      answered(error_of(answer->status, answer->body, asked->doing, connection_.name()));
    };
    auto client = connection_.client();
    if (!client) return fail_soon(call, client.error(), answered);
    calls_->set(call,
                (*client)->stream(request_for(*asked, "/v" + engine_->api_version),
                                  asked->limits.value_or(connection_.limits()),
                                  std::move(asked->on_piece), done, std::move(asked->on_head)));
  };
  return when_met(go, failed);
}

void DockerSession::ask_when_met(std::function<Result<DockerAsk>(const DockerInfo&)> make,
                                 Answered answered) {
  const auto go = [this, make = std::move(make), answered](uint64_t call) {
    auto made = make(*engine_);
    if (!made) return fail_soon(call, made.error(), answered);
    calls_->drop(call);
    ask(*std::move(made), answered);
  };
  when_met(go, answered);
}

void DockerSession::fail_soon(uint64_t call, Error error, std::function<void(Error)> failed) {
  loop_.post([weak = weak_from_this(), call, error = std::move(error), failed = std::move(failed)] {
    const auto self = weak.lock();
    if (self == nullptr || !self->calls_->contains(call)) return;
    self->calls_->drop(call);
    failed(error);
  });
}

void DockerSession::fail_later(Error error, std::function<void(Error)> failed) {
  fail_soon(calls_->open(), std::move(error), std::move(failed));
}

uint64_t DockerSession::ask(DockerAsk what, Done done) {
  return ask(std::move(what), Answered([done = std::move(done)](Result<http::Response> answer) {
               answer ? done({}) : done(std::move(answer).error());
             }));
}

void DockerSession::close() {
  closed_ = true;
  calls_->drop_all();
  const auto dropped = std::exchange(meeting_, {});
}

// --- meeting the engine

void DockerSession::meet(Then<DockerInfo> then) {
  meeting_.push_back(std::move(then));
  if (meeting_.size() > 1) return;
  // Not /version: for that Podman queries the system's package manager, which takes a second.
  send_meeting("/_ping", "", [this](const http::Response& answer) {
    auto version = choose_api_version(header(answer, "api-version"));
    if (!version) {
      Error error = std::move(version).error();
      error.what = connection_.name() + " cannot be used: " + error.what;
      return met(std::move(error));
    }
    DockerInfo known{.api_version = *std::move(version),
                     .is_podman = answer.headers.contains("libpod-api-version")};
    const std::string prefix = "/v" + known.api_version;
    send_meeting("/info", prefix, [this, known](const http::Response& reply) {
      DockerInfo info = known;
      const auto read = read_info(reply.body, info);
      read ? met(std::move(info)) : met(connection_.named(read.error()));
    });
  });
}

void DockerSession::send_meeting(const std::string& path, const std::string& version,
                                 std::function<void(const http::Response&)> then) {
  const uint64_t call = calls_->open();
  const auto answered = [this, call, then = std::move(then)](Result<http::Response> answer) {
    const auto self = shared_from_this();
    calls_->drop(call);
    if (!answer) return met(connection_.failed(std::move(answer).error()));
    if (is_done(answer->status)) return then(*answer);
    met(error_of(answer->status, answer->body, "its version cannot be read", connection_.name()));
  };
  auto client = connection_.client();
  if (!client) {
    return fail_soon(call, client.error(), [this](const Error& error) { met(error); });
  }
  DockerAsk asked{.path = path, .doing = {}};
  calls_->set(call, (*client)->send(request_for(asked, version), connection_.limits(), answered));
}

void DockerSession::met(Result<DockerInfo> info) {
  const auto self = shared_from_this();
  if (info) engine_ = *info;
  for (const auto& then : std::exchange(meeting_, {})) {
    if (!closed_) then(info);
  }
}

}  // namespace muster::engine
