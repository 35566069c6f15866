// GET /v1/jobs/{name}/log-window, log-search and log-file: parts of a log for the web page, which shows
// a log of gigabytes and fetches what is seen.
//
// The indexes of the logs that were asked for last are kept. They are used on other threads, because
// the first request for a long log takes seconds; so a request holds its index, not the map. Windows
// and searches have a thread and indexes each, so that no window waits for searches, and on each
// thread the users take turns.

#include <algorithm>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "api/log_window.h"
#include "base/event_loop.h"
#include "base/turns.h"
#include "logs/log_follower.h"
#include "logs/log_index.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using base::Result;
using logs::LogIndex;

struct LogOfTask {
  std::string job;  ///< its id
  std::string name;
  int attempt = 0;
  std::string task;
  std::string host;

  bool operator==(const LogOfTask&) const = default;
};

/// A task that has not been started, or that could not be, has no log.
base::Error no_log_of(const LogOfTask& log, base::Error error) {
  if (error.code != base::ErrorCode::kNotFound) return error;
  const std::string attempt =
      log.attempt > 0 ? " in attempt " + std::to_string(log.attempt) + " of" : " of";
  return {.code = base::ErrorCode::kNotFound,
          .what = "task '" + log.task + "'" + attempt + " job '" + log.name + "' has no log",
          .advice = "a task has a log once it was started: muster get " + log.name};
}

/// All searches share a thread: a pattern may take minutes for a log of gigabytes.
constexpr std::chrono::seconds kLongestSearch{2};

/// The answer to a client that left before the turn of its request came. Most cannot read it.
http::Response left_early() {
  return problem({.code = base::ErrorCode::kUnavailable,
                  .what = "the client closed its side of the connection before the log was read",
                  .advice = "keep the connection open until the answer has arrived"});
}

class LogWindows {
 public:
  LogWindows(base::EventLoop& loop, control::Controller& controller)
      : controller_(controller), background_(loop) {}

  /// Calls `work` with the index and a cursor at the beginning, on the other thread when the turn of
  /// the call's user comes, and responds with `to_response` of its result. Drops the work if the
  /// client has left by then. kExhausted: too many requests of the user wait.
  template <class Answer>
  Result<void> ask(const ApiCall& call, const LogOfTask& log,
                   std::function<Result<Answer>(LogIndex&, engine::LogCursor&)> work,
                   std::function<http::Response(Answer)> to_response, http::Respond respond) {
    if (turns_.waiting(call.who.user) >= kMostWaiting) {
      return base::Error{.code = base::ErrorCode::kExhausted,
                         .what = "user '" + call.who.user + "' has " +
                                 std::to_string(kMostWaiting) + " such requests that wait",
                         .advice = "try again when they are answered"};
    }
    turns_.add(call.who.user, [this, log, work = std::move(work),
                               to_response = std::move(to_response), respond = std::move(respond),
                               has_left = call.request.peer.has_left](base::Turns::Done done) {
      if (has_left && has_left()) {
        respond(left_early());
        return done();
      }
      const auto begun =
          begin<Answer>(log, work, [to_response, respond, done](Result<Answer> answer) {
            respond(answer ? to_response(*std::move(answer)) : problem(answer.error()));
            done();
          });
      if (begun) return;
      respond(problem(begun.error()));
      done();
    });
    return {};
  }

 private:
  static constexpr size_t kMostIndexes = 32;
  static constexpr size_t kMostWaiting = 100;  ///< of one user

  /// kNotFound: there is no such log.
  template <class Answer>
  Result<void> begin(const LogOfTask& log,
                     const std::function<Result<Answer>(LogIndex&, engine::LogCursor&)>& work,
                     std::function<void(Result<Answer>)> done) {
    auto cursor = controller_.open_log(log.job, log.attempt, log.task);
    if (!cursor) return no_log_of(log, std::move(cursor).error());
    MUSTER_TRY(const std::shared_ptr<LogIndex> index, index_of(log));
    const auto answer = std::make_shared<std::optional<Result<Answer>>>();
    const auto shared = std::shared_ptr<engine::LogCursor>(*std::move(cursor));
    background_.run([index, shared, answer, work] { answer->emplace(work(*index, *shared)); },
                    [this, index, answer, done = std::move(done)] {
                      if (!**answer) forget(index);
                      done(std::move(**answer));
                    });
    return {};
  }

