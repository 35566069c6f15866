// experiments metrics. What a machine does is not sampled: so there are none, and that is said.
#include "cli/gradient/command_parts.h"
#include "cli/gradient/command_tree_parts.h"
#include "cli/gradient/metric_query.h"
#include "cli/gradient/state.h"
#include "cli/report.h"

namespace muster::cli::gradient {

namespace {

constexpr const char* kNotSampled = "this server samples no metrics";

/// Gradient prints an empty dictionary where there are none.
Result<int> show_none(Asked& asked, const std::vector<std::string>& known) {
  const std::string id = required(asked, "--id", "say which experiment");
  read_metric_query(asked.reader, known);
  return with_server(asked, kFetch, "Experiment", [&](Connection& connection) -> Result<int> {
    MUSTER_TRY(const job::Job job,
               connection.call([&](api::Client& client) { return client.get(id); }));
    if (!has_started(job)) {
      note("Experiment has not started yet");
      return kExitRefused;
    }
    note(kNotSampled);
    MUSTER_CHECK(say("{}"));
    return kExitDone;
  });
}

}  // namespace

Result<int> get_metrics(Asked& asked) {
  return show_none(asked, {});
}

Result<int> list_metrics(Asked& asked) {
  return show_none(asked, {});
}

Result<int> stream_metrics(Asked& asked) {
  const std::string id = required(asked, "--id", "say which experiment");
  read_metric_query(asked.reader, built_in_metrics());
  return with_server(asked, kFetch, "Experiment", [&](Connection& connection) -> Result<int> {
    MUSTER_CHECK(connection.call([&](api::Client& client) { return client.get(id); }));
    return base::Error{
        .code = base::ErrorCode::kRefused,
        .what = std::string(kNotSampled) + ", so there are none to stream",
        .advice = "what it prints: gradient experiments logs --id " + id + " --follow",
        .faults = {}};
  });
}

}  // namespace muster::cli::gradient
