// The jobs of several projects as one listing, newest first, read from the server as far as they
// are wanted: a page costs a request for each project, be there ever so many jobs.
//
// Blocking; not thread-safe.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "api/job_query.h"
#include "base/result.h"
#include "cli/connection/connection.h"
#include "job/job.h"

namespace muster::dialects::gradient {

class JobPages {
 public:
  /// No projects: all that the caller may see. `tags`: jobs have all of them. `connection` outlives
  /// this.
  JobPages(cli::Connection& connection, const std::vector<std::string>& projects,
           const std::vector<std::string>& tags);

  /// The next `count`, or as many as are left.
  base::Result<std::vector<job::Job>> next(size_t count);

  /// Whether another would follow. Asks the server only where it cannot be known.
  base::Result<bool> has_more();

 private:
  /// One project's jobs, newest first.
  struct Source {
    api::JobQuery query;
    std::deque<job::Job> read;  ///< but not handed out yet
    bool is_read_out = false;   ///< there is nothing behind these
  };

  /// Reads on where nothing is left to hand out, `wanted` at a time.
  base::Result<void> fill(size_t wanted);
  Source* newest();

  cli::Connection& connection_;
  std::vector<Source> sources_;
};

}  // namespace muster::dialects::gradient
