// The part of the cluster that one caller sees: the jobs of its projects. Other projects are
// hidden, also in the reasons of its own jobs.
//
// On the EventLoop's thread. A Sight lives for one request: the controller must outlive it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "base/result.h"
#include "control/controller.h"
#include "job/forecast.h"
#include "job/job.h"
#include "job/node.h"
#include "job/project.h"
#include "sweep/sweep.h"
#include "words/sight.h"

namespace muster::server {

class Sight {
 public:
  /// `who` must outlive the Sight, too.
  Sight(const control::Controller& controller, const access::Identity& who)
      : controller_(controller), who_(who) {}

  access::Role role_in(std::string_view project) const;
  bool sees(const job::Job& job) const;
  bool sees(const job::JobFacts& job) const;
  /// Whether the caller could see the removed job of this change.
  bool saw(const control::ChangeFeed::Change& removal) const;
  bool sees_project(const std::string& project) const;
  bool sees_all() const { return who_.sees_everything(); }

  /// The named job, if the caller has the role `needed` in its project. kNotFound for a job that
  /// the caller does not see, with the same message as for a job that does not exist; kRefused if
  /// the caller sees the job but has a smaller role. `project` is the value of ?project=, or empty.
  base::Result<const job::Job*> job(const std::string& name, const std::string& project,
                                    access::Role needed) const;
  /// The same for an array.
  base::Result<job::Array> array(const std::string& name, const std::string& project,
                                 access::Role needed) const;
  /// The same for a member of an array that has no job: it has not started yet, or its job is no
  /// longer kept. kNotFound for any other name.
  base::Result<control::Arrays::JoblessMember> jobless(const std::string& name,
                                                       const std::string& project,
                                                       access::Role needed) const;
  bool sees(const job::Array& array) const;
  bool sees(const control::ArrayFacts& array) const;
  bool sees(const sweep::SweepSummary& sweep) const;
  /// kRefused for a job without a sandbox, unless the caller is an admin of the server: such a job
  /// can do everything that the server's account can, including reading the server's database.
  base::Result<void> may_run_in(job::Sandbox sandbox) const;
  /// kNotFound for a project that the caller does not see; kRefused if its role there is too small.
  base::Result<void> project(const std::string& name, access::Role needed) const;

  /// The same for the project of a spec, which is `default` if the spec names none: then the error
  /// names the projects that the caller may choose.
  base::Result<void> project_of_spec(const std::string& name, access::Role needed) const;

  // A copy without names, jobs and counts of projects that the caller does not see.
  job::Job redacted(job::Job job) const;
  /// The same, with the progress of its program.
  job::Job shown(job::Job job) const;
  /// The same of an array, with the reasons of its failed members.
  job::Array shown(job::Array array) const;
  job::Explanation redacted(job::Explanation explanation) const;
  job::Forecast redacted(job::Forecast forecast) const;
  job::Node redacted(job::Node node) const;
  job::ProjectStatus redacted(job::ProjectStatus project) const;
  access::AuditRecord redacted(access::AuditRecord record) const;
  job::Fact redacted(job::Fact fact) const;
  /// The error with a message that names only what the caller may see.
  base::Error redacted(base::Error error) const;

 private:
  access::Role role_over(const job::JobFacts& job) const;
  bool sees(const job::JobRef& job) const;
  words::Sight as_words() const;
  std::vector<control::ArrayFacts> arrays_named(const std::string& name,
                                                const std::string& project) const;
  std::vector<control::Arrays::JoblessMember> jobless_named(const std::string& name,
                                                            const std::string& project) const;
  std::vector<const job::Job*> jobs_named(const std::string& name,
                                          const std::string& project) const;
  base::Error no_such_job_or_yet(const std::string& name, const std::string& project) const;
  std::optional<base::Error> is_another_object(const std::string& name,
                                               const std::string& project) const;
  std::optional<base::Error> no_such_member(const std::string& name,
                                            const std::string& project) const;
  base::Error no_such_job(const std::string& name, const std::string& project) const;
  base::Error no_such_project(const std::string& name) const;

  const control::Controller& controller_;
  const access::Identity& who_;
  mutable std::map<std::string, access::Role, std::less<>>
      roles_;  ///< by project; filled on demand
};

}  // namespace muster::server