  Result<std::shared_ptr<LogIndex>> index_of(const LogOfTask& log) {
    const auto found = std::find_if(indexes_.begin(), indexes_.end(),
                                    [&](const auto& entry) { return entry.first == log; });
    if (found != indexes_.end()) {
      indexes_.splice(indexes_.begin(), indexes_, found);
      return indexes_.front().second;
    }
    MUSTER_TRY(auto cursor, controller_.open_log(log.job, log.attempt, log.task));
    indexes_.emplace_front(log, std::make_shared<LogIndex>(std::move(cursor)));
    if (indexes_.size() > kMostIndexes) indexes_.pop_back();
    return indexes_.front().second;
  }

  /// The next request reads the log anew.
  void forget(const std::shared_ptr<LogIndex>& index) {
    indexes_.remove_if([&](const auto& entry) { return entry.second == index; });
  }

  control::Controller& controller_;
  std::list<std::pair<LogOfTask, std::shared_ptr<LogIndex>>> indexes_;  ///< the last used first
  base::Turns turns_;                                                   ///< by user
  base::Background background_;
};

Result<LogOfTask> log_at(const control::Controller& controller, const ApiCall& call,
                         const api::LogPlace& place) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(const job::Job* const job,
             sight.job(call.path.at("name"), place.project, access::Role::kViewer));
  const std::optional<std::string> task_name =
      place.task.empty() ? std::nullopt : std::optional(place.task);
  MUSTER_CHECK(check_task(*job, task_name));
  const auto task = std::find_if(job->tasks.begin(), job->tasks.end(), [&](const job::Task& each) {
    return !task_name || each.name == *task_name;
  });
  if (task == job->tasks.end()) {
    return base::Error{.code = base::ErrorCode::kNotFound,
                       .what = "job '" + job->spec.name + "' has no task yet"};
  }
  return LogOfTask{.job = job->id,
                   .name = job->spec.name,
                   .attempt = place.attempt.value_or(job->attempt),
                   .task = task->name,
                   .host = task->hostname};
}

api::LogAnswer answer_of(const LogOfTask& log, const logs::LogExtent& extent,
                         std::vector<logs::NumberedLine> lines) {
  api::LogAnswer answer{.task = log.task,
                        .attempt = log.attempt,
                        .bytes = extent.bytes,
                        .lines = extent.lines,
                        .first = extent.first,
                        .complete = extent.complete};
  answer.records.reserve(lines.size());
  for (logs::NumberedLine& line : lines) {
    line.record.task = log.task;
    line.record.attempt = log.attempt;
    line.record.host = log.host;
    answer.records.push_back({.record = std::move(line.record),
                              .number = line.number,
                              .bytes = line.bytes,
                              .unfinished = line.unfinished,
                              .hit = line.hit});
  }
  return answer;
}

Result<void> show_window(control::Controller& controller, LogWindows& windows, const ApiCall& call,
                         const http::Respond& respond) {
  MUSTER_TRY(const api::LogWindowRequest request,
             api::log_window_from_parameters(call.request.query));
  MUSTER_TRY(const LogOfTask log, log_at(controller, call, request.place));
  return windows.ask<logs::LogWindow>(
      call, log,
      [query = logs::LogWindowQuery{.line = request.line, .lines = request.lines}](
          LogIndex& index, engine::LogCursor& cursor) { return index.window(cursor, query); },
      [log](logs::LogWindow window) {
        return json_answer(
            200, api::log_answer_to_json(answer_of(log, window.extent, std::move(window.lines))));
      },
      respond);
}

Result<void> search(control::Controller& controller, LogWindows& searches, const ApiCall& call,
                    const http::Respond& respond) {
  MUSTER_TRY(const api::LogSearchRequest request,
             api::log_search_from_parameters(call.request.query));
  MUSTER_TRY(const LogOfTask log, log_at(controller, call, request.place));
  MUSTER_TRY(auto matches, request.matcher());
  logs::LogSearchQuery query{.matches = std::move(matches),
                             .line = request.line,
                             .hits = request.hits,
                             .context = request.context};
  return searches.ask<logs::LogSearchResult>(
      call, log,
      [query = std::move(query)](LogIndex& index, engine::LogCursor& cursor) {
        logs::LogSearchQuery timed = query;
        timed.is_late = [end = std::chrono::steady_clock::now() + kLongestSearch] {
          return std::chrono::steady_clock::now() > end;
        };
        return index.search(cursor, timed);
      },
      [log](logs::LogSearchResult found) {
        api::LogAnswer answer = answer_of(log, found.extent, std::move(found.lines));
        answer.next = found.next;
        return json_answer(200, api::log_answer_to_json(answer));
      },
      respond);
}

