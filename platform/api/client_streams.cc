// The streams of api::Client: logs, and events of jobs.
#include <optional>
#include <utility>

#include "api/client.h"
#include "api/fields.h"
#include "api/job_query.h"
#include "api/log_stream.h"
#include "api/requests.h"
#include "api/routes.h"
#include "api/sweep_wire.h"
#include "api/wire.h"
#include "http/server_sent_events.h"

namespace muster::api {

using base::Error;
using base::ErrorCode;
using job::Job;

namespace {

Error stream_cut_off(const std::string& what) {
  return {.code = ErrorCode::kUnavailable,
          .what = "the server ended " + what + " before their end",
          .advice = "repeat the command"};
}

/// Tracks how far a stream has been read: reports each new id before the records after it.
class PlaceReporter {
 public:
  explicit PlaceReporter(const std::function<void(const std::string&)>& on_place)
      : on_place_(on_place) {}

  void report(std::string_view place) {
    if (!on_place_ || place == reported_) return;
    reported_ = place;
    on_place_(reported_);
  }

 private:
  const std::function<void(const std::string&)>& on_place_;
  std::string reported_;
};

/// Reads the pieces of a stream of logs, as events or as frames.
class LogReader {
 public:
  explicit LogReader(const Client::LogHandlers& handlers)
      : handlers_(handlers),
        place_(handlers.on_place),
        frames_({.on_record = [this](const job::LogRecord& record) { return take(record); },
                 .on_place =
                     [this](std::string_view place) {
                       place_.report(place);
                       return true;
                     },
                 .on_end = [this](std::string_view job) { return end(job_from_json(job)); }}) {}

  /// Returns whether it needs more.
  bool put(std::string_view piece) {
    if (piece.empty()) return true;
    if (!are_frames_) {
      are_frames_ = static_cast<unsigned char>(piece.front()) <=
                    static_cast<unsigned char>(LogFrameKind::kPing);
    }
    return *are_frames_ ? put_frames(piece) : put_events(piece);
  }

  void leave() { left_ = true; }
  bool left() const { return left_; }
  /// The job of the last event, or the fault of an event; nothing if there was neither.
  std::optional<Result<Job>>& job() { return job_; }

 private:
  bool put_frames(std::string_view piece) {
    const auto more = frames_.put(piece);
    return more ? *more : end(more.error());
  }

  bool put_events(std::string_view piece) {
    const bool more = events_.put(piece, [this](std::string_view event, std::string_view data) {
      place_.report(events_.last_id());
      if (event == kLogEvent) return take_event(data);
      if (event == kEndEvent) return end(job_from_json(data));
      return true;
    });
    if (more) place_.report(events_.last_id());
    return more;
  }

  bool take_event(std::string_view data) {
    const auto record = log_record_from_json(data);
    return record ? take(*record) : end(record.error());
  }

  bool take(const job::LogRecord& record) {
    left_ = !handlers_.on_record(record);
    return !left_;
  }

  bool end(Result<Job> how) {
    job_ = std::move(how);
    return false;
  }

  const Client::LogHandlers& handlers_;
  PlaceReporter place_;
  std::optional<bool> are_frames_;
  LogStreamDecoder frames_;
  http::EventDecoder events_;
  std::optional<Result<Job>> job_;
  bool left_ = false;
};

/// `wake`, which also records whether it ended the stream.
http::Wake noting(const http::Wake& wake, bool& left) {
  if (wake.fd < 0) return wake;
  return {.fd = wake.fd, .on_wake = [&wake, &left] {
            left = !wake.on_wake();
            return !left;
          }};
}

void set_place(http::Request& request, const std::string& place) {
  if (!place.empty()) request.headers[std::string(http::kLastEventId)] = place;
}

}  // namespace

Result<Job> Client::logs(const std::string& name, const job::LogQuery& query,
                         const std::function<bool(const job::LogRecord&)>& on_record,
                         const http::Wake& wake) {
  return logs(name, query, {}, {.on_record = on_record, .on_place = {}}, wake);
}

Result<Job> Client::logs(const std::string& name, const job::LogQuery& query,
                         const std::string& place, const LogHandlers& handlers,
                         const http::Wake& wake) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = authorized(job_request("GET", name, kLogsAction));
  request.query.merge(log_query_to_parameters(query));
  request.headers["accept"] = std::string(kLogStreamType) + ", " + std::string(http::kEventStream);
  set_place(request, place);

  LogReader reader(handlers);
  bool woken_to_leave = false;
  MUSTER_TRY(const http::Response response,
             http_.stream(
                 request, [&](std::string_view piece) { return reader.put(piece); },
                 noting(wake, woken_to_leave)));
  if (response.status >= 400) return problem(request, response);
  if (reader.job()) return *std::move(reader.job());
  if (woken_to_leave || reader.left()) return get(name);
  return stream_cut_off("the logs of '" + name + "'");
}

Result<job::Array> Client::array_logs(const std::string& name, const job::LogQuery& query,
                                      const ArrayLogHandlers& handlers, const http::Wake& wake) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = authorized(array_request("GET", name, kLogsAction));
  request.query.merge(log_query_to_parameters(query));
  http::EventDecoder decoder;
  std::optional<Result<job::Array>> ended;
  std::optional<Error> error;
  bool left = false;
  const auto take = [&](std::string_view event, std::string_view data) {
    if (event == kEndEvent) {
      ended = array_from_json(data);
      return false;
    }
    if (event == kArrayEvent && handlers.on_array) {
      const auto array = array_from_json(data);
      if (array) handlers.on_array(*array);
    }
    if (event != kLogEvent) return true;
    const auto record = log_record_from_json(data);
    if (!record) error = record.error();
    if (record) left = !handlers.on_record(*record);
    return !error && !left;
  };
  MUSTER_TRY(const http::Response response,
             http_.stream(
                 request, [&](std::string_view piece) { return decoder.put(piece, take); },
                 noting(wake, left)));
  if (response.status >= 400) return problem(request, response);
  if (error) return *error;
  if (ended) return *std::move(ended);
  if (left) return array(name);
  return stream_cut_off("the logs of '" + name + "'");
}

