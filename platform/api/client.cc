#include "api/client.h"

#include <optional>
#include <utility>

#include "api/log_query.h"
#include "api/routes.h"
#include "api/wire.h"
#include "http/server_sent_events.h"

namespace muster::api {

using base::Error;
using base::ErrorCode;
using job::Job;

namespace {

http::Request request_for(std::string method, std::string path) {
  return {.method = std::move(method), .path = std::move(path)};
}

/// Whether `name` makes one segment of a path. Any other would ask for something else than a job.
Result<void> check_name(const std::string& name) {
  if (!name.empty() && name.find('/') == std::string::npos) return {};
  return Error{.code = ErrorCode::kInvalid,
               .what = "'" + name + "' is not a job name",
               .advice = "see the names of your jobs: muster list"};
}

/// What the pieces of a stream of logs come to.
class LogReader {
 public:
  explicit LogReader(const std::function<bool(const job::LogRecord&)>& on_record)
      : on_record_(on_record) {}

  /// Returns whether it wants more.
  bool put(std::string_view piece) {
    return decoder_.put(piece, [this](std::string_view event, std::string_view data) {
      if (event == kLogEvent) return take_record(data);
      if (event == kEndEvent) job_ = job_from_json(data);
      return !job_;
    });
  }

  void leave() { left_ = true; }
  bool left() const { return left_; }
  /// The last event's job, or what was wrong with an event; nothing where neither came.
  std::optional<Result<Job>>& job() { return job_; }

 private:
  bool take_record(std::string_view data) {
    const auto record = log_record_from_json(data);
    if (!record) {
      job_ = Result<Job>(record.error());
      return false;
    }
    left_ = !on_record_(*record);
    return !left_;
  }

  const std::function<bool(const job::LogRecord&)>& on_record_;
  http::EventDecoder decoder_;
  std::optional<Result<Job>> job_;
  bool left_ = false;
};

}  // namespace

Result<http::Response> Client::call(const http::Request& request) {
  MUSTER_TRY(http::Response response, http_.send(request));
  if (response.status >= 400) return problem_from_json(response.status, response.body);
  return response;
}

Result<ServerInfo> Client::info() {
  MUSTER_TRY(const http::Response response, call(request_for("GET", std::string(kInfoPath))));
  return info_from_json(response.body);
}

Result<Job> Client::submit(const job::JobSpec& spec, const std::string& idempotency_key) {
  http::Request request = request_for("POST", std::string(kJobsPath));
  request.headers["content-type"] = "application/json";
  request.headers[std::string(kIdempotencyKey)] = idempotency_key;
  request.body = spec_to_json(spec);
  MUSTER_TRY(const http::Response response, call(request));
  return job_from_json(response.body);
}

Result<std::vector<Job>> Client::list() {
  MUSTER_TRY(const http::Response response, call(request_for("GET", std::string(kJobsPath))));
  return jobs_from_json(response.body);
}

Result<Job> Client::get(const std::string& name) {
  MUSTER_CHECK(check_name(name));
  MUSTER_TRY(const http::Response response, call(request_for("GET", job_path(name))));
  return job_from_json(response.body);
}

Result<Job> Client::stop(const std::string& name, bool now) {
  MUSTER_CHECK(check_name(name));
  http::Request request = request_for("POST", job_path(name, kStopAction));
  if (now) request.query["now"] = "true";
  MUSTER_TRY(const http::Response response, call(request));
  return job_from_json(response.body);
}

Result<void> Client::remove(const std::string& name) {
  MUSTER_CHECK(check_name(name));
  MUSTER_CHECK(call(request_for("DELETE", job_path(name))));
  return {};
}

Result<Job> Client::logs(const std::string& name, const job::LogQuery& query,
                         const std::function<bool(const job::LogRecord&)>& on_record,
                         const http::Wake& wake) {
  MUSTER_CHECK(check_name(name));
  http::Request request = request_for("GET", job_path(name, kLogsAction));
  request.query = log_query_to_parameters(query);

  LogReader reader(on_record);
  const http::Wake noting_wake{.fd = wake.fd, .on_wake = [&] {
                                 if (wake.on_wake()) return true;
                                 reader.leave();
                                 return false;
                               }};
  MUSTER_TRY(const http::Response response,
             http_.stream(
                 request, [&](std::string_view piece) { return reader.put(piece); }, noting_wake));
  if (response.status >= 400) return problem_from_json(response.status, response.body);
  if (reader.job()) return *std::move(reader.job());
  if (reader.left()) return get(name);
  return Error{.code = ErrorCode::kUnavailable,
               .what = "the server ended the logs of '" + name + "' in the midst",
               .advice = "ask for them again"};
}

Result<void> Client::shut_down() {
  MUSTER_CHECK(call(request_for("POST", std::string(kShutdownPath))));
  return {};
}

}  // namespace muster::api