/// The lines of a job as text, each behind the name of its task if there are several. Ends early when
/// the caller loses its rights.
class LogText : public http::BodyStream {
 public:
  LogText(std::unique_ptr<logs::LogFollower> follower, std::function<bool()> may_go_on,
          bool names_tasks)
      : follower_(std::move(follower)),
        may_go_on_(std::move(may_go_on)),
        names_tasks_(names_tasks) {}

  void pull(Deliver deliver) override {
    if (ended_ || !may_go_on_()) return deliver(std::nullopt);
    follower_->pull([this, deliver = std::move(deliver)](const job::LogBatch& batch, bool end) {
      ended_ = end;
      std::string text = text_of(batch);
      if (!text.empty()) return deliver(std::move(text));
      if (end) return deliver(std::nullopt);
      pull(deliver);
    });
  }

 private:
  using SourceOfLine = std::tuple<std::string, int, std::optional<int>, job::LogStream>;

  /// A long line comes in several records. Records of other sources may come in between: each of
  /// them begins a new line.
  std::string text_of(const job::LogBatch& batch) {
    if (!names_tasks_) return batch.bytes();
    std::string text;
    for (const job::LogRecord& record : job::records_of(batch)) {
      SourceOfLine source(record.task, record.attempt, record.rank, record.stream);
      if (open_line_ != source) {
        if (open_line_) text += '\n';
        text += record.task + " | ";
      }
      text += record.text;
      open_line_.reset();
      if (record.continues) {
        open_line_ = std::move(source);
      } else {
        text += '\n';
      }
    }
    return text;
  }

  std::unique_ptr<logs::LogFollower> follower_;
  std::function<bool()> may_go_on_;
  bool names_tasks_;
  std::optional<SourceOfLine> open_line_;  ///< of the last record, if its line continues
  bool ended_ = false;
};

RouteAnswer log_file(control::Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(
      const job::Job* const job,
      sight.job(call.path.at("name"), parameter(call.request, "project"), access::Role::kViewer));
  job::LogQuery query;
  std::string name = job->spec.name;
  if (const std::string task = parameter(call.request, "task"); !task.empty()) {
    query.task = task;
    name += "-" + task;
  }
  MUSTER_CHECK(check_task(*job, query.task));
  http::Response answer{.content_type = "text/plain; charset=utf-8"};
  // Names of jobs and tasks have no characters that a header quotes.
  answer.headers["content-disposition"] = "attachment; filename=\"" + name + ".log\"";
  answer.headers["x-content-type-options"] = "nosniff";
  answer.stream = std::make_shared<LogText>(controller.follow_logs(job->id, query),
                                            may_still_see(controller, call, job->id),
                                            !query.task && job->tasks.size() > 1);
  return answer;
}

}  // namespace

void add_log_window_routes(Router& router, base::EventLoop& loop, control::Controller& controller) {
  const auto add = [&](const char* path, auto answer) {
    const auto windows = std::make_shared<LogWindows>(loop, controller);
    router.add("GET", path, Permission::kSignedIn,
               [&controller, windows, answer](const ApiCall& call, const http::Respond& respond) {
                 const Result<void> asked = answer(controller, *windows, call, respond);
                 if (asked) return;
                 const bool too_many = asked.error().code == base::ErrorCode::kExhausted;
                 if (!too_many) return respond(problem(asked.error()));
                 constexpr int kTooManyRequests = 429;
                 http::Response refusal = problem(asked.error(), kTooManyRequests);
                 refusal.headers["retry-after"] = std::to_string(kLongestSearch.count());
                 respond(std::move(refusal));
               });
  };
  add("/v1/jobs/{name}/log-window", show_window);
  add("/v1/jobs/{name}/log-search", search);
  router.add("GET", "/v1/jobs/{name}/log-file", Permission::kSignedIn,
             at_once([&controller](const ApiCall& call) { return log_file(controller, call); }));
}

}  // namespace muster::server
