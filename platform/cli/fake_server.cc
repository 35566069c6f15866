#include "cli/fake_server.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <future>
#include <iostream>
#include <optional>
#include <vector>

#include "api/array_wire.h"
#include "api/cluster_wire.h"
#include "api/job_query.h"
#include "api/job_rows.h"
#include "api/routes.h"
#include "api/sweep_wire.h"
#include "api/terminal.h"
#include "api/wire.h"
#include "http/server_sent_events.h"
#include "http/websocket.h"

namespace muster::cli {

namespace {

std::string event(std::string_view name, const std::string& data) {
  std::string text;
  http::append_event(text, name, data);
  return text;
}

}  // namespace

struct FakeServer::State {
  /// Returns the received pieces, then ends the body or waits until the test ends it.
  struct Tape {
    std::vector<std::string> pieces;
    bool stays_open = false;
    http::BodyStream::Deliver waiting = {};
  };

  class TapeStream : public http::BodyStream {
   public:
    explicit TapeStream(std::shared_ptr<Tape> tape) : tape_(std::move(tape)) {}

    void pull(Deliver deliver) override {
      if (next_ < tape_->pieces.size()) return deliver(tape_->pieces[next_++]);
      if (!tape_->stays_open) return deliver(std::nullopt);
      tape_->waiting = std::move(deliver);
    }

   private:
    std::shared_ptr<Tape> tape_;
    size_t next_ = 0;
  };

  State(base::EventLoop& loop, Script behaviour)
      : script(std::move(behaviour)),
        server(loop, [this](const http::Request& request, const http::Respond& respond) {
          const std::string what = request.method + " " + request.path;
          if (what == script.unanswered && script.unanswered_after-- <= 0) {
            note(request);
            unanswered.push_back(respond);
            ::kill(::getpid(), script.signal);
            if (script.second_signal != 0) ::kill(::getpid(), script.second_signal);
            return;
          }
          if (what == script.signals_at && script.signals_after-- == 0) {
            ::kill(::getpid(), script.signal);
          }
          respond(answer(request));
        }) {
    for (const job::Job& job : script.jobs) jobs[job.spec.name] = job;
    for (const job::Job& job : script.waiting_members) members[job.spec.name] = job;
  }

  http::Response answer(const http::Request& request) {
    const std::string what = request.method + " " + request.path;
    if (auto refused = accounts.refuse(request)) return *std::move(refused);
    if (request.path == api::kInfoPath) {
      return {.body = api::info_to_json({.version = script.version,
                                         .pid = ::getpid(),
                                         .state_folder = "/state",
                                         .engine = script.engine})};
    }
    note(request);
    if (what == script.refuses && script.refuses_after-- <= 0 && script.refusals-- != 0) {
      return problem_answer(script.refuses_with);
    }
    if (what == script.answer_lost && script.answer_lost_after-- <= 0 && script.answers_lost != 0) {
      --script.answers_lost;
      if (script.lost_is_done) static_cast<void>(submit(request));
      return lost_answer();
    }
    if (auto answered = accounts.answer(request)) return *std::move(answered);
    if (auto answered = cluster.answer(request)) return *std::move(answered);
    if (request.path == api::kMachineTypesPath) {
      return {.body = api::machine_types_to_json(job::usual_machine_types())};
    }
    if (what == "GET /v1/queue") return {.body = api::jobs_to_json(waiting())};
    if (what == "GET /v1/jobs") return list(request);
    if (what == "GET /v1/list") return list_rows(request);
    if (request.path == api::kWatchEventsPath) return watch_events(request);
    if (request.path == api::kWatchJobsPath) {
      if (what == script.vanishes_at) jobs.clear();
      return watch_jobs(request);
    }
    if (what == "POST /v1/jobs") return submit(request);
    if (request.path.starts_with(std::string(api::kArraysPath) + "/")) return of_array(request);
    if (request.path.starts_with(std::string(api::kSweepsPath) + "/")) return of_sweep(request);
    const std::string rest = request.path.substr(api::kJobsPath.size() + 1);
    const std::string name = name_of(rest.substr(0, rest.find('/')));
    if (what == script.vanishes_at) jobs.erase(name);
    if (const auto member = members.find(name); member != members.end()) {
      if (++member_requests == script.hidden_at) return not_found_answer("job '" + name + "'");
      if (member_requests <= script.asked_before_start) {
        return {.body = api::job_to_json(member->second)};
      }
      start_member(name);
    }
    if (!jobs.contains(name)) {
      return problem_answer(base::ErrorCode::kNotFound, "there is no job '" + name + "'");
    }
    job::Job& job = jobs[name];
    if (rest.ends_with("/artifacts")) return artifacts(request);
    if (rest.ends_with("/logs")) return logs(job);
    if (rest.ends_with("/metrics")) return metrics(request);
    if (rest.ends_with("/exec")) return exec(request);
    if (rest.ends_with("/attach")) return attach();
    if (rest.ends_with("/stop")) return stop(job);
    if (rest.ends_with("/explain")) return explain(job);
    if (rest.ends_with("/suspend") || rest.ends_with("/resume")) return hold(job, rest);
    if (request.method == "DELETE") return remove(job);
    if (request.method == "PATCH") return set_labels(job, request.body);
    return {.body = api::job_to_json(job)};
  }

