#include "notify/payload.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"
#include "words/sentence.h"
#include "words/sight.h"

namespace muster::notify {

using nlohmann::ordered_json;

namespace {

ordered_json time_of(const std::optional<base::Time>& time) {
  return time ? ordered_json(base::to_rfc3339(*time)) : ordered_json();
}

/// As for a member of the job's project, because the body leaves the server.
std::string reason_of(const job::Job& job) {
  return words::sentence(words::seen_by(words::sight_of_project(job.spec.project), job.reason));
}

ordered_json job_of(const job::Job& job) {
  return {{"name", job.spec.name},
          {"id", job.id},
          {"kind", job::to_string(job.spec.kind)},
          {"owner", job.owner},
          {"labels", job.spec.labels},
          {"phase", job::to_string(job.phase)},
          {"reason", reason_of(job)},
          {"attempt", job.attempt},
          {"exit_code", job.exit_code ? ordered_json(*job.exit_code) : ordered_json()},
          {"submitted", base::to_rfc3339(job.submitted)},
          {"started", time_of(job.started)},
          {"ended", time_of(job.ended)}};
}

ordered_json failure_of(const job::Failure& failure, PayloadLines lines) {
  ordered_json json = {{"task", failure.task},
                       {"rank", failure.rank ? ordered_json(*failure.rank) : ordered_json()},
                       {"cause", words::sentence(failure.cause)},
                       {"advice", failure.advice}};
  if (lines == PayloadLines::kOfFailure) json["last_lines"] = failure.last_lines;
  return json;
}

ordered_json envelope(const std::string& event, const std::string& id, base::Time time,
                      const std::string& project) {
  return {{"id", id}, {"event", event}, {"time", base::to_rfc3339(time)}, {"project", project}};
}

/// Names and lines may contain any bytes.
std::string text_of(const ordered_json& json) {
  return base::json_text(json);
}

/// The phase at the event: a short job may have ended before its start is sent.
job::Job as_of(const job::Job& job, job::Happening happening) {
  job::Job then = job;
  if (happening != job::Happening::kStarted || !job::is_final(job.phase)) return then;
  then.phase = job::Phase::kRunning;
  then.reason = {};
  then.exit_code.reset();
  then.ended.reset();
  return then;
}

}  // namespace

std::string payload_of(const job::Job& job, job::Happening happening, const std::string& id,
                       base::Time time, PayloadLines lines) {
  ordered_json json = envelope(event_name(happening), id, time, job.spec.project);
  json["job"] = job_of(as_of(job, happening));
  if (happening == job::Happening::kFailed && job.failure) {
    json["failure"] = failure_of(*job.failure, lines);
  }
  return text_of(json);
}

std::string payload_of(const job::ObjectEnd& end, const std::string& id, base::Time time) {
  ordered_json json = envelope(event_name(happening_of(end), end.kind), id, time, end.project);
  ordered_json& object = json[end.kind];
  object = {{"name", end.name},
            {"id", end.id},
            {"owner", end.owner},
            {"labels", end.labels},
            {"phase", job::to_string(end.phase)},
            {"counts", end.counts},
            {"submitted", base::to_rfc3339(end.submitted)},
            {"ended", base::to_rfc3339(end.ended)}};
  if (end.best) {
    object["best"] = {{"job", *end.best},
                      {"metric", end.metric ? ordered_json(*end.metric) : ordered_json()}};
  }
  return text_of(json);
}

std::string ping_payload(const std::string& project, const std::string& id, base::Time time) {
  return text_of(envelope(event_name(job::Happening::kPing), id, time, project));
}

std::string event_name(job::Happening happening, const std::string& object) {
  std::string name(job::to_string(happening));
  if (happening == job::Happening::kPing) return name;
  return (object.empty() ? "job" : object) + "." + name;
}

job::Happening happening_of(const job::ObjectEnd& end) {
  return end.phase == job::Phase::kSucceeded ? job::Happening::kSucceeded
         : end.phase == job::Phase::kFailed  ? job::Happening::kFailed
                                             : job::Happening::kStopped;
}

using job::Happening;
using job::Phase;

ObservedState standing_of(const job::Job& job) {
  return {.phase = job.phase, .started = job.started};
}

std::vector<Happening> happenings_between(const ObservedState& before, const job::Job& now) {
  std::vector<Happening> happenings;
  const bool ran = before.phase == Phase::kRunning;
  const bool runs_anew = now.started && now.started != before.started;
  const bool waits = now.phase == Phase::kQueued || now.phase == Phase::kStarting;
  if (ran && (waits || runs_anew)) happenings.push_back(Happening::kRequeued);
  if (runs_anew) happenings.push_back(Happening::kStarted);
  if (now.phase == before.phase) return happenings;
  if (now.phase == Phase::kSucceeded) happenings.push_back(Happening::kSucceeded);
  if (now.phase == Phase::kFailed) happenings.push_back(Happening::kFailed);
  if (now.phase == Phase::kStopped) happenings.push_back(Happening::kStopped);
  return happenings;
}

}  // namespace muster::notify
