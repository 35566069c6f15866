// The commands on notifications.
#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "cli/invocation_reading.h"

namespace muster::cli {

namespace {

using job::Happening;

std::vector<Happening> read_happenings(Reading& in) {
  if (!in.reader.has("--on")) {
    return {Happening::kSucceeded, Happening::kFailed, Happening::kStopped};
  }
  std::vector<Happening> happenings;
  for (const std::string& text : in.reader.texts("--on")) {
    for (const std::string& word : base::split(text, ',')) {
      const auto happening = job::happening_of(word);
      if (word == "all") {
        happenings = job::all_happenings();
      } else if (!happening) {
        in.reader.fault("--on", "'" + word +
                                    "' is not one of started, requeued, succeeded, "
                                    "failed, stopped and all");
      } else if (std::find(happenings.begin(), happenings.end(), *happening) == happenings.end()) {
        happenings.push_back(*happening);
      }
    }
  }
  return happenings;
}

Invocation read_add(Reading& in) {
  NotifyAddCommand command{.project = in.project_meant(), .request = {}, .output = in.output()};
  if (in.arguments.names.empty()) {
    in.reader.fault("URL", "is missing: where to tell, as in https://hooks.example.com/muster");
  } else {
    command.request.url = in.arguments.names.front();
  }
  command.request.on = read_happenings(in);
  command.request.job = in.reader.text("--job");
  for (const std::string& label : in.reader.texts("--label")) {
    const size_t equals = std::min(label.find('='), label.size());
    command.request.labels[label.substr(0, equals)] =
        equals == label.size() ? "" : label.substr(equals + 1);
  }
  command.request.with_lines = in.reader.has("--with-lines");
  return command;
}

std::string read_id(Reading& in) {
  if (!in.arguments.names.empty()) return in.arguments.names.front();
  in.reader.fault("ID", "is missing; see which there are: muster notify list");
  return {};
}

Invocation read_remove(Reading& in) {
  [[maybe_unused]] const std::string first = read_id(in);
  return NotifyRemoveCommand{.project = in.project_meant(),
                             .ids = in.arguments.names,
                             .ignore_missing = in.reader.has("--ignore-missing")};
}

Invocation read_retry(Reading& in) {
  const bool all = in.reader.has("--all");
  if (all == !in.arguments.names.empty()) {
    in.reader.fault(all ? "--all" : "ID",
                    all ? "does not go with ids"
                        : "is missing; see which there are: muster notify dead; or give --all");
  }
  return NotifyRetryCommand{.project = in.project_meant(), .ids = in.arguments.names};
}

constexpr std::array<InvocationReader, 7> kNotifyReaders{{
    {"notify add", read_add},
    {"notify list",
     [](Reading& in) -> Invocation {
       return NotifyListCommand{.project = in.project_meant(), .output = in.list_output()};
     }},
    {"notify remove", read_remove},
    {"notify rotate",
     [](Reading& in) -> Invocation {
       return NotifyRotateCommand{
           .project = in.project_meant(), .id = read_id(in), .output = in.output()};
     }},
    {"notify test",
     [](Reading& in) -> Invocation {
       return NotifyTestCommand{
           .project = in.project_meant(), .id = read_id(in), .output = in.output()};
     }},
    {"notify dead",
     [](Reading& in) -> Invocation {
       return NotifyDeadCommand{.project = in.project_meant(), .output = in.list_output()};
     }},
    {"notify retry", read_retry},
}};

}  // namespace

std::span<const InvocationReader> notify_readers() {
  return kNotifyReaders;
}

}  // namespace muster::cli