  void note(const http::Request& request) {
    const std::string what = request.method + " " + request.path;
    const auto project = request.query.find("project");
    const auto phases = request.query.find("phase");
    requests.push_back(
        what + (project == request.query.end() ? "" : " of " + project->second) +
        (request.query.contains("now") ? " now" : "") +
        (phases == request.query.end() || what != "GET /v1/jobs" ? "" : " in " + phases->second));
  }

  /// /v1/sweeps/NAME or /v1/sweeps/NAME/ACTION
  http::Response of_sweep(const http::Request& request) {
    const std::string rest = request.path.substr(api::kSweepsPath.size() + 1);
    const std::string name = rest.substr(0, rest.find('/'));
    const auto found =
        std::find_if(script.sweeps.begin(), script.sweeps.end(), [&](const sweep::Sweep& sweep) {
          return sweep.summary.id == name || sweep.summary.name == name;
        });
    if (found == script.sweeps.end()) return not_found_answer("such sweep");
    if (rest.ends_with("/stop")) end_sweep(*found, sweep::SweepPhase::kStopped);
    return {.body = api::sweep_to_json(*found)};
  }

  static void end_sweep(sweep::Sweep& sweep, sweep::SweepPhase phase) {
    sweep.summary.phase = phase;
    sweep.summary.ended = base::FakeClock().now();
  }

  http::Response artifacts(const http::Request& request) const {
    api::ArtifactPage page = script.artifacts;
    if (request.query.contains("after")) page.artifacts.clear();
    return {.body = api::artifacts_to_json(page)};
  }

  void start_member(const std::string& name) {
    job::Job job = members[name];
    members.erase(name);
    job.id = "id-" + name;
    job.phase = job::Phase::kSucceeded;
    jobs[name] = job;
  }

  /// /v1/arrays/ID or /v1/arrays/ID/ACTION
  http::Response of_array(const http::Request& request) {
    const std::string rest = request.path.substr(api::kArraysPath.size() + 1);
    const size_t slash = rest.find('/');
    const std::string name = rest.substr(0, slash);
    const auto found = std::find_if(
        script.arrays.begin(), script.arrays.end(),
        [&](const job::Array& array) { return array.id == name || array.spec.name == name; });
    if (found == script.arrays.end()) return not_found_answer("array '" + name + "'");
    const std::string action = slash == std::string::npos ? "" : rest.substr(slash + 1);
    if (action == "stop") {
      found->phase = job::Phase::kStopped;
      found->ended = base::FakeClock().now();
    }
    if (action == "suspend" || action == "resume") found->suspended = action == "suspend";
    const http::Response answer{.body = api::array_to_json(*found)};
    if (request.method == "DELETE") script.arrays.erase(found);
    return answer;
  }

