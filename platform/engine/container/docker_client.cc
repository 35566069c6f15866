#include "engine/container/docker_client.h"

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "engine/container/api_version.h"
#include "engine/container/docker_client_impl.h"
#include "engine/container/docker_error.h"
#include "engine/container/docker_json.h"
#include "http/tls_context.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

std::string header(const http::Response& answer, const std::string& name) {
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? "" : found->second;
}

constexpr int kNotModified = 304;

bool is_done(int status) {
  return (status >= 200 && status < 300) || status == kNotModified;
}

/// A certificate's file; the key's is as small.
constexpr size_t kLongestPem = 1 << 20;

}  // namespace

std::string url_escaped(const std::string& text) {
  return http::url_encoded(text);
}

bool has_labels(const std::map<std::string, std::string>& labels,
                const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& one) {
    const size_t end = one.find('=');
    const auto found = labels.find(one.substr(0, end));
    return found != labels.end() &&
           (end == std::string::npos || found->second == one.substr(end + 1));
  });
}

std::string quoted_name(const std::string& name) {
  return "'" + base::shortened(base::as_utf8(name), 200) + "'";
}

DockerClient::Impl::Impl(base::EventLoop& its_loop, Endpoint its_endpoint,
                         std::optional<UnixEndpoint> its_tunnel, Patience its_patience)
    : loop(its_loop),
      endpoint(std::move(its_endpoint)),
      tunnel(std::move(its_tunnel)),
      patience(its_patience),
      name("the engine at " + to_string(endpoint)) {}

// --- where it is ---

Result<http::AsyncPlace> DockerClient::Impl::place() const {
  if (tunnel) return http::AsyncPlace(tunnel->socket);
  if (const auto* unix_socket = std::get_if<UnixEndpoint>(&endpoint)) {
    return http::AsyncPlace(unix_socket->socket);
  }
  const auto* tls = std::get_if<TlsEndpointOfHost>(&endpoint);
  if (tls == nullptr) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = name + " is reached by way of a tunnel, and there is none"};
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

Result<http::AsyncClient*> DockerClient::Impl::client() {
  if (!connection) {
    auto where = place();
    if (!where) {
      Error error = std::move(where).error();
      error.what = name + " cannot be spoken to: " + error.what;
      return error;
    }
    connection.emplace(loop, *std::move(where), name);
  }
  return &*connection;
}

/// What was answered cannot be understood: by which engine.
Error DockerClient::Impl::named(Error error) const {
  error.what += " (" + name + ")";
  return error;
}

/// The next call reads the certificates anew: they may have been the reason.
Error DockerClient::Impl::unreachable(Error error) {
  connection.reset();
  const bool is_socket = std::holds_alternative<UnixEndpoint>(endpoint);
  if (is_socket && error.code == ErrorCode::kRefused && error.advice.empty()) {
    error.advice = "let this account use the socket: its group may (often 'docker')";
  }
  return error;
}

// --- asking ---

http::AsyncLimits DockerClient::Impl::usual_limits() const {
  return {.connect = patience.connect, .answer = patience.answer};
}

