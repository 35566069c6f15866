// The command on what is measured of jobs.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "cli/invocation_reading.h"
#include "cli/terminal.h"

namespace muster::cli {

namespace {

const char* variable_or_null(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.c_str();
}

bool terminal_shows_unicode(const Environment& environment) {
  return shows_unicode(variable_or_null(environment, "LC_ALL"),
                       variable_or_null(environment, "LC_CTYPE"),
                       variable_or_null(environment, "LANG"));
}

/// Those behind the job's name, and those of --metric; each once.
std::vector<std::string> asked_metrics(Reading& in) {
  std::vector<std::string> metrics;
  const auto add = [&](const std::string& metric, const std::string& where) {
    if (!job::is_metric_name(metric)) {
      in.reader.fault(where, "'" + metric + "' is no name of a metric");
    } else if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) {
      metrics.push_back(metric);
    }
  };
  const std::vector<std::string>& words = in.arguments.names;
  for (size_t i = 1; i < words.size(); ++i) add(words[i], "METRIC");
  for (const std::string& metric : in.reader.texts("--metric")) add(metric, "--metric");
  return metrics;
}

job::MetricQuery read_query(Reading& in) {
  job::MetricQuery query{.metrics = asked_metrics(in)};
  if (in.reader.has("--task")) query.task = in.reader.text("--task");
  if (in.reader.has("--rank")) {
    query.rank = in.reader.number("--rank", 0);
    if (*query.rank < 0) in.reader.fault("--rank", "is negative");
  }
  query.since = in.reader.moment("--since", in.caller.now);
  query.interval = in.reader.duration("--interval", std::chrono::milliseconds(0));
  return query;
}

void check_combination(Reading& in, const MetricsCommand& command) {
  const bool is_picture = command.format == MetricsCommand::Format::kPicture;
  if (command.svg && command.query.metrics.empty()) {
    in.reader.fault("--svg", "needs the metrics that it shows: muster metrics NAME METRIC --svg");
  }
  if (command.svg && !is_picture) in.reader.fault("--svg", "does not go with --output");
  if (command.svg && command.follow) {
    in.reader.fault("--svg", "does not go with --follow, which draws on the terminal");
  }
  if (command.follow && command.format == MetricsCommand::Format::kJson) {
    in.reader.fault("--output", "json has no end with --follow; csv prints values as they come");
  }
}

Invocation read_metrics(Reading& in) {
  MetricsCommand command{
      .name = in.name("job"), .project = in.whose_job(), .query = read_query(in)};
  if (in.reader.has("--svg")) command.svg = in.reader.text("--svg");
  command.follow = in.reader.has("--follow");
  command.unicode = terminal_shows_unicode(in.caller.environment);
  const std::string format = in.reader.choice("--output", {"table", "json", "csv"});
  if (format == "json") command.format = MetricsCommand::Format::kJson;
  if (format == "csv") command.format = MetricsCommand::Format::kCsv;
  check_combination(in, command);
  return command;
}

constexpr std::array<InvocationReader, 1> kMetricReaders{{{"metrics", read_metrics}}};

}  // namespace

std::span<const InvocationReader> metric_readers() {
  return kMetricReaders;
}

}  // namespace muster::cli
