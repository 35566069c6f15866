// What one caller sees of the cluster: its projects' jobs and nothing of the others', not even in
// the sentences that say why its own jobs wait.
//
// On the EventLoop's thread. A view for the time of one request: the controller must outlive it.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "access/identity.h"
#include "base/result.h"
#include "control/controller.h"
#include "job/forecast.h"
#include "job/job.h"
#include "job/node.h"
#include "job/project.h"
#include "words/sight.h"

namespace muster::server {

class Sight {
 public:
  /// `who` must outlive it, too.
  Sight(const control::Controller& controller, const access::Identity& who)
      : controller_(controller), who_(who) {}

  access::Role role_in(const std::string& project) const;
  bool sees(const job::Job& job) const;
  bool sees_project(const std::string& project) const;
  bool sees_all() const { return who_.sees_everything(); }

  /// The job that the caller means, if it has `needed` in its project. A job that it does not see
  /// is kNotFound, in the words of one that does not exist; one that it only sees and wants to
  /// change, kRefused. `project` is that of ?project=, or empty.
  base::Result<const job::Job*> job(const std::string& name, const std::string& project,
                                    access::Role needed) const;
  /// Without a sandbox a job can do whatever the server's account can, reading its database and
  /// what other projects have included: kRefused for whoever is not the server's admin.
  base::Result<void> may_run_in(job::Sandbox sandbox) const;
  /// kNotFound for one that it does not see; kRefused where its role there is too small.
  base::Result<void> project(const std::string& name, access::Role needed) const;

  // The same thing without what the caller must not see: other projects' names, jobs and counts.
  job::Job redacted(job::Job job) const;
  /// The same, with how far its program is.
  job::Job shown(job::Job job) const;
  job::Explanation redacted(job::Explanation explanation) const;
  job::Forecast redacted(job::Forecast forecast) const;
  job::Node redacted(job::Node node) const;
  job::ProjectStatus redacted(job::ProjectStatus project) const;
  job::Fact redacted(job::Fact fact) const;
  /// A sentence about what the caller may see, where the error has such a detail.
  base::Error redacted(base::Error error) const;

 private:
  access::Role role_over(const job::Job& job) const;
  bool sees(const job::JobRef& job) const;
  words::Sight as_words() const;
  std::vector<const job::Job*> meant_by(const std::string& name, const std::string& project) const;
  base::Error no_such_job(const std::string& name) const;
  base::Error no_such_project(const std::string& name) const;

  const control::Controller& controller_;
  const access::Identity& who_;
  mutable std::unordered_map<std::string, access::Role> roles_;  ///< by project, once asked for
};

}  // namespace muster::server
