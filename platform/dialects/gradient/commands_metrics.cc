// experiments metrics: what was measured, as Gradient's own program prints it.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/files.h"
#include "cli/common/interrupts.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "dialects/gradient/command_parts.h"
#include "dialects/gradient/command_tree_parts.h"
#include "dialects/gradient/metric_pods.h"
#include "dialects/gradient/metric_query.h"
#include "dialects/gradient/state.h"

namespace muster::dialects::gradient {

namespace {

using job::MetricSeries;
using std::chrono::milliseconds;
using Series = std::vector<MetricSeries>;

Result<Series> read_series(cli::Connection& connection, const std::string& id,
                           const job::MetricQuery& query) {
  return connection.call([&](api::Client& client) { return client.metrics(id, query); });
}

/// The names that the program itself has made up, each once.
std::vector<std::string> custom_names(const Series& series) {
  std::vector<std::string> names;
  for (const MetricSeries& one : series) {
    if (job::is_sampled(one.metric)) continue;
    if (std::find(names.begin(), names.end(), one.metric) == names.end()) {
      names.push_back(one.metric);
    }
  }
  return names;
}

enum class Which { kAsked, kCustom };

Result<int> show_metrics(Asked& asked, Which which) {
  const std::string id = required(asked, "--id", "say which experiment");
  const MetricQuery wish = read_metric_query(asked.reader, {});
  return with_server(asked, kFetch, "Experiment", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const job::Job job, get_job(connection, id));
    if (!has_started(job)) {
      note("Experiment has not started yet");
      return cli::kExitRefused;
    }
    // Without a start, all: nothing is measured before its tasks have started.
    job::MetricQuery query{.since = wish.start, .until = wish.end, .interval = wish.interval};
    if (which == Which::kAsked) query.metrics = metrics_behind(wish.metrics);
    MUSTER_TRY(const Series series, read_series(connection, job.id, query));
    const auto names = which == Which::kAsked ? wish.metrics : custom_names(series);
    MUSTER_CHECK(say(metrics_json(job, as_gradient_has_it(names, series))));
    return cli::kExitDone;
  });
}

/// The table, again and again in its place; on what is no terminal, one below the other.
class MetricsStream {
 public:
  MetricsStream(cli::Connection& connection, std::string id, MetricQuery wish)
      : connection_(connection), id_(std::move(id)), wish_(std::move(wish)) {}

  Result<int> run() {
    while (true) {
      // The job first: once it has ended, all that there will be is in the values behind it.
      MUSTER_TRY(const job::Job job, get_job(connection_, id_));
      MUSTER_CHECK(show_values(job));
      if (job::is_final(job.phase)) return cli::kExitDone;
      MUSTER_TRY(const bool goes_on, wait());
      if (!goes_on) return cli::kExitInterrupted;
    }
  }

 private:
  Result<void> show_values(const job::Job& job) {
    const job::MetricQuery query{.metrics = metrics_behind(wish_.metrics), .last = true};
    MUSTER_TRY(const Series series, read_series(connection_, job.id, query));
    const std::string text =
        metrics_table(job, wish_.metrics, as_gradient_has_it(wish_.metrics, series)).to_string();
    std::string back;
    if (lines_ > 0 && cli::terminal_of(STDOUT_FILENO).is_terminal) {
      back = "\x1b[" + std::to_string(lines_) + "A\x1b[J";
    }
    lines_ = std::count(text.begin(), text.end(), '\n');
    return base::write_all(STDOUT_FILENO, back + text);
  }

  /// Until the next table is due, or the experiment has ended. False: at Ctrl-C.
  Result<bool> wait() {
    constexpr milliseconds kLook{1000};
    for (milliseconds left = wish_.interval; left.count() > 0; left -= kLook) {
      pollfd entry{.fd = interrupts_.fd(), .events = POLLIN, .revents = 0};
      ::poll(&entry, 1, static_cast<int>(std::min(left, kLook).count()));
      if (interrupts_.take()) return false;
      MUSTER_TRY(const job::Job job, get_job(connection_, id_));
      if (job::is_final(job.phase)) return true;
    }
    return true;
  }

  cli::Connection& connection_;
  std::string id_;
  MetricQuery wish_;
  cli::Interrupts interrupts_;
  int64_t lines_ = 0;  ///< of the table that was shown last
};

}  // namespace

Result<int> get_metrics(Asked& asked) {
  return show_metrics(asked, Which::kAsked);
}

Result<int> list_metrics(Asked& asked) {
  return show_metrics(asked, Which::kCustom);
}

Result<int> stream_metrics(Asked& asked) {
  const std::string id = required(asked, "--id", "say which experiment");
  const MetricQuery wish = read_metric_query(asked.reader, built_in_metrics());
  return with_server(asked, kFetch, "Experiment", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const job::Job job, get_job(connection, id));
    if (!has_started(job)) {
      note("Experiment has not started yet");
      return cli::kExitRefused;
    }
    return MetricsStream(connection, job.id, wish).run();
  });
}

}  // namespace muster::dialects::gradient
