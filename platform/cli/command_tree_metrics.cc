// metrics: what is measured of a job.
#include "cli/command_parts.h"

namespace muster::cli {

std::vector<Command> commands_on_metrics() {
  constexpr size_t kMostMetrics = 32;
  return {{.name = "metrics",
           .help = "what a job's tasks use and what its program reports: tables, charts, values",
           .positionals = {.name = "NAME [METRIC...]",
                           .least = 1,
                           .most = 1 + kMostMetrics,
                           .offer = Offer::kJobs},
           .flags = Flags{{.name = "--metric",
                           .value = "METRIC",
                           .help = "draw this one over time; the same as its name behind the job's",
                           .repeats = true},
                          {.name = "--task", .value = "TASK", .help = "only of this task"},
                          {.name = "--rank", .value = "N", .help = "only of this rank"},
                          {.name = "--since",
                           .value = "TIME",
                           .help = "only from then on: 10m ago, or 2026-01-31T12:00:00Z"},
                          {.name = "--interval",
                           .value = "TIME",
                           .help = "one value for each such time, the mean: 30s, 1m"},
                          {.name = "--follow",
                           .letter = "-f",
                           .help = "redraw as values come, until the job has ended; q leaves"},
                          {.name = "--svg",
                           .value = "FILE",
                           .help = "write the chart to this file; -: to standard output",
                           .offer = Offer::kFiles}} +
                    whose_job_flag() + output_flag({"table", "json", "csv"}),
           .example = "muster metrics dist loss accuracy --follow"}};
}

}  // namespace muster::cli