  static api::JobRow row_of_array(const job::Array& array) {
    return {.object = api::JobRow::Object::kArray,
            .id = array.id,
            .name = array.spec.name,
            .project = array.spec.project,
            .phase = array.phase,
            .submitted = array.submitted,
            .suspended = array.suspended};
  }

  /// The program's terminal, which is closed at once.
  static http::Response attach() {
    http::Response response;
    response.websocket = [](const std::shared_ptr<http::WebSocket>& socket) {
      socket->close(1000, "");
    };
    return response;
  }

  /// A body that ends before its length: the server breaks the connection.
  static http::Response lost_answer() {
    http::Response response{.stream = std::make_shared<TapeStream>(std::make_shared<Tape>())};
    response.headers["content-length"] = "1";
    return response;
  }

  http::Response metrics(const http::Request& request) const {
    const auto query = api::metric_query_from_parameters(request.query);
    if (!query) return problem_answer(query.error().code, query.error().what);
    std::vector<job::MetricSeries> asked;
    for (const job::MetricSeries& series : script.metrics) {
      const bool is_asked =
          query->metrics.empty() || std::find(query->metrics.begin(), query->metrics.end(),
                                              series.metric) != query->metrics.end();
      if (!is_asked || (query->task && query->task != series.task)) continue;
      asked.push_back(series);
      if (query->last) asked.back().points = {series.points.back()};
    }
    return {.body = api::metrics_to_json(asked)};
  }

  /// The name of the job with this name or id.
  std::string name_of(const std::string& name_or_id) const {
    for (const auto& [name, job] : jobs) {
      if (job.id == name_or_id) return name;
    }
    return name_or_id;
  }

  std::vector<job::Job> all() const {
    std::vector<job::Job> list;
    for (const auto& [name, job] : jobs) list.push_back(job);
    return list;
  }

  http::Response list(const http::Request& request) const {
    const auto query = api::job_query_from_parameters(request.query);
    if (auto missing = missing_project(*query)) return *std::move(missing);
    std::string next;
    const std::vector<const job::Job*> page = page_of(*query, next);
    return {.body = api::job_page_to_json(page, next)};
  }

  http::Response list_rows(const http::Request& request) const {
    const auto query = api::job_query_from_parameters(request.query);
    if (!query) return problem_answer(query.error().code, query.error().what);
    if (auto missing = missing_project(*query)) return *std::move(missing);
    api::RowPage page;
    for (const job::Job* job : page_of(*query, page.next)) page.rows.push_back(api::row_of(*job));
    for (const job::Array& array : script.arrays) {
      const bool is_meant = !query->project || *query->project == array.spec.project;
      if (is_meant && query->cursor.empty()) page.rows.push_back(row_of_array(array));
    }
    for (const std::string& name : script.vanishing_sweeps) {
      page.rows.push_back({.object = api::JobRow::Object::kSweep,
                           .id = "sweep-" + name,
                           .name = name,
                           .project = query->project.value_or("")});
    }
    if (query->count) {
      page.counts.emplace();
      for (const auto& [name, job] : jobs) page.counts->all += matches(*query, job) ? 1 : 0;
    }
    return {.body = api::row_page_to_json(page)};
  }

  std::optional<http::Response> missing_project(const api::JobQuery& query) const {
    if (!query.project || cluster.has_project(*query.project)) return std::nullopt;
    return problem_answer(base::ErrorCode::kNotFound,
                          "there is no project '" + *query.project + "'");
  }

