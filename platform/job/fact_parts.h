// The parts of facts (job/fact.h): references to jobs and projects, holders of resources, the
// rights of a project, and the number of workers.
//
// words::seen_by() removes what a reader may not see from JobRef, ProjectRef, Holders, ProjectShare
// and Others, wherever they occur.
//
// Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/amounts.h"
#include "job/spec.h"

namespace muster::job {

enum class Phase { kQueued, kStarting, kRunning, kSucceeded, kFailed, kStopped };
/// In the order of their values.
inline constexpr std::array kAllPhases{Phase::kQueued,    Phase::kStarting, Phase::kRunning,
                                       Phase::kSucceeded, Phase::kFailed,   Phase::kStopped};

/// "Queued", "Running" ...: as in the API and in listings.
std::string_view to_string(Phase phase);
std::optional<Phase> phase_of(std::string_view name);

/// Succeeded, Failed or Stopped: no task of the job runs or will run.
bool is_final(Phase phase);

/// Another job.
struct JobRef {
  std::string id;
  std::string name;
  std::string project;
  bool hidden = false;  ///< the reader may not see it, and the other fields are empty

  bool operator==(const JobRef&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("id", self.id);
    visit("name", self.name);
    visit("project", self.project);
    visit("hidden", self.hidden);
  }
};

/// The end of another job, for which a job waits.
struct AwaitedEnd {
  JobRef job;
  Dependency::Condition condition = Dependency::Condition::kOk;

  bool operator==(const AwaitedEnd&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("job", self.job);
    visit("condition", self.condition);
  }
};

struct ProjectRef {
  std::string name;
  std::string above;    ///< the subproject concerned; empty: `name` itself
  bool hidden = false;  ///< the reader may not see it, and `name` is empty

  bool operator==(const ProjectRef&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("name", self.name);
    visit("above", self.above);
    visit("hidden", self.hidden);
  }
};

/// The number of tasks or jobs of other projects; nothing: the reader may not see it.
struct Others {
  std::optional<int> count;

  bool operator==(const Others&) const = default;
  static void fields(auto& self, auto&& visit) { visit("count", self.count); }
};

/// The amount that a project or a job holds.
struct Holding {
  std::optional<JobRef> job;  ///< nothing: all jobs of `project`
  std::string project;
  int64_t amount = 0;

  bool operator==(const Holding&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("job", self.job);
    visit("project", self.project);
    visit("amount", self.amount);
  }
};

/// The largest holders of a resource, in descending order.
struct Holders {
  Resource resource = Resource::kGpu;
  std::vector<Holding> named;
  int more = 0;             ///< the number of other holders
  int64_t more_amount = 0;  ///< the amount that they hold, if known
  bool hidden = false;      ///< some holders were removed, and `more` with them

  bool operator==(const Holders&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("resource", self.resource);
    visit("named", self.named);
    visit("more", self.more);
    visit("more_amount", self.more_amount);
    visit("hidden", self.hidden);
  }
};

/// The use and the rights of a project when resources were taken from it or for it.
struct ProjectShare {
  ProjectRef project;
  Amounts uses;
  Amounts quota;
  Amounts fair_share;
  int priority = 0;

  bool operator==(const ProjectShare&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("project", self.project);
    visit("uses", self.uses);
    visit("quota", self.quota);
    visit("fair_share", self.fair_share);
    visit("priority", self.priority);
  }
};

/// "2 of 4 workers"
struct Workers {
  int count = 0;
  int requested = 0;

  bool operator==(const Workers&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("count", self.count);
    visit("wanted", self.requested);
  }
};

/// A sentence that names no other job, project or user; no decision depends on it.
struct Remark {
  static constexpr std::string_view kKind = "remark";
  std::string text;

  bool operator==(const Remark&) const = default;
  static void fields(auto& self, auto&& visit) { visit("text", self.text); }
};

}  // namespace muster::job