Result<std::optional<Job>> Client::watch_events(
    const EventQuery& query, std::string& place,
    const std::function<bool(const JobEvent&)>& on_event, const http::Wake& wake) {
  http::Request request = authorized(request_for("GET", std::string(kWatchEventsPath)));
  if (query.name && !project_.empty()) request.query["project"] = project_;
  if (query.project) request.query["project"] = *query.project;
  if (query.name) request.query["name"] = *query.name;
  if (query.since) append_rfc3339(request.query["since"], *query.since);
  set_place(request, place);

  http::EventDecoder decoder;
  std::optional<Job> ended;
  std::optional<Error> error;
  bool left = false;
  const auto take = [&](std::string_view event, std::string_view data) {
    if (event == kEndEvent) {
      auto job = job_from_json(data);
      if (!job) {
        error = job.error();
      } else {
        ended = *std::move(job);
      }
      return false;
    }
    if (event == kReadyEvent) place = decoder.last_id();
    if (event != kHistoryEvent) return true;
    const auto happened = job_event_from_json(data);
    if (!happened) error = happened.error();
    if (error) return false;
    left = !on_event(*happened);
    place = decoder.last_id();
    return !left;
  };
  MUSTER_TRY(const http::Response response,
             http_.stream(
                 request, [&](std::string_view piece) { return decoder.put(piece, take); },
                 noting(wake, left)));
  if (response.status >= 400) return problem(request, response);
  if (error) return *error;
  if (ended || left) return ended;
  return stream_cut_off("the events");
}

Result<void> Client::watch_jobs(const WatchQuery& query, std::string& place,
                                const WatchHandlers& handlers, const http::Wake& wake) {
  http::Request request = authorized(request_for("GET", std::string(kWatchJobsPath)));
  if (query.project) request.query["project"] = *query.project;
  if (query.name) request.query["name"] = *query.name;
  set_place(request, place);

  http::EventDecoder decoder;
  std::optional<Error> error;
  bool left = false;
  const auto hand_over = [&](const auto& read, const auto& handler) {
    if (!read) error = read.error();
    if (read && handler) left = !handler(*read);
  };
  const auto take = [&](std::string_view event, std::string_view data) {
    if (event == kJobEvent) hand_over(job_from_json(data), handlers.on_job);
    if (event == kArrayEvent) hand_over(array_from_json(data), handlers.on_array);
    if (event == kSweepEvent) hand_over(sweep_summary_from_json(data), handlers.on_sweep);
    if (event == kRemovedEvent) hand_over(removed_job_from_json(data), handlers.on_removed);
    if (event == kReadyEvent && handlers.on_ready) left = !handlers.on_ready();
    if (event == kResetEvent && handlers.on_reset) left = !handlers.on_reset();
    if (!error) place = decoder.last_id();
    return !error && !left;
  };
  MUSTER_TRY(const http::Response response,
             http_.stream(
                 request, [&](std::string_view piece) { return decoder.put(piece, take); },
                 noting(wake, left)));
  if (response.status >= 400) return problem(request, response);
  if (error) return *error;
  if (left) return {};
  return stream_cut_off("the watch of jobs");
}

Result<void> Client::watch_changes(const std::optional<std::string>& project, std::string& place,
                                   const std::function<bool()>& on_change, const http::Wake& wake) {
  http::Request request = authorized(request_for("GET", std::string(kWatchJobsPath)));
  if (project) request.query["project"] = *project;
  request.query["existing"] = "false";
  request.query["rows"] = "true";
  set_place(request, place);

  http::EventDecoder decoder;
  bool left = false;
  const auto take = [&](std::string_view, std::string_view) {
    left = !on_change();
    place = decoder.last_id();
    return !left;
  };
  MUSTER_TRY(const http::Response response,
             http_.stream(
                 request, [&](std::string_view piece) { return decoder.put(piece, take); },
                 noting(wake, left)));
  if (response.status >= 400) return problem(request, response);
  if (left) return {};
  return stream_cut_off("the watch of jobs");
}

Result<JobPage> Client::list(const JobQuery& query) {
  http::Request request = request_for("GET", std::string(kJobsPath));
  request.query = job_query_parameters(query);
  MUSTER_TRY(const http::Response response, call(request));
  return job_page_from_json(response.body);
}

Result<RowPage> Client::list_rows(const JobQuery& query) {
  http::Request request = request_for("GET", std::string(kListPath));
  request.query = job_query_parameters(query);
  MUSTER_TRY(const http::Response response, call(request));
  return row_page_from_json(response.body);
}

Result<std::vector<Job>> Client::list_all(JobQuery query) {
  std::vector<Job> jobs;
  query.limit = kMostJobs;
  do {
    MUSTER_TRY(JobPage page, list(query));
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(jobs));
    query.cursor = std::move(page.next);
  } while (!query.cursor.empty());
  return jobs;
}

}  // namespace muster::api
