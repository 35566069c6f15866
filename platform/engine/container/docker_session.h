// The requests below DockerClient: where the engine is, which version of the API it uses, and the
// calls that are pending.
//
// On the loop's thread. Only docker_*.cc include this header.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/container/docker_client.h"
#include "http/async_client.h"

namespace muster::engine {

/// One request to an engine.
struct DockerAsk {
  std::string method = "GET";
  std::string path;   ///< percent-encoded, without the version
  std::string doing;  ///< for errors: "container 'x' cannot be started"
  std::string body = {};
  std::string content_type = "application/json";
  http::Headers headers = {};
  std::function<Result<std::string>()> next_piece = {};  ///< gives the body instead of `body`
  http::OnPiece on_piece = {};                           ///< receives the answer's body
  std::function<void()> on_head = {};                    ///< called before the first on_piece
  std::optional<http::AsyncLimits> limits = {};          ///< unset: EngineConnection::limits()
  /// Turns a refusal into an error; unset: error_of().
  std::function<base::Error(const http::Response&)> refusal = {};
};

/// The HTTP request for `ask`, whose members are moved from. `version`: prefix of the path,
/// "/v1.41".
http::AsyncRequest request_for(DockerAsk& ask, const std::string& version);

/// Encodes one segment of a path, or one value of a query.
std::string url_escaped(const std::string& text);
/// Whether `labels` contain all of `required`, "name" or "name=value". Engines' own filters differ.
bool has_labels(const std::map<std::string, std::string>& labels,
                const std::vector<std::string>& required);
/// "'x'" for errors, always on one line.
std::string quoted_name(const std::string& name);

/// The address of an engine, and the HTTP client for it.
class EngineConnection {
 public:
  /// `tunnel`: the socket to use instead of `endpoint`, which errors still name.
  EngineConnection(base::EventLoop& loop, Endpoint endpoint, std::optional<UnixEndpoint> tunnel,
                   Patience patience);

  const Endpoint& endpoint() const { return endpoint_; }
  const Patience& patience() const { return patience_; }
  /// "the engine at unix:///run/docker.sock"
  const std::string& name() const { return name_; }
  http::AsyncLimits limits() const;

  /// The HTTP client; creates it if necessary. kInvalid and others: certificates cannot be read.
  Result<http::AsyncClient*> client();
  /// The error for a failed request, with advice. The next request creates a new HTTP client, which
  /// reads the certificates again, because they may have been the reason.
  base::Error failed(base::Error error);
  /// Adds the engine's name to the error of an answer that cannot be understood.
  base::Error named(base::Error error) const;

 private:
  Result<http::AsyncPlace> place() const;

  base::EventLoop& loop_;
  const Endpoint endpoint_;
  const std::optional<UnixEndpoint> tunnel_;
  const Patience patience_;
  const std::string name_;
  std::optional<http::AsyncClient> client_;
};

/// The calls that are pending, by number. A call that has been dropped gets no answer.
class PendingCalls : public std::enable_shared_from_this<PendingCalls> {
 public:
  uint64_t open();
  void set(uint64_t call, http::AsyncCall request);
  bool contains(uint64_t call) const { return calls_.contains(call); }
  /// Whether the call is still pending, for use after this object may be gone.
  std::function<bool()> watch(uint64_t call);
  /// Dropping the handle drops the call.
  std::shared_ptr<void> handle_of(uint64_t call);
  void drop(uint64_t call);
  void drop_all();

 private:
  std::map<uint64_t, http::AsyncCall> calls_;
  uint64_t last_ = 0;
};

class DockerSession : public std::enable_shared_from_this<DockerSession> {
 public:
  using Done = DockerClient::Done;
  template <class Value>
  using Then = DockerClient::Then<Value>;
  using Answered = std::function<void(Result<http::Response>)>;

  DockerSession(base::EventLoop& loop, Endpoint endpoint, std::optional<UnixEndpoint> tunnel,
                Patience patience);

  const EngineConnection& connection() const { return connection_; }
  PendingCalls& calls() { return *calls_; }

  /// Sends a request, after meet() if necessary. The answers 200 to 299 and 304 (nothing to do) are
  /// not errors.
  uint64_t ask(DockerAsk ask, Answered answered);
  uint64_t ask(DockerAsk ask, Done done);
  /// Passes on what `read` makes of the answer.
  template <class Value, class Read>
  void ask(DockerAsk what, Read read, Then<Value> then) {
    ask(std::move(what),
        Answered([this, read, then = std::move(then)](Result<http::Response> answer) {
          if (!answer) return then(std::move(answer).error());
          auto value = read(*answer);
          value ? then(std::move(value)) : then(connection_.named(value.error()));
        }));
  }
  /// Requests a two-way stream of bytes.
  void ask_for_stream(DockerAsk ask, bool terminal, DockerStream::Handlers handlers,
                      Then<std::unique_ptr<DockerStream>> then);

  /// Asks the engine for its versions and its host.
  void meet(Then<DockerInfo> then);
  /// Makes a request that depends on the facts of the engine, after meet() if necessary.
  void ask_when_met(std::function<Result<DockerAsk>(const DockerInfo& engine)> make,
                    Answered answered);
  /// Reports an error later.
  void fail_later(base::Error error, std::function<void(base::Error)> failed);
  /// Drops all calls; no callback is called afterwards.
  void close();

 private:
  uint64_t when_met(std::function<void(uint64_t call)> go, std::function<void(base::Error)> failed);
  void fail_soon(uint64_t call, base::Error error, std::function<void(base::Error)> failed);
  void send_meeting(const std::string& path, const std::string& version,
                    std::function<void(const http::Response&)> then);
  void met(Result<DockerInfo> info);

  base::EventLoop& loop_;
  EngineConnection connection_;
  std::shared_ptr<PendingCalls> calls_ = std::make_shared<PendingCalls>();
  std::optional<DockerInfo> engine_;       ///< set after meet()
  std::vector<Then<DockerInfo>> meeting_;  ///< wait for the result of meet()
  bool closed_ = false;
};

}  // namespace muster::engine
