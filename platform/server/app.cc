#include "server/app.h"

#include <unistd.h>

#include "api/log_query.h"
#include "api/routes.h"
#include "api/wire.h"
#include "base/log.h"
#include "http/server_sent_events.h"
#include "server/answers.h"
#include "server/log_stream.h"

namespace muster::server {

using base::Result;
using http::Request;
using http::Respond;

App::App(base::EventLoop& loop, control::Controller& controller, AppOptions options,
         std::function<void()> leave)
    : loop_(loop), controller_(controller), options_(std::move(options)), leave_(std::move(leave)) {
  add_routes();
  touch();
}

http::Handler App::handler() {
  return [this](const Request& request, Respond respond) {
    touch();
    router_.handle(request, std::move(respond));
  };
}

void App::add_routes() {
  router_.add("GET", "/v1/info", [this](const Request&, const PathValues&, const Respond& respond) {
    respond(json_answer(200, api::info_to_json({.version = options_.version,
                                                .pid = ::getpid(),
                                                .state_folder = options_.state_folder})));
  });
  router_.add("POST", "/v1/jobs",
              [this](const Request& request, const PathValues&, const Respond& respond) {
                submit(request, respond);
              });
  router_.add("GET", "/v1/jobs",
              [this](const Request&, const PathValues&, const Respond& respond) { list(respond); });
  router_.add("GET", "/v1/jobs/{name}",
              [this](const Request&, const PathValues& path, const Respond& respond) {
                const auto job = controller_.find(path.at("name"));
                respond(job ? json_answer(200, api::job_to_json(**job)) : problem(job.error()));
              });
  router_.add("DELETE", "/v1/jobs/{name}",
              [this](const Request&, const PathValues& path, const Respond& respond) {
                const auto removed = controller_.remove(path.at("name"));
                respond(removed ? http::Response{.status = 204} : problem(removed.error()));
              });
  router_.add("POST", "/v1/jobs/{name}/stop",
              [this](const Request& request, const PathValues& path, const Respond& respond) {
                const auto now = request.query.find("now");
                const auto job = controller_.stop(
                    path.at("name"), now != request.query.end() && now->second == "true");
                respond(job ? json_answer(200, api::job_to_json(*job)) : problem(job.error()));
              });
  router_.add("GET", "/v1/jobs/{name}/logs",
              [this](const Request& request, const PathValues& path, const Respond& respond) {
                logs(request, path.at("name"), respond);
              });
  router_.add("POST", "/v1/shutdown",
              [this](const Request&, const PathValues&, const Respond& respond) {
                respond({.status = 202});
                leaving_ = true;
                leave_();
              });
}

void App::submit(const Request& request, const Respond& respond) {
  const auto spec = api::spec_from_json(request.body);
  if (!spec) return respond(problem(spec.error()));
  const auto key = request.headers.find(std::string(api::kIdempotencyKey));
  const auto job =
      controller_.submit(*spec, key == request.headers.end() ? std::string() : key->second);
  respond(job ? json_answer(201, api::job_to_json(*job)) : problem(job.error()));
}

void App::list(const Respond& respond) const {
  std::vector<job::Job> jobs;
  for (const job::Job* job : controller_.list()) jobs.push_back(*job);
  respond(json_answer(200, api::jobs_to_json(jobs)));
}

void App::logs(const Request& request, const std::string& name, const Respond& respond) {
  const auto job = controller_.find(name);
  if (!job) return respond(problem(job.error()));
  const auto query = api::log_query_from_parameters(request.query);
  if (!query) return respond(problem(query.error()));
  if (query->task) {
    bool known = false;
    for (const job::Task& task : (*job)->tasks) known = known || task.name == *query->task;
    if (!known) {
      return respond(problem({.code = base::ErrorCode::kNotFound,
                              .what = "job '" + name + "' has no task '" + *query->task + "'",
                              .advice = "muster get " + name + " shows its tasks"}));
    }
  }
  respond({.content_type = std::string(http::kEventStream),
           .stream = std::make_shared<LogStream>(controller_, name, *query)});
}

void App::touch() {
  if (!options_.idle_exit) return;
  idle_timer_ = loop_.after(*options_.idle_exit, [this] { look_whether_idle(); });
}

void App::look_whether_idle() {
  if (!controller_.idle()) return touch();
  if (std::exchange(leaving_, true)) return;
  base::log_info("nothing runs and nobody asks: the server leaves");
  leave_();
}

}  // namespace muster::server