  /// The page after the cursor, of the requested size.
  std::vector<const job::Job*> page_of(const api::JobQuery& query, std::string& next) const {
    std::vector<const job::Job*> page;
    for (const auto& [name, job] : jobs) {
      if (matches(query, job)) page.push_back(&job);
    }
    const auto place = [&](const job::Job* job) {
      return api::copy_of(api::place_of(query.order, job::facts_of(*job)));
    };
    if (query.order != api::JobOrder::kOldestFirst) {
      std::stable_sort(page.begin(), page.end(), [&](const auto* left, const auto* right) {
        return comes_before(query.order, place(left), place(right));
      });
    }
    const auto begin = std::find_if(page.begin(), page.end(), [&](const job::Job* job) {
      return api::cursor_text(query.order, place(job)) == query.cursor;
    });
    if (begin != page.end()) page.erase(page.begin(), begin + 1);
    if (std::cmp_greater(page.size(), query.limit)) {
      page.resize(static_cast<size_t>(query.limit));
      next = api::cursor_text(query.order, place(page.back()));
    }
    return page;
  }

  /// The events of one ended job.
  http::Response watch_events(const http::Request& request) {
    const auto found = jobs.find(request.query.at("name"));
    if (found == jobs.end()) {
      return problem_answer(base::ErrorCode::kNotFound, "there is no such job");
    }
    const job::Job& job = found->second;
    tape = std::make_shared<Tape>();
    for (const job::Event& happened : job.events) {
      const api::JobEvent past{.time = happened.time, .job = job.spec.name, .what = happened.what};
      tape->pieces.push_back(event(api::kHistoryEvent, api::job_event_to_json(past)));
    }
    tape->pieces.push_back(event(api::kEndEvent, api::job_to_json(job)));
    return {.content_type = "text/event-stream", .stream = std::make_shared<TapeStream>(tape)};
  }

  /// All jobs, and then their changes.
  http::Response watch_jobs(const http::Request& request) {
    const auto matches = [&](const char* parameter, const std::string& value) {
      const auto found = request.query.find(parameter);
      return found == request.query.end() || found->second == value;
    };
    auto changes = std::make_shared<Tape>(Tape{.stays_open = true});
    const auto send_job = [&](const job::Job& job) {
      if (matches("project", job.spec.project) && matches("name", job.spec.name)) {
        changes->pieces.push_back(event(api::kJobEvent, api::job_to_json(job)));
      }
    };
    const auto send_array = [&](const job::Array& array) {
      if (!matches("project", array.spec.project) || !matches("name", array.spec.name)) return;
      changes->pieces.push_back(event(api::kArrayEvent, api::array_to_json(array)));
    };
    const auto send_sweep = [&](const sweep::SweepSummary& sweep) {
      if (!matches("project", sweep.project) || !matches("name", sweep.name)) return;
      changes->pieces.push_back(event(api::kSweepEvent, record::to_json(sweep)));
    };
    for (const auto& [name, job] : jobs) send_job(job);
    for (const sweep::Sweep& sweep : script.sweeps) send_sweep(sweep.summary);
    changes->pieces.push_back(event(api::kReadyEvent, "{}"));
    for (const job::Array& array : script.arrays) {
      for (int i = 0; i < script.array_changes; ++i) send_array(array);
    }
    if (script.settles_when_watched) {
      for (sweep::Sweep& sweep : script.sweeps) {
        if (!sweep.summary.ended) end_sweep(sweep, sweep::SweepPhase::kSucceeded);
        send_sweep(sweep.summary);
      }
    }
    if (script.settles_when_watched) {
      for (auto& [name, job] : jobs) {
        settle(job);
        send_job(job);
      }
    }
    return {.content_type = "text/event-stream", .stream = std::make_shared<TapeStream>(changes)};
  }

  void settle(job::Job& job) const {
    if (job::is_final(job.phase)) return;
    if (job.stop_requested) {
      end(job, job::Phase::kStopped);
      return;
    }
    job.phase = job::Phase::kRunning;
    for (job::Task& task : job.tasks) task.phase = job::TaskPhase::kRunning;
  }

  /// A program that prints the request, and ends with code 7.
  http::Response exec(const http::Request& request) {
    const auto exec_request = api::exec_request_from_parameters(request.query);
    if (!exec_request) return problem_answer(exec_request.error().code, exec_request.error().what);
    std::string text = exec_request->task + (exec_request->terminal ? " with a terminal:" : ":");
    for (const std::string& word : exec_request->command) text += " [" + word + "]";
    http::Response response;
    response.websocket = [text](const std::shared_ptr<http::WebSocket>& socket) {
      socket->send(http::WebSocket::Kind::kBinary, api::kOutputByte + text + "\n");
      socket->send(http::WebSocket::Kind::kText, api::terminal_exit_to_json({.code = 7}));
      socket->close(1000, "");
    };
    return response;
  }

