// The typed face of the HTTP API: what the command line has instead of requests.
//
// Blocking; not thread-safe. An error that the server answered comes back as it was there: same
// code, sentences and faults. kUnavailable: no server on the socket.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "api/wire.h"
#include "base/result.h"
#include "http/client.h"
#include "job/job.h"
#include "job/log_record.h"

namespace muster::api {

class Client {
 public:
  explicit Client(std::filesystem::path socket) : http_(std::move(socket)) {}

  Result<ServerInfo> info();

  /// `idempotency_key`: fresh for each intent. Sent again with the same key, the first answer comes
  /// back and no second job is made.
  Result<job::Job> submit(const job::JobSpec& spec, const std::string& idempotency_key);

  Result<std::vector<job::Job>> list();
  Result<job::Job> get(const std::string& name);

  /// Asks the job to end: SIGTERM and its grace, or SIGKILL at once with `now`. Idempotent.
  Result<job::Job> stop(const std::string& name, bool now);

  /// Removes an ended job with its logs; kConflict while it runs.
  Result<void> remove(const std::string& name);

  /// Hands over the job's log records in order until there are no more (with query.follow: until
  /// the job has ended), and returns the job as it then is. `on_record` returns false to leave
  /// early; `wake` as in http::Client.
  Result<job::Job> logs(const std::string& name, const job::LogQuery& query,
                        const std::function<bool(const job::LogRecord&)>& on_record,
                        const http::Wake& wake = {});

  /// Tells the server to leave once it is idle; jobs go on without it.
  Result<void> shut_down();

 private:
  Result<http::Response> call(const http::Request& request);
  http::Client http_;
};

}  // namespace muster::api
