// The way to the server of a context: finds it and, where it is the local one, starts it where none
// runs; and finds or starts it again when it goes away in the middle (a local server leaves when
// idle, any may be killed; jobs live on without it). A server that others share is never started
// here.
//
// Blocking; not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "api/client.h"
#include "cli/connection/contexts.h"
#include "config/paths.h"

namespace muster::cli {

class Connection {
 public:
  /// Reaches a server, which then answers. One of another version than `version` is used all the
  /// same, with a warning on standard error. `project`: as in api::Client::set_project().
  ///
  /// `engine`: what the server is to run jobs on; one that is started here is told so, and another
  /// that answers is refused with kConflict. Empty: any will do.
  ///
  /// For a server that others share, no folder is looked for or made.
  static Result<Connection> open(const Context& context, const std::string& version,
                                 std::string project = {}, std::string engine = {});

  /// Finds or starts a server anew. Of a shared one nothing is asked yet.
  Result<void> reopen();

  /// The same for whoever reads a stream that broke off: at once, and later each time until
  /// is_well(). kUnavailable once it has broken off too often.
  Result<void> come_back();
  /// The stream has brought something.
  void is_well() { failures_ = 0; }

  /// As api::Client::set_project(), for this connection and those it is reopened as.
  void set_project(const std::string& project);

  /// A client of its own: for a request in the midst of a stream of another.
  std::unique_ptr<api::Client> second_client() const;

  api::Client& client() { return *client_; }

  /// Whether it is somebody else's to bring back when it goes away.
  bool is_shared() const { return endpoint_.has_value(); }

  /// https://HOST:PORT of a shared server; empty: it is the local one.
  std::string url() const;

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
  Connection() = default;

  config::Paths paths_;                        ///< of the local server
  std::optional<http::TlsEndpoint> endpoint_;  ///< of a shared one
  std::string token_;
  std::string project_;
  std::string engine_;
  std::unique_ptr<api::Client> client_;
  int failures_ = 0;  ///< of the server, since a stream of it brought something
};

/// Where a context's server is, and how it is known. Reads the context's CA file. REQUIRES: it is
/// not the local one.
Result<http::TlsEndpoint> endpoint_of(const Context& context);

}  // namespace muster::cli