  std::vector<job::Job> waiting() const {
    std::vector<job::Job> list = all();
    std::erase_if(list, [](const job::Job& job) { return job.phase != job::Phase::kQueued; });
    return list;
  }

  /// The first free name of a template, or of NAME, NAME-2 ...
  std::string free_name(const http::Request& request, const std::string& name) const {
    const auto pattern = request.query.find(std::string(api::kNameTemplate));
    const bool numbers = request.query.contains(std::string(api::kNameSuffix));
    if (pattern == request.query.end() && (!numbers || !jobs.contains(name))) return name;
    const std::string stem = pattern == request.query.end()
                                 ? name + "-"
                                 : pattern->second.substr(0, pattern->second.find('{'));
    int number = jobs.contains(stem.substr(0, stem.size() - 1)) ? 2 : 1;
    while (jobs.contains(stem + std::to_string(number))) ++number;
    return stem + std::to_string(number);
  }

  http::Response submit(const http::Request& request) {
    auto spec = api::spec_from_json(request.body);
    if (!spec) return problem_answer(base::ErrorCode::kInvalid, spec.error().what);
    if (!cluster.has_project(spec->project)) {
      return problem_answer(base::ErrorCode::kNotFound,
                            "there is no project '" + spec->project + "'");
    }
    const auto key = request.headers.find(std::string(api::kIdempotencyKey));
    const bool has_key = key != request.headers.end();
    if (has_key && name_of_key.contains(key->second)) {
      return {.status = 201, .body = api::job_to_json(jobs[name_of_key[key->second]])};
    }
    const bool is_dry_run = request.query.contains(std::string(api::kDryRun));
    spec->name = free_name(request, spec->name);
    if (spec->name == script.rival && !is_dry_run) jobs[spec->name].spec = *spec;
    if (script.unique_names && jobs.contains(spec->name)) {
      return problem_answer(base::ErrorCode::kConflict, "job '" + spec->name + "' exists already");
    }
    if (is_dry_run) return forecast(*spec);
    if (has_key) name_of_key[key->second] = spec->name;
    job::Job job{.id = "id-" + spec->name, .spec = *spec, .phase = job::Phase::kRunning};
    job.suspended = spec->held;
    const auto repeated = request.query.find(std::string(api::kRerunOf));
    if (repeated != request.query.end()) {
      job.origin = job::JobOrigin{.name = name_of(repeated->second), .id = repeated->second};
    }
    job.tasks = job::tasks_of(*spec);
    jobs[spec->name] = job;
    return {.status = 201, .body = api::job_to_json(job)};
  }

  http::Response forecast(const job::JobSpec& spec) const {
    if (spec.resources.gpus > 1) {
      return problem_answer(base::ErrorCode::kRefused, "no node has 2 GPUs");
    }
    return {.body = api::forecast_to_json({.reason = job::Remark{"all GPUs are taken"},
                                           .before = cluster.status_of(spec.project),
                                           .after = cluster.status_of(spec.project)})};
  }

  static http::Response explain(const job::Job& job) {
    job::Reason reason = job.reason;
    const int64_t gpu_milli = int64_t{1000} * job.spec.resources.gpus;
    constexpr int64_t kQuota = 2000;
    if (gpu_milli > kQuota && !job::is_preemptible(job.spec.scheduling)) {
      reason = job::OverCapacity{.job = job.spec.name,
                                 .project = {.name = job.spec.project},
                                 .is_quota = true,
                                 .resource = job::Resource::kGpu,
                                 .bound = kQuota,
                                 .requested = gpu_milli};
    }
    return {.body = api::explanation_to_json({.name = job.spec.name,
                                              .phase = job.phase,
                                              .reason = std::move(reason),
                                              .position = job.suspended ? 0 : 1})};
  }