http::AsyncRequest DockerClient::Impl::request_for(DockerAsk& ask,
                                                   const std::string& version) const {
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

uint64_t DockerClient::Impl::when_met(std::function<void(uint64_t)> go,
                                      std::function<void(Error)> failed) {
  const uint64_t call = ++last_call;
  calls.try_emplace(call);
  if (engine) {
    go(call);
    return call;
  }
  meet(
      [this, call, go = std::move(go), failed = std::move(failed)](const Result<DockerInfo>& info) {
        if (!calls.contains(call)) return;
        if (info) return go(call);
        drop(call);
        failed(info.error());
      });
  return call;
}

uint64_t DockerClient::Impl::ask(DockerAsk ask, Answered answered) {
  const auto failed = [answered](Error error) { answered(std::move(error)); };
  const auto go = [this, asked = std::make_shared<DockerAsk>(std::move(ask)),
                   answered](uint64_t call) {
    const auto done = [this, call, answered, asked](Result<http::Response> answer) {
      const auto self = shared_from_this();  // `answered` may end the client
      drop(call);
      if (!answer) return answered(unreachable(std::move(answer).error()));
      if (is_done(answer->status)) return answered(std::move(answer));
      if (asked->refusal) return answered(asked->refusal(*answer));
      answered(error_of(answer->status, answer->body, asked->doing, name));
    };
    auto connected = client();
    if (!connected) return fail_soon(call, connected.error(), answered);
    calls[call] = (*connected)
                      ->stream(request_for(*asked, "/v" + engine->api_version),
                               asked->limits.value_or(usual_limits()), std::move(asked->on_piece),
                               done, std::move(asked->on_head));
  };
  return when_met(go, failed);
}

void DockerClient::Impl::fail_soon(uint64_t call, Error error, std::function<void(Error)> failed) {
  loop.post([weak = weak_from_this(), call, error = std::move(error), failed = std::move(failed)] {
    const auto self = weak.lock();
    if (self == nullptr || !self->calls.contains(call)) return;
    self->drop(call);
    failed(error);
  });
}

uint64_t DockerClient::Impl::ask(DockerAsk what, Done done) {
  return ask(std::move(what), Answered([done = std::move(done)](Result<http::Response> answer) {
               answer ? done({}) : done(std::move(answer).error());
             }));
}

std::function<bool()> DockerClient::Impl::is_open(uint64_t call) {
  return [weak = weak_from_this(), call] {
    const auto self = weak.lock();
    return self != nullptr && self->calls.contains(call);
  };
}

std::shared_ptr<void> DockerClient::Impl::handle_of(uint64_t call) {
  return {nullptr, [weak = weak_from_this(), call](void*) {
            if (const auto self = weak.lock()) self->drop(call);
          }};
}

/// What goes with it may drop others.
void DockerClient::Impl::drop(uint64_t call) {
  const auto dropped = calls.extract(call);
}

void DockerClient::Impl::close() {
  closed = true;
  const auto dropped_calls = std::exchange(calls, {});
  const auto dropped_meeting = std::exchange(meeting, {});
}

// --- the first words ---

void DockerClient::Impl::meet(Then<DockerInfo> then) {
  meeting.push_back(std::move(then));
  if (meeting.size() > 1) return;
  // Not /version: Podman asks the system's packages about itself for it, which takes a second.
  send_meeting("/_ping", "", [this](const http::Response& answer) {
    auto version = choose_api_version(header(answer, "api-version"));
    if (!version) {
      Error error = std::move(version).error();
      error.what = name + " cannot be used: " + error.what;
      return met(std::move(error));
    }
    DockerInfo known{.api_version = *std::move(version),
                     .is_podman = answer.headers.contains("libpod-api-version")};
    const std::string prefix = "/v" + known.api_version;
    send_meeting("/info", prefix, [this, known](const http::Response& told) {
      DockerInfo info = known;
      const auto read = read_info(told.body, info);
      read ? met(std::move(info)) : met(named(read.error()));
    });
  });
}

void DockerClient::Impl::send_meeting(const std::string& path, const std::string& version,
                                      std::function<void(const http::Response&)> then) {
  const uint64_t call = ++last_call;
  calls.try_emplace(call);
  const auto answered = [this, call, then = std::move(then)](Result<http::Response> answer) {
    const auto self = shared_from_this();
    drop(call);
    if (!answer) return met(unreachable(std::move(answer).error()));
    if (is_done(answer->status)) return then(*answer);
    met(error_of(answer->status, answer->body, "what it is cannot be asked for", name));
  };
  auto connected = client();
  if (!connected) {
    return fail_soon(call, connected.error(), [this](const Error& error) { met(error); });
  }
  DockerAsk asked{.path = path, .doing = {}};
  calls[call] = (*connected)->send(request_for(asked, version), usual_limits(), answered);
}

void DockerClient::Impl::met(Result<DockerInfo> info) {
  const auto self = shared_from_this();
  if (info) engine = *info;
  for (const auto& then : std::exchange(meeting, {})) {
    if (!closed) then(info);
  }
}

// --- the client ---

DockerClient::DockerClient(base::EventLoop& loop, Endpoint endpoint, Patience patience)
    : impl_(std::make_shared<Impl>(loop, std::move(endpoint), std::nullopt, patience)) {}

DockerClient::DockerClient(base::EventLoop& loop, Endpoint endpoint, UnixEndpoint tunnel,
                           Patience patience)
    : impl_(std::make_shared<Impl>(loop, std::move(endpoint), std::move(tunnel), patience)) {}

DockerClient::~DockerClient() {
  impl_->close();
}

const Endpoint& DockerClient::endpoint() const {
  return impl_->endpoint;
}

void DockerClient::info(Then<DockerInfo> then) {
  impl_->meet(std::move(then));
}

}  // namespace muster::engine
