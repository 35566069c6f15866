// What the parts of DockerClient share: asking an engine for something once it is known which
// version it speaks, and the calls that are under way.
//
// Private to docker_*.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/container/docker_client.h"
#include "http/async_client.h"

namespace muster::engine {

/// One thing that an engine is asked for.
struct DockerAsk {
  std::string method = "GET";
  std::string path;   ///< percent-encoded, without the version
  std::string doing;  ///< for errors: "container 'x' cannot be started"
  std::string body = {};
  std::string content_type = "application/json";
  http::Headers headers = {};
  std::function<Result<std::string>()> next_piece = {};  ///< in the place of `body`
  http::OnPiece on_piece = {};                           ///< of the answer
  std::function<void()> on_head = {};                    ///< of an answer in pieces
  std::optional<http::AsyncLimits> limits = {};          ///< unset: the usual ones
  /// What a refusal means; unset: as error_of() has it.
  std::function<base::Error(const http::Response&)> refusal = {};
};

/// One segment of a path, or one value of a query.
std::string url_escaped(const std::string& text);
/// Whether these are all among them: "name" or "name=value". Engines differ in how they filter.
bool has_labels(const std::map<std::string, std::string>& labels,
                const std::vector<std::string>& wanted);
/// "'x'" for errors: whatever was asked for, it stays on one line.
std::string quoted_name(const std::string& name);

struct DockerClient::Impl : std::enable_shared_from_this<Impl> {
  using Answered = std::function<void(Result<http::Response>)>;

  Impl(base::EventLoop& its_loop, Endpoint its_endpoint, std::optional<UnixEndpoint> its_tunnel,
       Patience its_patience);

  /// Answers of 200 to 299, and 304 (it is so already), are no errors.
  uint64_t ask(DockerAsk ask, Answered answered);
  /// Only whether it was done.
  uint64_t ask(DockerAsk ask, Done done);
  /// What `read` makes of the answer.
  template <class Value, class Read>
  void ask(DockerAsk what, Read read, Then<Value> then) {
    ask(std::move(what),
        Answered([this, read, then = std::move(then)](Result<http::Response> answer) {
          if (!answer) return then(std::move(answer).error());
          auto value = read(*answer);
          value ? then(std::move(value)) : then(named(value.error()));
        }));
  }
  /// For a stream of bytes both ways.
  void ask_for_stream(DockerAsk ask, bool terminal, DockerStream::Handlers handlers,
                      Then<std::unique_ptr<DockerStream>> then);

  /// Calls `go` when the engine is known, for a call that may be dropped before.
  uint64_t when_met(std::function<void(uint64_t call)> go, std::function<void(base::Error)> failed);
  /// Asks the engine for its versions and its host.
  void meet(Then<DockerInfo> then);
  /// Whether it has not been dropped, nor the client.
  std::function<bool()> is_open(uint64_t call);
  /// Dropping it ends the call.
  std::shared_ptr<void> handle_of(uint64_t call);
  void drop(uint64_t call);
  void close();

  void fail_soon(uint64_t call, base::Error error, std::function<void(base::Error)> failed);

  Result<http::AsyncClient*> client();
  http::AsyncLimits usual_limits() const;
  http::AsyncRequest request_for(DockerAsk& ask, const std::string& version) const;
  base::Error unreachable(base::Error error);
  base::Error named(base::Error error) const;

  base::EventLoop& loop;
  const Endpoint endpoint;
  const std::optional<UnixEndpoint> tunnel;
  const Patience patience;
  const std::string name;  ///< "the engine at unix:///run/docker.sock"

  std::optional<http::AsyncClient> connection;
  std::optional<DockerInfo> engine;
  std::vector<Then<DockerInfo>> meeting;  ///< who waits for the answer
  std::map<uint64_t, http::AsyncCall> calls;
  uint64_t last_call = 0;
  bool closed = false;

 private:
  void send_meeting(const std::string& path, const std::string& version,
                    std::function<void(const http::Response&)> then);
  void met(Result<DockerInfo> info);
  Result<http::AsyncPlace> place() const;
};

}  // namespace muster::engine