  static http::Response set_labels(job::Job& job, const std::string& body) {
    const auto changes = api::label_changes_from_json(body);
    if (!changes) return problem_answer(changes.error().code, changes.error().what);
    for (const auto& [name, value] : *changes) {
      if (value) job.spec.labels[name] = *value;
      if (!value) job.spec.labels.erase(name);
    }
    return {.body = api::job_to_json(job)};
  }

  /// Suspends or resumes a job; a resumed job waits.
  static http::Response hold(job::Job& job, const std::string& path) {
    if (job::is_final(job.phase)) {
      return problem_answer(base::ErrorCode::kConflict, "job '" + job.spec.name + "' has ended");
    }
    job.phase = job::Phase::kQueued;
    job.suspended = path.ends_with("/suspend");
    const job::Remark now{job.suspended ? "is suspended" : "waits for room"};
    job.reason = now;
    job.events.push_back({base::FakeClock().now(), now});
    return {.body = api::job_to_json(job)};
  }

  http::Response logs(job::Job& job) {
    tape = std::make_shared<Tape>();
    const bool breaks =
        script.always_breaks || (script.break_after >= 0 && !std::exchange(broke, true));
    for (const job::LogRecord& record : script.records) {
      if (breaks && std::cmp_equal(tape->pieces.size(), script.break_after)) break;
      tape->pieces.push_back(event(api::kLogEvent, api::log_record_to_json(record)));
    }
    tape->stays_open = script.runs_on && !job::is_final(job.phase);
    if (!breaks && !tape->stays_open) tape->pieces.push_back(end(job, script.end));
    if (script.signal != 0) ::kill(::getpid(), script.signal);
    return {.content_type = "text/event-stream", .stream = std::make_shared<TapeStream>(tape)};
  }

  /// Ends a running job, and returns the event of its end.
  std::string end(job::Job& job, job::Phase phase) const {
    if (!job::is_final(job.phase)) {
      job.phase = phase;
      job.exit_code = script.exit_code;
      if (phase == job::Phase::kFailed) {
        job.failure = job::Failure{.task = "main", .cause = job::Remark{"main went wrong"}};
      }
    }
    return event(api::kEndEvent, api::job_to_json(job));
  }

  http::Response stop(job::Job& job) {
    job.stop_requested = true;
    if (script.settles_when_watched) return {.body = api::job_to_json(job)};
    const std::string last = end(job, job::Phase::kStopped);
    if (tape && tape->waiting) {
      tape->pieces.push_back(last);
      tape->stays_open = false;
      std::exchange(tape->waiting, nullptr)(last);
    }
    return {.body = api::job_to_json(job)};
  }

  http::Response remove(const job::Job& job) {
    if (!job::is_final(job.phase)) {
      return problem_answer(base::ErrorCode::kConflict, "job '" + job.spec.name + "' still runs");
    }
    jobs.erase(job.spec.name);
    return {.status = 204};
  }

