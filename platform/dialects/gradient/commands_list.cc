// experiments list and details, jobs list: looking at what there is.
#include <unistd.h>

#include "cli/common/interrupts.h"
#include "cli/common/report.h"
#include "cli/common/typed_input.h"
#include "cli/connection/commands.h"
#include "dialects/gradient/command_parts.h"
#include "dialects/gradient/job_pages.h"
#include "dialects/gradient/pager.h"
#include "dialects/gradient/views.h"

namespace muster::dialects::gradient {

namespace {

constexpr const char* kNothing = "No data found";

/// On a terminal, asks; anything but yes means no. Elsewhere nobody is there to answer: says how to
/// see the rest.
Result<bool> wants_more(size_t next_offset) {
  if (::isatty(STDIN_FILENO) != 1) {
    note("there are more; to see them: --offset " + std::to_string(next_offset));
    return false;
  }
  cli::Interrupts interrupts;
  MUSTER_TRY(
      const auto answer,
      cli::ask(STDIN_FILENO, "Do you want to continue? [y/N]: ", cli::Echo::kOn, interrupts));
  return answer == "y" || answer == "Y" || answer == "yes";
}

Result<int> show_pages(JobPages& pages, size_t limit, size_t offset) {
  MUSTER_TRY(const std::vector<job::Job> passed_over, pages.next(offset));
  while (true) {
    MUSTER_TRY(const std::vector<job::Job> jobs, pages.next(limit));
    if (jobs.empty()) MUSTER_CHECK(say(kNothing));
    if (!jobs.empty()) MUSTER_CHECK(cli::show(experiment_table(jobs).to_string()));
    MUSTER_TRY(const bool has_more, pages.has_more());
    if (!has_more) return cli::kExitDone;
    offset += jobs.size();
    MUSTER_TRY(const bool goes_on, wants_more(offset));
    if (!goes_on) return cli::kExitDone;
  }
}

/// Those of one experiment, or of all that are asked for.
Result<std::vector<job::Job>> experiments_of(cli::Connection& connection, const Asked& asked) {
  const cli::FlagReader& reader = asked.reader;
  if (reader.has("--experimentId")) {
    MUSTER_TRY(job::Job job, get_job(connection, reader.text("--experimentId")));
    return std::vector<job::Job>{std::move(job)};
  }
  const std::string project = reader.text("--projectId", reader.text("--project"));
  api::JobQuery query{.labels = words_of(asked, "--tag", ""),
                      .order = api::JobQuery::Order::kNewestFirst};
  if (!project.empty()) query.project = project;
  return connection.call([&](api::Client& client) { return client.list_all(query); });
}

}  // namespace

Result<int> list_experiments(Asked& asked) {
  constexpr int kPage = 20;
  const auto limit = static_cast<size_t>(number_from(asked, "--limit", kPage, 1));
  const auto offset = static_cast<size_t>(number_from(asked, "--offset", 0, 0));
  return with_server(asked, kFetch, "Project", [&](cli::Connection& connection) {
    JobPages pages(connection, words_of(asked, "--projectId", ""), words_of(asked, "--tag", ""));
    return show_pages(pages, limit, offset);
  });
}

Result<int> show_experiment(Asked& asked) {
  const std::string id = required(asked, "--id", "say which experiment");
  return with_server(asked, kFetch, "Experiment", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const job::Job job, get_job(connection, id));
    MUSTER_CHECK(show_table(experiment_details(job)));
    return cli::kExitDone;
  });
}

Result<int> list_jobs(Asked& asked) {
  const std::string entity = asked.reader.has("--experimentId") ? "Experiment" : "Project";
  return with_server(asked, kFetch, entity, [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const std::vector<job::Job> jobs, experiments_of(connection, asked));
    MUSTER_CHECK(jobs.empty() ? say(kNothing) : show_table(job_table(jobs)));
    return cli::kExitDone;
  });
}

}  // namespace muster::dialects::gradient
