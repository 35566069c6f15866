#include "control/start_conditions.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "control/unknown_name.h"

namespace muster::control {

using Condition = job::Dependency::Condition;
using job::Phase;

bool meets(Condition condition, Phase phase) {
  switch (condition) {
    case Condition::kOk:
      return phase == Phase::kSucceeded;
    case Condition::kAny:
      return job::is_final(phase);
    case Condition::kFailed:
      break;
  }
  return phase == Phase::kFailed || phase == Phase::kStopped;
}

namespace {

bool is_met_now(const StartConditions::Awaited& awaited) {
  if (awaited.is_met) return true;
  // Only ended jobs are deleted.
  if (!awaited.phase) return awaited.end.condition == Condition::kAny;
  return meets(awaited.end.condition, *awaited.phase);
}

bool is_never_met(const StartConditions::Awaited& awaited) {
  return !is_met_now(awaited) && (!awaited.phase || job::is_final(*awaited.phase));
}

}  // namespace

StartDecision decide_start(const StartConditions& conditions, base::Time now) {
  StartDecision decision;
  job::WaitsForJobs open;
  for (const StartConditions::Awaited& awaited : conditions.after) {
    if (is_never_met(awaited)) {
      decision.what = StartDecision::What::kNever;
      decision.unmet = {.awaited = awaited.end, .phase = awaited.phase};
      return decision;
    }
    if (!is_met_now(awaited)) open.jobs.push_back(awaited.end);
  }
  std::vector<std::pair<job::Fact, std::string>> reasons;
  if (!conditions.unisolated.empty()) {
    reasons.emplace_back(job::WaitsForIsolation{.owner = conditions.unisolated}, "isolation");
  }
  if (!open.jobs.empty()) reasons.emplace_back(std::move(open), "dependency");
  if (conditions.ahead) {
    reasons.emplace_back(
        job::WaitsForSingleton{.job = *conditions.ahead, .singleton = conditions.singleton},
        "singleton");
  }
  if (conditions.begin && *conditions.begin > now) {
    reasons.emplace_back(job::WaitsUntil{*conditions.begin}, "begin");
    decision.may_start = conditions.begin;
  }
  if (reasons.empty()) return decision;
  decision.what = StartDecision::What::kWaits;
  decision.reason = std::move(reasons.front().first);
  decision.constraint = reasons.front().second;
  for (auto& reason : std::vector(reasons.begin() + 1, reasons.end())) {
    decision.reason.details.emplace_back(std::move(reason.first));
  }
  return decision;
}

std::optional<job::AwaitedJob> OtherJobs::find(const job::Dependency& dependency,
                                               const std::string& project) const {
  const std::string& name = dependency.job;
  const auto by_id = jobs.facts_with_id(name);
  if (by_id && by_id->project == project) {
    return job::AwaitedJob{.id = std::string(by_id->id), .name = std::string(by_id->name)};
  }
  for (const job::Job* const job : jobs.named(name)) {
    if (job->spec.project == project) return job::AwaitedJob{.id = job->id, .name = job->spec.name};
  }
  return find_in_arrays ? find_in_arrays(name, project) : std::nullopt;
}

std::optional<job::Phase> OtherJobs::phase_of(const std::string& id) const {
  if (const auto job = jobs.facts_with_id(id)) return job->phase;
  return phase_in_arrays ? phase_in_arrays(id) : std::nullopt;
}

namespace {

/// The same dependency of an earlier job of the project, if it was met.
std::optional<job::AwaitedJob> met_by(const job::Job* earlier, const job::Dependency& dependency,
                                      const std::string& project) {
  if (earlier == nullptr || earlier->spec.project != project) return std::nullopt;
  const auto& after = earlier->spec.after;
  for (size_t i = 0; i < std::min(after.size(), earlier->awaited.size()); ++i) {
    if (after[i] == dependency && earlier->awaited[i].is_met) return earlier->awaited[i];
  }
  return std::nullopt;
}

}  // namespace

base::Result<std::vector<job::AwaitedJob>> resolve_dependencies(const job::JobSpec& spec,
                                                                const OtherJobs& others,
                                                                const job::Job* repeated) {
  std::vector<job::AwaitedJob> resolved;
  std::vector<base::Fault> faults;
  for (size_t i = 0; i < spec.after.size(); ++i) {
    const job::Dependency& dependency = spec.after[i];
    const std::string field = "after[" + std::to_string(i) + "]";
    auto other = others.find(dependency, spec.project);
    if (!other) other = met_by(repeated, dependency, spec.project);
    if (other) {
      resolved.push_back(*std::move(other));
      continue;
    }
    std::vector<std::string> names;
    others.jobs.each_job(true, std::nullopt, [&](const job::JobFacts& job) {
      if (job.project == spec.project) names.emplace_back(job.name);
      return names.size() < kMostComparedNames;
    });
    const std::string near = base::nearest(dependency.job, names);
    faults.push_back(
        {.field = field + ".job",
         .what = "project " + name_in_quotes(spec.project) + " has no job " +
                 name_in_quotes(dependency.job) +
                 (near.empty() ? "" : "; did you mean " + name_in_quotes(near) + "?")});
  }
  if (faults.empty()) return resolved;
  return base::Error{.code = base::ErrorCode::kNotFound,
                     .what = "job " + name_in_quotes(spec.name) + " cannot wait for these jobs",
                     .advice = "muster list --project " + spec.project +
                               " shows the jobs there are" +
                               (repeated == nullptr ? "" : "; to wait for no job: --set after=[]"),
                     .faults = std::move(faults)};
}

std::vector<job::AwaitedJob> dependencies_of_made(const job::JobSpec& spec,
                                                  const job::JobOrigin& origin,
                                                  const OtherJobs& others,
                                                  const std::vector<job::AwaitedJob>& noted) {
  std::vector<job::AwaitedJob> resolved;
  for (size_t i = 0; i < spec.after.size(); ++i) {
    if (i < noted.size() && !noted[i].id.empty()) {
      resolved.push_back(noted[i]);
      continue;
    }
    const std::string& name = spec.after[i].job;
    if (auto other = others.find(spec.after[i], spec.project)) {
      resolved.push_back(*std::move(other));
      continue;
    }
    // The result of a deleted sibling is unknown: the dependency cannot hold any more.
    const bool is_sibling = origin.kind == job::JobOrigin::Kind::kArray &&
                            name.ends_with("-" + std::to_string(origin.member));
    resolved.push_back({.id = name, .name = name, .is_met = !is_sibling});
    if (is_sibling) continue;
    others.jobs.each_job(true, std::nullopt, [&](const job::JobFacts& facts) {
      if (!facts.origin || facts.origin->id != origin.id) return true;
      const job::Job* const earlier = others.jobs.with_id(std::string(facts.id));
      const bool is_alike = earlier->awaited.size() == spec.after.size();
      if (is_alike) resolved.back() = earlier->awaited[i];
      return !is_alike;
    });
  }
  return resolved;
}

std::vector<job::AwaitedJob> dependencies_of_array(const job::JobSpec& spec,
                                                   const OtherJobs& others) {
  std::vector<job::AwaitedJob> resolved;
  for (const job::Dependency& dependency : spec.after) {
    job::AwaitedJob& awaited = resolved.emplace_back();
    if (dependency.by_member) continue;
    if (auto other = others.find(dependency, spec.project)) awaited = *std::move(other);
  }
  return resolved;
}

}  // namespace muster::control