  Script script;
  FakeCluster cluster;
  FakeAccounts accounts;
  std::map<std::string, job::Job> jobs;
  std::map<std::string, job::Job> members;         ///< of arrays, that are not jobs
  int member_requests = 0;                         ///< requests for them
  std::map<std::string, std::string> name_of_key;  ///< idempotency key -> name of its job
  std::vector<std::string> requests;
  std::vector<http::Respond> unanswered;  ///< requests that wait for ever
  std::shared_ptr<Tape> tape;
  bool broke = false;
  http::Server server;
};

FakeServer::FakeServer(const std::filesystem::path& socket, Script script)
    : state_(std::make_unique<State>(loop_, std::move(script))) {
  if (const auto listening = state_->server.listen(socket); !listening) {
    std::cerr << listening.error().to_string() << "\n";
    std::abort();
  }
  if (state_->script.tls) listen_on_tls();
  thread_ = std::thread([this] {
    // The command line's thread must receive the signals of a test.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    loop_.run();
  });
}

void FakeServer::listen_on_tls() {
  auto identity = http::make_self_signed({"127.0.0.1", "localhost"}, base::SystemClock().now(),
                                         std::chrono::hours(24));
  if (identity) identity_ = *std::move(identity);
  const auto address = state_->server.listen("127.0.0.1:0", identity_);
  if (!address) {
    std::cerr << address.error().to_string() << "\n";
    std::abort();
  }
  url_ = "https://" + *address;
}

std::string FakeServer::fingerprint() const {
  const auto fingerprint = http::fingerprint_of(identity_.certificate);
  return fingerprint ? *fingerprint : "";
}

std::string FakeServer::first_token() const {
  return state_->accounts.first_token();
}

FakeServer::~FakeServer() {
  loop_.post([this] {
    state_->server.close();
    loop_.stop();
  });
  thread_.join();
}

std::vector<std::string> FakeServer::requests() {
  std::promise<std::vector<std::string>> promise;
  loop_.post([&] { promise.set_value(state_->requests); });
  return promise.get_future().get();
}

namespace {

/// "team-a" and "drain" of "/v1/nodes/team-a/drain".
std::pair<std::string, std::string> parts_below(const std::string& path, std::string_view root) {
  const std::string rest = path.size() > root.size() ? path.substr(root.size() + 1) : "";
  const size_t slash = rest.find('/');
  return {rest.substr(0, slash), slash == std::string::npos ? "" : rest.substr(slash + 1)};
}

}  // namespace

FakeCluster::FakeCluster() {
  projects_["default"].name = "default";
  nodes_["gpu-7"] = {.name = "gpu-7", .pool = "default", .state = "ready"};
  nodes_["gpu-8"] = {.name = "gpu-8", .pool = "default", .state = "ready", .jobs = {"a", "b"}};
}

job::ProjectStatus FakeCluster::status_of(const std::string& project) const {
  const auto found = projects_.find(project);
  if (found == projects_.end()) return {};
  return {.project = found->second, .deserved = found->second.quota.deserved};
}

std::optional<http::Response> FakeCluster::answer(const http::Request& request) {
  if (request.path.starts_with(api::kProjectsPath)) {
    return answer_project(request, parts_below(request.path, api::kProjectsPath).first);
  }
  if (!request.path.starts_with(api::kNodesPath)) return std::nullopt;
  const auto [name, action] = parts_below(request.path, api::kNodesPath);
  return answer_node(name, action);
}

http::Response FakeCluster::answer_project(const http::Request& request, const std::string& name) {
  const std::string& method = request.method;
  if (name.empty() && method == "GET") {
    std::vector<job::ProjectStatus> all;
    for (const auto& [known, project] : projects_) all.push_back(status_of(known));
    return {.body = api::projects_to_json(all)};
  }
  if (!name.empty() && !projects_.contains(name)) return not_found_answer("project '" + name + "'");
  if (method == "GET") return {.body = api::project_to_json(status_of(name))};
  if (method == "DELETE") {
    projects_.erase(name);
    return {.status = 204};
  }
  const auto project =
      api::read_project(request.body, name.empty() ? job::Project{} : projects_.at(name));
  if (!project) return problem_answer(project.error());
  projects_[project->name] = *project;
  return {.status = name.empty() ? 201 : 200,
          .body = api::project_to_json(status_of(project->name))};
}

http::Response FakeCluster::answer_node(const std::string& name, const std::string& action) {
  if (name.empty()) {
    std::vector<job::Node> all;
    for (const auto& [known, node] : nodes_) all.push_back(node);
    return {.body = api::nodes_to_json(all)};
  }
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return not_found_answer("node '" + name + "'");
  job::Node& node = found->second;
  if (action == api::kCordonAction) node.state = "cordoned";
  if (action == api::kUncordonAction) node.state = "ready";
  if (action == api::kDrainAction) node.state = "draining";
  return {.body = api::node_to_json(node)};
}

}  // namespace muster::cli
