// describe job, and get, as it was called before.
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/runai/others.h"
#include "cli/runai/parts.h"
#include "cli/runai/sentences.h"
#include "cli/runai/views.h"

namespace muster::cli::runai {

Result<int> describe_job_command(Asked& asked) {
  const std::string name = the_name(asked, "job");
  const Output output = output_of(asked, {"table", "json", "yaml", "wide"});
  if (!asked.reader.ok()) return usage_error_of(asked);
  const bool wide = asked.reader.text("--output") == "wide";
  MUSTER_TRY(Connection connection, connect(asked));
  MUSTER_TRY(const job::Job job, find_job(connection, name, project_of(asked)));
  const base::Time now = asked.caller.now;
  MUSTER_CHECK(show(output, job_description(job, now, wide), job_description_json(job, now)));
  return kExitDone;
}

}  // namespace muster::cli::runai
