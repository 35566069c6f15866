// The way to the server: finds it, starts it where none runs, and finds or starts it again when it
// goes away in the middle (a server leaves when idle, and may be killed; jobs live on without it).
//
// Blocking; not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "api/client.h"
#include "cli/paths.h"

namespace muster::cli {

class Connection {
 public:
  /// Reaches a server, which then answers. One of another version than `version` is used all the
  /// same, with a warning on standard error.
  static Result<Connection> open(Paths paths, const std::string& version);

  /// Finds or starts a server anew.
  Result<void> reopen();

  /// A client of its own: for a request in the midst of a stream of another.
  api::Client second_client() const { return api::Client(paths_.socket); }

  api::Client& client() { return *client_; }

  /// attempt(client()), and once more on a new connection where the server went away. Only for
  /// requests that may be sent twice: reads, stop, and submit with its idempotency key.
  template <class Attempt>
  auto call(const Attempt& attempt) -> decltype(attempt(client())) {
    auto answer = attempt(client());
    if (answer || answer.error().code != base::ErrorCode::kUnavailable) return answer;
    MUSTER_CHECK(reopen());
    return attempt(client());
  }

 private:
  explicit Connection(Paths paths) : paths_(std::move(paths)) {}

  Paths paths_;
  std::unique_ptr<api::Client> client_;
};

}  // namespace muster::cli
