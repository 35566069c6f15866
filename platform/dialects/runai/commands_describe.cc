// describe job, and get, as it was called before.
#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "dialects/runai/others.h"
#include "dialects/runai/parts.h"
#include "dialects/runai/sentences.h"
#include "dialects/runai/views.h"

namespace muster::dialects::runai {

Result<int> describe_job_command(Asked& asked) {
  const std::string name = the_name(asked, "job");
  const cli::Output output = output_of(asked, {"table", "json", "yaml", "wide"});
  if (!asked.reader.ok()) return usage_error_of(asked);
  const bool wide = asked.reader.text("--output") == "wide";
  MUSTER_TRY(cli::Connection connection, connect(asked));
  MUSTER_TRY(const job::Job job, find_job(connection, name, project_of(asked)));
  const base::Time now = asked.caller.now;
  MUSTER_CHECK(cli::show(output, job_description(job, now, wide), job_description_json(job, now)));
  return cli::kExitDone;
}

}  // namespace muster::dialects::runai
